//go:build !linux

package redistest

import (
	"os"
	"syscall"
)

// ownGroup: only Linux can end a child with its parent; elsewhere the test's cleanup must do.
func ownGroup() *syscall.SysProcAttr { return nil }

// kill ends the server; a process that it forked ends when its work is done, and is waited for.
func kill(server *os.Process) { server.Kill() } //nolint:errcheck // it may have ended
