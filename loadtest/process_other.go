//go:build !unix

package loadtest

import "time"

// processTime returns 0: the time is unknown here.
func processTime() time.Duration { return 0 }
