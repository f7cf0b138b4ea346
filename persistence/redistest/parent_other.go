//go:build !linux

package redistest

import "syscall"

// endWithParent: only Linux can end a child with its parent; elsewhere the test's cleanup must do.
func endWithParent() *syscall.SysProcAttr { return nil }
