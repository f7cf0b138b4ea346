package audit

import (
	"fmt"
	"sync"
)

// parallelReads is the number of lists read in parallel. They are few, to leave the store mostly
// idle for a serving exchange.
const parallelReads = 4

// concurrently calls do with each item, a few in parallel, until one call fails.
func concurrently[T any](items func(yield func(T) bool), do func(T) error) error {
	next, failed := make(chan T), make(chan error, parallelReads)
	var wg sync.WaitGroup
	for range parallelReads {
		wg.Go(func() {
			for item := range next {
				if err := guard(func() error { return do(item) }); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	var err error
	items(func(item T) bool {
		select {
		case next <- item:
			return true
		case err = <-failed:
			return false
		}
	})
	close(next)
	wg.Wait()
	close(failed)
	if err == nil {
		err = <-failed
	}
	return err
}

// guard turns a panic into an error. In its own goroutine a panic would crash the exchange.
func guard(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("BUG: the audit panicked: %v", p)
		}
	}()
	return do()
}
