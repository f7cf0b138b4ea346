package serve

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"exchange/persistence"
	"exchange/persistence/memory"
)

// A restore watches the store's owner like a standby. It leaves a living owner alone, and waits for
// the silence of a dead one, by the longer heartbeat interval of both.
func TestARestoreTakesNoStoreFromAnOwnerThatLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.Open(memory.NewDisk(), persistence.Retention{})
		store.Server = true
		r := &restoring{Store: store, heartbeat: persistence.Heartbeat{
			Check: 500 * time.Millisecond,
			Stale: 2 * time.Second}}
		begin := time.Now()
		if seen, err := r.Beat(t.Context()); err != nil || seen.HasOwner() ||
			time.Since(begin) != 0 {
			t.Fatalf("%+v, %v", seen, err)
		}
		tok, _, err := store.Acquire(t.Context(),
			persistence.Claim{Owner: "an exchange",
				Heartbeat: persistence.Heartbeat{Check: time.Second, Stale: 3 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		living, die := context.WithCancel(t.Context())
		go func() {
			for living.Err() == nil {
				time.Sleep(time.Second)
				store.Check(t.Context(), tok) //nolint:errcheck // it owns the store
			}
		}()
		if _, err := r.Beat(t.Context()); !errors.Is(err, persistence.ErrHeld) ||
			time.Since(begin) > 2*time.Second {
			t.Fatalf("%v, after %v", err, time.Since(begin))
		}
		die()
		time.Sleep(2 * time.Second)
		begin = time.Now()
		seen, err := r.Beat(t.Context())
		if waited := time.Since(begin); err != nil || !seen.HasOwner() || waited != 6*time.Second {
			t.Fatalf("%+v, %v, after %v", seen, err, waited)
		}
		tok, _, err = r.Acquire(t.Context(), persistence.Claim{Owner: "restore", After: &seen})
		if err != nil {
			t.Fatal(err)
		}
		if now, err := store.Beat(t.Context()); err != nil || now.Token != tok ||
			now.Heartbeat != r.heartbeat {
			t.Fatalf("%+v, %v", now, err)
		}
		worked(t, r.Close())
	})
}
