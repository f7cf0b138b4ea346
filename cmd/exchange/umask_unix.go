//go:build unix

package main

import "syscall"

// writeForOwnerOnly makes every file of this program readable by its owner only, whichever library
// makes the file.
func writeForOwnerOnly() { syscall.Umask(0o077) }
