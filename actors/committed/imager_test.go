package committed

import (
	"bytes"
	"strings"
	"testing"

	"exchange/core/event"
	"exchange/core/state"
)

// currencyBatch returns a batch that follows a state, of one record.
func currencyBatch(s *state.State, code string) []byte {
	r := event.Record{Kind: event.KindCurrency,
		Currency: event.Currency{Number: uint16(len(s.Currencies()) + 1), Code: code}}
	return event.EndBatch(r.Append(event.BeginBatch(nil)), 1, s.Seq(), 1)
}

// An imager that builds its state after the start has folded the same as the start, whether the
// batches were kept for it or exceeded the bound.
func TestLateImagerFoldsBatchesOfStart(t *testing.T) {
	for _, room := range []int{0, len(currencyBatch(state.New(), "ONE")), lateBytes} {
		other := state.Fold{State: state.New()}
		if err := other.Batch(0, 1, currencyBatch(other.State, "ONE")); err != nil {
			t.Fatal(err)
		}
		i := lateImager(other.State.AppendTo(nil), 1)
		i.late.room = room
		for n, code := range []string{"TWO", "SIX", "TEN"} {
			data, prev := currencyBatch(other.State, code), other.State.Seq()
			if err := other.Batch(prev, prev+1, data); err != nil {
				t.Fatal(err)
			}
			if err := i.follow(prev, prev+1, data); err != nil {
				t.Fatal(err)
			}
			clear(data) // owned by the start
			if waits := (n+1)*len(data) <= room; waits != (i.late != nil) || waits != i.Making() ||
				i.folded.Load() != prev+1 {
				t.Errorf("room for %d bytes: after batch %d built: %v, making: %v, folded up to %d",
					room, n, i.late == nil, i.Making(), i.folded.Load())
			}
		}
		if !bytes.Equal(i.State().AppendTo(nil), other.State.AppendTo(nil)) || i.Making() {
			t.Errorf("room for %d bytes: the states differ, or still making: %v", room,
				i.Making())
		}
	}
}

func TestLateImagerPanicsOnBadData(t *testing.T) {
	image := state.New().AppendTo(nil)
	for what, i := range map[string]*Imager{
		"a damaged image": lateImager(image[1:], 0),
		"a batch that does not follow": {late: &late{image: image,
			batches: []lateBatch{{prev: 1, next: 2}}}},
	} {
		func() {
			defer func() {
				if p, _ := recover().(string); !strings.HasPrefix(p, "BUG: ") {
					t.Errorf("%s: %v", what, p)
				}
			}()
			i.State()
		}()
	}
}
