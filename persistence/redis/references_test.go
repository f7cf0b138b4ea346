//go:build prove

package redis

import (
	"errors"
	"strings"
	"testing"

	"exchange/persistence"
	"exchange/persistence/redistest"
)

// An entry of the index that is lost in part, or changed, is damage: its reference is never new.
func TestPartlyLostReferenceIsNotNew(t *testing.T) {
	server := redistest.Start(t)
	s, tok, _ := mustOpen(t, server.URL(), Options{})
	w := &persistence.Writes{}
	for i, reference := range []string{"one", "two"} {
		w.Deposits = append(w.Deposits,
			persistence.Deposit{ID: uint64(i + 1), Account: 1, Currency: 1, Amount: 5,
				Reference: reference})
	}
	succeeds(t, s.Apply(t.Context(), tok, 0, 9, w))
	c := server.Client()
	entry, err1 := c.HGet(t.Context(), s.references(), "one").Result()
	seen, err2 := c.HGet(t.Context(), s.witnesses(), witness("one")).Result()
	succeeds(t, err1, err2)
	for what, damage := range map[string]func() error{
		"the entry is gone": func() error {
			return c.HDel(t.Context(), s.references(), "one").Err()
		},
		"the witness is gone": func() error {
			return c.HDel(t.Context(), s.witnesses(), witness("one")).Err()
		},
		"the witness is another": func() error {
			return c.HSet(t.Context(), s.witnesses(), witness("one"), "sum!").Err()
		},
		"the name is another": func() error {
			return errors.Join(c.HDel(t.Context(), s.references(), "one").Err(),
				c.HSet(t.Context(), s.references(), "onf", entry).Err())
		},
		"the index is no hash": func() error {
			return errors.Join(c.Rename(t.Context(), s.references(), "kept").Err(),
				c.Set(t.Context(), s.references(), "x", 0).Err())
		},
	} {
		if err := damage(); err != nil {
			t.Fatal(what, err)
		}
		if _, err := s.Reference(t.Context(), 9, "one"); !errors.Is(err, persistence.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
		if wrong := verified(t, s); !strings.Contains(wrong, s.references()) {
			t.Errorf("%s: the findings are %q", what, wrong)
		}
		if _, err := c.Del(t.Context(), "kept").Result(); err != nil {
			t.Fatal(err)
		}
		// As it was, with both entries.
		succeeds(t, c.Del(t.Context(), s.references(), s.witnesses(), s.watermark(),
			s.sums()).Err())
		succeeds(t, c.Del(t.Context(), s.deposits(1)).Err())
		succeeds(t, s.Apply(t.Context(), tok, 0, 9, w))
		if p, err := s.Reference(t.Context(), 9, "one"); err != nil || p.ID != 1 {
			t.Fatalf("%s, mended: %+v, %v", what, p, err)
		}
	}
	if again, err := c.HGet(t.Context(), s.witnesses(), witness("one")).Result(); err != nil ||
		again != seen {
		t.Errorf("the witness is %q, and was %q (%v)", again, seen, err)
	}
}
