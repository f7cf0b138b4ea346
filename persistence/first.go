package persistence

import (
	"context"
	"errors"
)

var errEnough = errors.New("enough")

// First is the first batch of a journal that ends above after. Without one batch is nil, and next
// 0. The errors are those of Journal.Read.
func First(ctx context.Context, journal Journal, after uint64) (prev, next uint64, batch []byte,
	err error) {
	err = journal.Read(ctx, after, func(p, n uint64, b []byte) error {
		prev, next, batch = p, n, append([]byte(nil), b...)
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return prev, next, batch, err
}
