package main

import (
	"errors"
	"net"
	"syscall"
)

// The exit codes of the program. Those above 1 are of sysexits.h, so that supervisors can tell
// whether a restart helps.
const (
	// exitDone: the command is done; `serve` has stopped in order.
	exitDone = 0
	// exitBound: a load test has ended, and one of its given bounds does not hold. Or the second of
	// two compared reports is worse than is allowed.
	exitBound = 1
	// exitUsage (EX_USAGE): the command line, the configuration or the request is wrong. Nothing
	// was done, and the same again fails again.
	exitUsage = 64
	// exitBroken (EX_SOFTWARE): an invariant does not hold, or stored data is damaged, or of a
	// newer program. Look at the log before a restart.
	exitBroken = 70
	// exitUnavailable (EX_TEMPFAIL): the store or the server cannot be reached, is locked by
	// another process, or did not say how the request ended. Or a disk is full or not mounted,
	// or an address is taken or not there yet. Or its answer cannot be written, as to a full
	// disk. Trying again later is right; deposits are repeated with the same reference.
	exitUnavailable = 75
	// exitFenced (EX_NOPERM) is one of two things. An exchange on one machine: another process has
	// taken over the store. A restart is right: the process is a standby then, and leaves the one
	// that serves alone. A node of a cluster: it was removed, and nothing else, because another
	// owner ends its term alone. A restart ends in the same way.
	exitFenced = 77

	// exitUnclassified is the code of an error without one. None is expected, so such an error is
	// a fault of the program.
	exitUnclassified = exitBroken
)

// An exitError is an error with the code to exit with.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// withExit gives err the code to exit with; nil stays nil. The innermost code counts.
func withExit(code int, err error) error {
	var e *exitError
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &exitError{code, err}
}

// systemCode is the code of what the system has refused. Names and permissions are the operator's
// to mend. A full disk, or an address that this machine does not have yet, may pass.
func systemCode(err error) int {
	for _, passing := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EMFILE,
		syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.ESTALE, syscall.EADDRINUSE,
		syscall.EADDRNOTAVAIL} {
		if errors.Is(err, passing) {
			return exitUnavailable
		}
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return exitUnavailable
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok && !e.IsNotFound {
		return exitUnavailable
	}
	return exitUsage
}

// exitCode returns the code of err.
func exitCode(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &e):
		return e.code
	}
	return exitUnclassified
}
