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
	if err := e.Ask(new(committed.Barrier), nil, 0); err != nil {
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
