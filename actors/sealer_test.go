package actors

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"testing"

	"exchange/actors/directory"
	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/persistence"
)

// An exchange without a key of the server cannot serve. It must not write anything, nor end the
// serving one.
func TestAStartWithAMissingKeyChangesNothing(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		store := fresh(t)()
		defer store.Close()
		ctx := context.Background()
		other := must[*seal.Sealer](t)(seal.New(bytes.Repeat([]byte{7}, seal.KeyBytes)))
		without := testOptions(store)
		without.Sealer = func(bool) (*seal.Sealer, error) { return other, nil }
		// which would make a record
		without.Currencies = append(without.Currencies, directory.Currency{Code: "GBP"})

		e := start(t, testOptions(store))
		must[Admin](t)(e.CreateAccount("test", "ann", ""))
		must[Admin](t)(e.CreateKey("test", "ann", "key-of-ann", "secret", event.AllPermissions,
			nil))
		// before there is a snapshot
		first, before, err := store.Acquire(ctx, persistence.Claim{Owner: "another"})
		succeeds(t, err)
		if _, err := Start(ctx, without); !errors.Is(err, seal.ErrOtherKey) ||
			!errors.Is(err, ErrConfig) {
			t.Errorf("the start ends with %v", err)
		}
		if err := store.Check(ctx, first); err != nil && !store.Exclusive() {
			t.Errorf("the one that serves: %v", err)
		}
		if _, after, err := store.Acquire(ctx, persistence.Claim{Owner: "another"}); err != nil ||
			after != before {
			t.Errorf("it wrote %d records, %v", after-before, err)
		}

		e.Abandon()
		stop(t, start(t, testOptions(store))) // with a snapshot
		token, _, err := store.Acquire(ctx, persistence.Claim{Owner: "the one that serves"})
		succeeds(t, err)
		without.Sealer = func(bool) (*seal.Sealer, error) { return nil, fs.ErrNotExist }
		if _, err := Start(ctx, without); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the start ends with %v", err)
		}
		if err := store.Check(ctx, token); err != nil && !store.Exclusive() {
			t.Errorf("the one that serves: %v", err)
		}
	})
}
