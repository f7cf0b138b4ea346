//go:build !unix

package main

import "os"

// terminal is false: there are no such signals on this system.
func terminal(*os.File) bool { return false }
