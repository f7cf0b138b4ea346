//go:build !linux

package generator

import "time"

func NewPoller() (Poller, error) { return newPortablePoller(), nil }

// threadTime returns 0: the time is unknown here.
func threadTime() time.Duration { return 0 }
