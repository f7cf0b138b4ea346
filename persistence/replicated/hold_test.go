package replicated

import (
	"errors"
	"testing"
	"testing/synctest"

	"exchange/persistence"
)

// saves makes two images at each node, and lets each node trim its journal up to the older one.
func (f *forgetful) saves() (older uint64) {
	f.Helper()
	older = f.seq - 10
	for _, s := range f.stores {
		if _, err := s.Follow(f.Context(), f.seq-1); err != nil {
			f.Fatal(err)
		}
		f.save(s, older)
		f.save(s, f.seq-5)
		must(f.T, s.Trim(f.Context(), s.Own(), older))
	}
	must(f.T, f.led.Trim(f.Context(), f.tok, older))
	return older
}

// begins returns the sequence after which a node's log of batches begins.
func (f *forgetful) begins(s *replica) (seq uint64) {
	f.Helper()
	must(f.T, s.onNode(f.Context(), func(n *node) { seq = n.index.batches[0].seq - 1 }))
	return seq
}

// forgets reports whether a node has trimmed the journal up to a sequence. The leader proposes the
// floor again.
func (f *forgetful) forgets(s *replica, seq uint64) bool {
	f.Helper()
	must(f.T, f.led.Trim(f.Context(), f.tok, seq))
	return f.begins(s) >= seq
}

// reads returns the number of a node's batches above a sequence.
func (f *forgetful) reads(s *replica, after uint64) (n int, err error) {
	err = s.Read(f.Context(), after, func(uint64, uint64, []byte) error {
		n++
		return nil
	})
	return n, err
}

// A node whose archive lags keeps its log readable, also after a restart. The other nodes trim
// theirs. When the archive has advanced, so does this node.
func TestANodeKeepsTheLogThatItsArchiveLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForgetful(t)
		at := 0
		for f.stores[at] == f.led {
			at++
		}
		s := f.stores[at].(*replica)
		held := f.seq - 10
		s.Hold(held)
		f.append(enough)
		older := f.saves()
		other := f.stores[voters-at-f.place(f.led)].(*replica)
		f.until("the others have trimmed", func() bool {
			return f.forgets(f.led, older) && f.forgets(other, older)
		})
		var gone, floor uint64
		must(t, f.led.onNode(t.Context(), func(n *node) { gone = n.trim.droppedTo }))
		f.until("the trim has come to the node with the archive", func() bool {
			must(t, s.onNode(t.Context(), func(n *node) { floor = n.machine.Floor() }))
			return floor >= gone && s.view.Load().trimmed >= older
		})
		check := func() {
			t.Helper()
			var target, most uint64
			must(t, s.onNode(t.Context(), func(n *node) {
				target, most = n.target(), n.index.upTo(held)
			}))
			if begins := f.begins(s); target > most || begins > held {
				t.Errorf("the archive ends at %d, and the log begins at %d, soon after entry %d "+
					"instead of %d", held, begins, target, most)
			}
			if n, err := f.reads(s, held); err != nil || uint64(n) != f.seq-held {
				t.Errorf("%d of %d batches are read: %v", n, f.seq-held, err)
			}
		}
		check()
		if _, err := f.reads(other, held); !errors.Is(err, persistence.ErrCorrupt) {
			t.Errorf("a node without an archive reads trimmed batches: %v", err)
		}

		must(t, s.Close())
		f.stores[at] = nil
		f.all(at)
		s = f.stores[at].(*replica)
		s.Hold(0)
		if _, err := s.Follow(t.Context(), f.seq-1); err != nil {
			t.Fatal(err)
		}
		must(t, s.Trim(t.Context(), s.Own(), older))
		check()

		held = older - 100
		s.Hold(held)
		must(t, s.Trim(t.Context(), s.Own(), older))
		f.until("the node trims the archived log", func() bool { return f.forgets(s, held) })
		check()
	})
}

// place returns a node's index.
func (f *forgetful) place(s persistence.Replica) int {
	for i, x := range f.stores {
		if x == s {
			return i
		}
	}
	f.Fatal("it is no node")
	return 0
}
