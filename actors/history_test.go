package actors

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/core/event"
	"exchange/core/state"
	"exchange/persistence"
	"exchange/persistence/memory"
)

// loseHead removes the HEAD of a closed store.
func loseHead(t *testing.T, s persistence.Store) {
	t.Helper()
	if m, ok := s.(*memory.Store); ok {
		m.Head.Lose()
	} else if err := os.Remove(filepath.Join(strings.TrimPrefix(s.String(), "pebble:"),
		"HEAD.main")); err != nil {
		t.Fatal(err)
	}
}

// A refusingStore accepts no append.
type refusingStore struct{ persistence.Store }

func (refusingStore) Append(context.Context, persistence.Token, uint64, uint64, []byte) error {
	return errNoAnswer
}

func TestAStartThatEndsBeforeItsFirstRecordLeavesTheHEADMissing(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		at := fresh(t)
		b := newTeller(t, at, nil)
		first := b.e.history
		stop(t, b.e)
		succeeds(t, b.store.Close())
		loseHead(t, b.store)
		s := at()
		o := b.o
		o.Store, o.Timing.StallMax = refusingStore{s}, 1
		if _, err := Start(t.Context(), o); !errors.Is(err, ErrStalled) {
			t.Fatalf("a start whose records are not taken ends with %v", err)
		}
		succeeds(t, s.Close())
		b.store = at()
		if b.o.Store = b.store; !b.store.HeadMissing() {
			t.Error("the HEAD is there, and nothing was acknowledged")
		}
		b.e = start(t, b.o)
		if b.e.history == first || b.store.HeadMissing() {
			t.Error("the next start continues with the history that it finds, or makes no HEAD")
		}
		b.end()
	})
}

// The very first record is the history's: nothing can be decided before it.
func TestTheFirstRecordNamesTheHistory(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		s := fresh(t)()
		defer s.Close()
		e := start(t, testOptions(s))
		first := true
		err := s.Read(t.Context(), 0, func(_, _ uint64, data []byte) error {
			b, err := event.OpenBatch(data)
			if err != nil {
				return err
			}
			var r event.Record
			if _, err = r.Decode(b.Records); err == nil && first &&
				(r.Kind != event.KindHistory || r.History != e.history) {
				t.Errorf("the first record is %v, of history %v, not %v", r.Kind,
					r.History, e.history)
			}
			first = false
			return err
		})
		if err != nil || first {
			t.Error("there is no record", err)
		}
		var at event.HistoryID
		e.probe(e.work.Fold, func() { at = e.committed.State().History() })
		if at != e.history || state.New().History() == at {
			t.Errorf("the state is of history %v, not %v", at, e.history)
		}
		stop(t, e)
	})
}
