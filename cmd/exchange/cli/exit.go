package cli

import (
	"errors"
	"net"
	"syscall"
)

// The exit codes of the program. Those above 1 are of sysexits.h, so that supervisors can decide
// whether a restart helps.
const (
	// ExitDone: the command is done; `serve` has stopped in order.
	ExitDone = 0
	// ExitBound: a load test has ended, and one of its given bounds does not hold. Or the second of
	// two compared reports is worse than is allowed.
	ExitBound = 1
	// ExitUsage (EX_USAGE): the command line, the configuration or the request is wrong. Nothing
	// was done, and a repeat fails again.
	ExitUsage = 64
	// ExitBroken (EX_SOFTWARE): an invariant does not hold, or stored data is damaged, or of a
	// newer program. Look at the log before a restart.
	ExitBroken = 70
	// ExitUnavailable (EX_TEMPFAIL): the store or the server cannot be reached, is locked by
	// another process, or did not report the outcome of the request. Or a disk is full or not
	// mounted, or an address is taken or not there yet. Or the command's answer cannot be written,
	// as to a full disk. Trying again later is right; deposits are repeated with the same
	// reference.
	ExitUnavailable = 75
	// ExitFenced (EX_NOPERM) is one of two things. An exchange on one machine: another process has
	// taken over the store. A restart is right: the process is then a standby, and leaves the
	// serving one alone. A node of a cluster: it was removed, and nothing else, because another
	// owner only ends its term. A restart ends in the same way.
	ExitFenced = 77

	// ExitUnclassified is the code of an error without one. None is expected, so such an error is
	// a fault of the program.
	ExitUnclassified = ExitBroken
)

// An ExitError is an error with its exit code.
type ExitError struct {
	code int
	err  error
}

func (e *ExitError) Error() string { return e.err.Error() }
func (e *ExitError) Unwrap() error { return e.err }

// WithExit gives err an exit code; nil stays nil. An error keeps its innermost code.
func WithExit(code int, err error) error {
	var e *ExitError
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &ExitError{code, err}
}

// SystemCode is the code of a refusal of the operating system. Names and permissions are the
// operator's to fix. A full disk, or an address that this machine does not have yet, may pass.
func SystemCode(err error) int {
	for _, passing := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EMFILE,
		syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.ESTALE, syscall.EADDRINUSE,
		syscall.EADDRNOTAVAIL} {
		if errors.Is(err, passing) {
			return ExitUnavailable
		}
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return ExitUnavailable
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok && !e.IsNotFound {
		return ExitUnavailable
	}
	return ExitUsage
}

// ExitCode returns the code of err.
func ExitCode(err error) int {
	var e *ExitError
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &e):
		return e.code
	}
	return ExitUnclassified
}
