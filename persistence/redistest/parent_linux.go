package redistest

import "syscall"

// endWithParent ends the server with the test, also when the test is killed.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
