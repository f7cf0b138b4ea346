package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// datasync makes a file's bytes durable, and leaves its times to the system.
func datasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }
