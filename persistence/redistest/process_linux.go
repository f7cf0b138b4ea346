package redistest

import (
	"os"
	"syscall"
)

// ownGroup gives the server a group of processes of its own, and ends it with the test, also when
// the test is killed.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// kill ends the server and the processes that it forked.
func kill(server *os.Process) {
	syscall.Kill(-server.Pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
}
