//go:build !linux

package redistest

import (
	"os"
	"syscall"
)

// ownGroup: only Linux can end a child with its parent; elsewhere the test's cleanup must do.
func ownGroup() *syscall.SysProcAttr { return nil }

// kill ends the server. A forked process ends when its work is done, and kill waits for that.
func kill(server *os.Process) { server.Kill() } //nolint:errcheck // it may have ended
