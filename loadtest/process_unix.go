//go:build unix

package loadtest

import (
	"syscall"
	"time"
)

// processTime returns the CPU time of the program.
func processTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
