package actors

import (
	"context"
	"slices"
	"strings"
	"testing"

	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/persistence"
)

// noted returns the words of an operator's actions, oldest first.
func noted(e *Engine, operator string) (words []string, err error) {
	if err := e.Ask(new(committed.Written), nil, 0); err != nil {
		return nil, err
	}
	err = committed.History(e.Door).Actions(context.Background(), persistence.ActionQuery{},
		func(a *persistence.Action) bool {
			if a.Operator == operator {
				words = append(words, a.What)
			}
			return true
		})
	slices.Reverse(words)
	return words, err
}

// A note is in the log of actions, in order, bounded and printable. It changes nothing else, and
// the books balance with it, also behind a restart.
func TestANoteIsInTheLogOfActions(t *testing.T) {
	onTeller(t, nil, func(t *testing.T, b *teller) {
		long := strings.Repeat("é", event.MaxNote)
		for _, text := range []string{"removed node d", "removed node d", "two\nlines\xff\u202e",
			long} {
			succeeds(t, b.e.Note("eve", text)())
		}
		if err := b.e.Note("eve", "")(); err == nil {
			t.Error("a note says nothing")
		}
		cut := strings.Repeat("é", (event.MaxNote-3)/2) + "..."
		want := []string{"removed node d", "removed node d", "two?lines??", cut}
		if got := must[[]string](t)(noted(b.e, "eve")); !slices.Equal(got, want) {
			t.Errorf("the log of actions has %q", got)
		}
		auditClean(t, b.e)
	})
}

// While a member does not read notes, none is written. Afterwards each node has them: another one
// that leads lists them.
func TestANoteIsWrittenOnceAllMembersReadIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, r, older := withOlder(t, persistence.FormatNotes)
		before := r.committed.Released()
		reigns := func(what string, does func() error) { // at whichever node reigns
			t.Helper()
			eventually(t, what, func() bool {
				select {
				case r = <-c.began:
				default:
				}
				return does() == nil
			})
		}
		note := func(text string) {
			t.Helper()
			reigns("a note is taken", func() error { return r.Note("eve", text)() })
		}
		note("too early")
		if now := r.committed.Released(); now != before {
			t.Errorf("%d records are written that a member does not read", now-before)
		}
		older.Store(false)
		note("added node d")
		c.caughtUp(r)
		killed := r.at
		c.kill(killed)
		for r.at == killed {
			r = c.next()
		}
		note("removed node d")
		var got []string
		reigns("the log of actions is read", func() (err error) {
			got, err = noted(r.Engine, "eve")
			return err
		})
		// a note without an answer was tried again, and may be there twice
		if !slices.Equal(slices.Compact(got), []string{"added node d", "removed node d"}) {
			t.Errorf("the log of actions has %q", got)
		}
	})
}
