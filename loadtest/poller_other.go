//go:build !linux

package loadtest

import "time"

func newPoller() (poller, error) { return newPortablePoller(), nil }

// threadTime is not known here.
func threadTime() time.Duration { return 0 }
