//go:build !unix

package loadtest

import "time"

// processTime is not known here.
func processTime() time.Duration { return 0 }
