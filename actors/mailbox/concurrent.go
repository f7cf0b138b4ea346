package mailbox

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// atOnceStep is the number of consecutive numbers that a goroutine of AtOnce takes at a time, at
// most.
const atOnceStep = 64

// AtOnce calls do with each number below n, on all processors, and returns one of the errors. A
// start uses it before there are actors, to build the parts of many accounts.
func AtOnce(n int, do func(i int) error) error {
	var next atomic.Int64
	workers := min(runtime.GOMAXPROCS(0), n)
	step := max(1, min(atOnceStep, n/(4*max(1, workers))))
	errs := make(chan error, workers)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for from := int(next.Add(int64(step))) - step; from < n; from = int(
				next.Add(int64(step))) - step {
				for i := from; i < min(from+step, n); i++ {
					if err := do(i); err != nil {
						errs <- err
						return
					}
				}
			}
		})
	}
	all.Wait()
	close(errs)
	return <-errs
}
