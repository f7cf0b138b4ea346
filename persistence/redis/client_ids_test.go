//go:build prove

package redis

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/redistest"
)

// A missing, extra or wrong entry of the index of client ids is reported, although its own checksum
// is right.
func TestWrongClientIDEntryIsReported(t *testing.T) {
	server := redistest.Start(t)
	s, tok, _ := mustOpen(t, server.URL(), Options{})
	w := &persistence.Writes{}
	for i, client := range []string{"one", "two", "three", ""} {
		w.Orders = append(w.Orders, persistence.Order{ID: uint64(i + 1), Account: uint32(1 + i%2),
			Pair: 1, Side: 1, Status: trading.StatusDone, ClosedSeq: 9, ClientID: client})
	}
	succeeds(t, s.Apply(t.Context(), tok, 0, 9, w))
	c, key, ctx := server.Client(), s.clientIDs(2), t.Context()
	entry := func(account uint32, client string, id uint64) string {
		return string(s.clientEntry(&persistence.Order{ID: id, Account: account, ClientID: client}))
	}
	change := func(from string, score float64, to string) func(context.Context) error {
		return func(ctx context.Context) error {
			return errors.Join(c.ZRem(ctx, key, from).Err(),
				c.ZAdd(ctx, key, redis.Z{Score: score, Member: to}).Err())
		}
	}
	two := entry(2, "two", 2)
	for what, damage := range map[string]func(context.Context) error{
		"gone":              func(ctx context.Context) error { return c.ZRem(ctx, key, two).Err() },
		"no set":            func(ctx context.Context) error { return c.Del(ctx, key).Err() },
		"another client id": change(two, 0, entry(2, "twi", 2)),
		"another order":     change(two, 0, entry(2, "two", 3)),
		"another account":   change(two, 0, entry(1, "two", 2)),
		"out of its place":  change("", 1, two),
		"cut off":           change(two, 0, two[:len(two)-1]),
	} {
		if err := damage(ctx); err != nil {
			t.Fatal(what, err)
		}
		if wrong := verified(t, s); !strings.Contains(wrong, key) {
			t.Errorf("%s: the findings are %q", what, wrong)
		}
		err := errors.Join(c.Del(ctx, key).Err(), c.ZAdd(ctx, key, redis.Z{Member: two}).Err())
		if err != nil {
			t.Fatal(what, err)
		}
		if wrong := verified(t, s); wrong != "" {
			t.Fatalf("%s, mended: %s", what, wrong)
		}
	}
	// An entry without its order is damage, also to a reader.
	succeeds(t, c.Del(ctx, s.orders(2)).Err())
	q := persistence.OrderQuery{Account: 2, ClientID: "two"}
	if err := s.Orders(ctx, q, func(*persistence.Order) bool { return true }); !errors.Is(
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
