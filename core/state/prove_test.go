//go:build prove

package state

func init() { oneOf = 1 }
