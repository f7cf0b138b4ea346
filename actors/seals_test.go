package actors

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"exchange/core/event"
	"exchange/core/state"
	"exchange/persistence"
)

// keyChanges are a writer's possible changes of a stored key's record, with recomputed checksums.
var keyChanges = map[string]func(k *event.Key){
	"another account": func(k *event.Key) { k.Account = 1 },
	"more rights":     func(k *event.Key) { k.Permissions = event.AllPermissions },
	"no allow-list":   func(k *event.Key) { k.Allow = nil },
	"another address": func(k *event.Key) {
		k.Allow = []string{"10.0.0.0/8", "11.0.0.2/32"}
	},
	"an address more": func(k *event.Key) { k.Allow = append(k.Allow, "0.0.0.0/0") },
	"one prefix made of the two": func(k *event.Key) {
		k.Allow = []string{"10.0.0.0/811.0.0.1/32"}
	},
	"another name":            func(k *event.Key) { k.Key = "key-of-eve" },
	"a byte of the seal":      func(k *event.Key) { k.Sealed[20] ^= 1 },
	"the version of the seal": func(k *event.Key) { k.Sealed[0]-- },
	"half a seal":             func(k *event.Key) { k.Sealed = k.Sealed[:7] },
}

const sealedSecret = "the-secret-of-the-key"

// changedKeys changes the second key's record in a batch.
func changedKeys(t *testing.T, change func(k *event.Key)) func([]byte) []byte {
	return rewritten(t, func(r *event.Record) {
		if r.Kind == event.KindKey && r.Key.Number == 2 {
			change(&r.Key)
		}
	})
}

// withTwoKeys starts an engine with two accounts, each with a key.
func withTwoKeys(t *testing.T, o Options) *Engine {
	t.Helper()
	e := start(t, o)
	must[Admin](t)(e.CreateAccount("test", "ann", ""))
	must[Admin](t)(e.CreateAccount("test", "bob", ""))
	must[Admin](t)(e.CreateKey("test", "ann", "key-of-ann", "another-secret",
		event.AllPermissions, nil))
	must[Admin](t)(e.CreateKey("test", "bob", "key-of-bob", sealedSecret, event.PermissionRead,
		[]string{"10.0.0.0/8", "11.0.0.1"}))
	return e
}

// namesTheKey wants an error of damage that names the key, without its secret.
func namesTheKey(t *testing.T, where string, err error) {
	t.Helper()
	if !errors.Is(err, persistence.ErrCorrupt) || errors.Is(err, ErrConfig) {
		t.Errorf("%s: %v", where, err)
		return
	}
	named := regexp.MustCompile(`key key-of-(bob|eve) of account (bob|ann)`)
	if text := err.Error(); !named.MatchString(text) || strings.Contains(text, sealedSecret) {
		t.Errorf("%s: the error does not name the key, or shows its secret: %v", where, err)
	}
}

func TestAKeyWithChangedRightsIsFoundInItsRecord(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		at := fresh(t)
		store := &alteredJournal{Store: at()}
		defer store.Close()
		e := withTwoKeys(t, testOptions(store))
		for what, change := range keyChanges {
			store.change = changedKeys(t, change)
			_, err := e.Audit(t.Context(), nil, func(uint64, uint64) {})
			namesTheKey(t, what+", by an audit", err)
			_, err = e.Audit(t.Context(), store, func(uint64, uint64) {})
			namesTheKey(t, what+", by an audit of an archive", err)
		}
		store.change = nil
		auditClean(t, e)
		e.Abandon()
		for what, change := range keyChanges {
			store.change = changedKeys(t, change)
			_, err := Start(t.Context(), testOptions(store))
			namesTheKey(t, what+", by a start", err)
		}
		store.change = nil
		stop(t, start(t, testOptions(store)))
	})
}

// An otherImage is a store with another image in place of its snapshots.
type otherImage struct {
	alteredJournal
	image []byte
}

func (s *otherImage) LoadSnapshot(ctx context.Context, back int) (uint64, io.ReadCloser, error) {
	seq, r, err := s.Store.LoadSnapshot(ctx, back)
	if err != nil || s.image == nil {
		return seq, r, err
	}
	return seq, io.NopCloser(bytes.NewReader(s.image)), r.Close()
}

func TestAKeyWithChangedRightsIsFoundInASnapshot(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		store := &otherImage{alteredJournal: alteredJournal{Store: fresh(t)()}}
		defer store.Close()
		e := withTwoKeys(t, testOptions(store))
		images := map[string][]byte{}
		for what, change := range keyChanges {
			s, changed := state.New(), changedKeys(t, change)
			fold := state.Fold{State: s}
			err := store.Read(t.Context(), 0, func(prev, next uint64, batch []byte) error {
				return fold.Batch(prev, next, changed(bytes.Clone(batch)))
			})
			succeeds(t, err)
			images[what] = s.AppendTo(nil)
		}
		stop(t, e) // with a snapshot
		for what, image := range images {
			store.image = image
			_, err := Start(t.Context(), testOptions(store))
			namesTheKey(t, what+", by a start", err)
		}
		store.image = nil
		e = start(t, testOptions(store))
		for what, image := range images {
			store.image = image
			_, err := e.Audit(t.Context(), nil, func(uint64, uint64) {})
			namesTheKey(t, what+", by an audit", err)
		}
		store.image = nil
		auditClean(t, e)
		stop(t, e)
	})
}
