//go:build linux || darwin

package metrics

import "golang.org/x/sys/unix"

// roomOf returns the free bytes on a folder's disk, for the exchange, and the size of the disk.
func roomOf(folder string) (free, size float64, ok bool) {
	var s unix.Statfs_t
	if unix.Statfs(folder, &s) != nil {
		return 0, 0, false
	}
	block := float64(s.Bsize)
	return float64(s.Bavail) * block, float64(s.Blocks) * block, true
}
