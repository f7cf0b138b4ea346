//go:build unix

package main

import "syscall"

// writeForOwnerOnly sees to it that nobody else can read what this program writes, whichever
// library makes the file.
func writeForOwnerOnly() { syscall.Umask(0o077) }
