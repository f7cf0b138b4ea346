package pebble

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// A missing, extra or wrong entry of the index of client ids is reported, although its own checksum
// is right.
func TestWrongClientIDEntryIsReported(t *testing.T) {
	s, tok, _ := mustOpen(t, t.TempDir(), Options{})
	w := &persistence.Writes{}
	for i, client := range []string{"one", "two", "three", ""} {
		w.Orders = append(w.Orders, persistence.Order{ID: uint64(i + 1), Account: uint32(1 + i%2),
			Pair: 1, Side: 1, Status: trading.StatusDone, ClosedSeq: 9, ClientID: client})
	}
	succeeds(t, s.Apply(t.Context(), tok, 0, 9, w))
	if wrong := verified(t, s); wrong != "" {
		t.Fatalf("nothing is lost, and wrong is %s", wrong)
	}
	entry := func(account uint32, client string, id uint64) []byte {
		return s.clientOrder(&persistence.Order{ID: id, Account: account, ClientID: client})
	}
	set := func(b *pebble.Batch, key []byte) {
		b.Set(key, codec.At(key).Seal(nil, clientEntry), nil)
	}
	key := entry(2, "two", 2)
	for what, damage := range map[string]func(b *pebble.Batch){
		"gone":              func(*pebble.Batch) {},
		"empty":             func(b *pebble.Batch) { b.Set(key, nil, nil) },
		"other bytes":       func(b *pebble.Batch) { b.Set(key, []byte("other"), nil) },
		"another client id": func(b *pebble.Batch) { set(b, entry(2, "twi", 2)) },
		"another order":     func(b *pebble.Batch) { set(b, entry(2, "two", 3)) },
		"another account":   func(b *pebble.Batch) { set(b, entry(3, "two", 2)) },
		"one too many": func(b *pebble.Batch) {
			set(b, key)
			set(b, entry(2, "two", 3))
		},
	} {
		b := s.db.NewBatch()
		b.Delete(key, nil)
		damage(b)
		succeeds(t, b.Commit(pebble.Sync))
		wrong := verified(t, s)
		if !strings.Contains(wrong, "the index of client ids of account 2") {
			t.Errorf("%s: the findings are %q", what, wrong)
		}
		b = s.db.NewBatch() // as it was
		b.DeleteRange(s.key(kindOrderClient), s.key(kindOrderClient+1), nil)
		for i := range w.Orders {
			if o := &w.Orders[i]; o.ClientID != "" {
				set(b, s.clientOrder(o))
			}
		}
		succeeds(t, b.Commit(pebble.Sync))
		if wrong := verified(t, s); wrong != "" {
			t.Fatalf("%s, mended: %s", what, wrong)
		}
	}
	// An entry without its order is damage, also to a reader.
	succeeds(t, s.db.Delete(u64(s.orders(2), 2), pebble.Sync))
	q := persistence.OrderQuery{Account: 2, ClientID: "two"}
	if err := s.Orders(t.Context(), q, func(*persistence.Order) bool { return true }); !errors.Is(
		err, persistence.ErrCorrupt) {
		t.Errorf("an entry without its order: %v", err)
	}
}

// verified returns the findings of Verify.
func verified(t *testing.T, s *Store) string {
	t.Helper()
	var wrong []string
	if _, err := s.Verify(t.Context(),
		func(place string) { wrong = append(wrong, place) }); err != nil {
		t.Fatal(err)
	}
	return strings.Join(wrong, "\n")
}
