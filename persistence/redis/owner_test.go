//go:build prove

package redis

import (
	"errors"
	"testing"
	"time"

	"exchange/persistence"
	"exchange/persistence/redistest"
)

// headField returns a field of the engine's head.
func headField(t *testing.T, s *Store, field string) string {
	t.Helper()
	return s.history.HGet(t.Context(), s.head(), field).Val()
}

// A Redis fails over to a copy that lacks a tail while a start waits: the start has seen the
// journal's end.
func TestClaimIsRefusedAfterJournalShrank(t *testing.T) {
	server := redistest.Start(t)
	s, tok, _ := mustOpen(t, server.URL(), Options{})
	appendTo(t, s, tok, 0, 20, "batch ")
	other := mustOpenAlone(t, server.URL(), Options{})
	seen, err := other.Beat(t.Context())
	if err != nil || seen.End.Seq != 20 || seen.End.Digest == 0 || seen.Lost != "" {
		t.Fatalf("%+v, %v", seen, err)
	}
	claim := persistence.Claim{Owner: "another", After: &seen}
	cut(t, s, 15, "batch ")
	_, _, err = other.Acquire(t.Context(), claim)
	wantError(t, err, persistence.ErrCorrupt, "ended at sequence 20", "ends at 15", "--take-over")
	if now := headField(t, s, "epoch"); now != string(tok) {
		t.Fatalf("a claim that was refused has changed the owner to %s", now)
	}
	succeeds(t, s.history.HSet(t.Context(), s.head(), "seq", "20", "dig",
		hex(seen.End.Digest+1)).Err())
	_, _, err = other.Acquire(t.Context(), claim)
	wantError(t, err, persistence.ErrCorrupt, "has another batch there")
	claim.Insist = true
	if _, last, err := other.Acquire(t.Context(), claim); err != nil || last != 20 {
		t.Fatal(last, err)
	}
}

// An idle owner checks, too. Every later start finds its mark, until an operator accepts it.
func TestIdleOwnerDetectsShorterJournal(t *testing.T) {
	server := redistest.Start(t)
	s, tok, _ := mustOpen(t, server.URL(), Options{})
	appendTo(t, s, tok, 0, 20, "batch ")
	succeeds(t, s.Check(t.Context(), tok))
	before := headField(t, s, "beat")
	cut(t, s, 15, "batch ")
	for range 2 {
		wantError(t, s.Check(t.Context(), tok), persistence.ErrGap)
	}
	if headField(t, s, "lost") != "20" || headField(t, s, "beat") != before {
		t.Errorf("it has lost %q, and the beat is %q after %q", headField(t, s, "lost"),
			headField(t, s, "beat"), before)
	}
	other := mustOpenAlone(t, server.URL(), Options{})
	_, _, err := other.Acquire(t.Context(), persistence.Claim{Owner: "another"})
	wantError(t, err, persistence.ErrCorrupt, `sequence "20"`, "--take-over")
	seen, err := other.Beat(t.Context())
	if err != nil || seen.Lost != "20" {
		t.Fatalf("%+v, %v", seen, err)
	}
	tok, last, err := other.Acquire(t.Context(),
		persistence.Claim{Owner: "another", After: &seen, Insist: true})
	if err != nil || last != 15 || headField(t, s, "lost") != "" {
		t.Fatalf("%d, %v, and %q is lost", last, err, headField(t, s, "lost"))
	}
	now, err := other.Beat(t.Context())
	if err != nil || now.Accepted <= seen.Accepted ||
		now.Lacks(persistence.Mark{Seq: 20}, seen.Accepted) ||
		!now.Lacks(persistence.Mark{Seq: 20}, now.Accepted) {
		t.Fatalf("%+v, %v: others do not see that the loss was accepted", now, err)
	}
	appendTo(t, other, tok, 15, 16, "of the next ")
	if err := other.Check(t.Context(), tok); err != nil {
		t.Error(err)
	}
}

// Only an owner leaves the mark: a fenced process leaves none on the next owner's journal.
func TestFencedOwnerLeavesNoMark(t *testing.T) {
	server := redistest.Start(t)
	s, tok, _ := mustOpen(t, server.URL(), Options{})
	appendTo(t, s, tok, 0, 20, "batch ")
	cut(t, s, 15, "batch ")
	mustOpen(t, server.URL(), Options{})
	for _, err := range []error{s.Check(t.Context(), tok),
		s.Append(t.Context(), tok, 20, 21, []byte("late"))} {
		if !errors.Is(err, persistence.ErrFenced) {
			t.Errorf("error is %v, want ErrFenced", err)
		}
	}
	if lost := headField(t, s, "lost"); lost != "" {
		t.Errorf("it has marked %q", lost)
	}
}

func TestHeartbeatIsVisibleToOthers(t *testing.T) {
	server := redistest.Start(t)
	s := mustOpenAlone(t, server.URL(), Options{})
	seen := &persistence.Beat{}
	for heartbeat, want := range map[persistence.Heartbeat]persistence.Heartbeat{
		{Check: 500 * time.Millisecond, Stale: 2 * time.Second}: {Check: 500 * time.Millisecond,
			Stale: 2 * time.Second},
		{Check: 1, Stale: time.Minute + 1}: {Check: time.Millisecond,
			Stale: time.Minute + time.Millisecond},
		{}: {},
	} {
		if _, _, err := s.Acquire(t.Context(),
			persistence.Claim{Owner: "test", Heartbeat: heartbeat}); err != nil {
			t.Fatal(err)
		}
		if beat, err := s.Beat(t.Context()); err != nil || beat.Heartbeat != want {
			t.Errorf("%v is read as %v, %v", heartbeat, beat.Heartbeat, err)
		} else {
			seen = &beat
		}
	}
	if tok, _, err := s.Acquire(t.Context(),
		persistence.Claim{Owner: "test", After: seen}); err != nil || tok == "" {
		t.Error(err)
	}
	for _, text := range []string{"", "x", "1", "-1 5", "5 -1", "1 99999999999",
		"9223372036854775807 1", "99999999999999999999 1"} {
		if r := parseHeartbeat(text); r != (persistence.Heartbeat{}) {
			t.Errorf("%q is read as %v", text, r)
		}
	}
}

// A key of another type than the exchange's does not repair itself: a retry does not help.
func TestKeyOfWrongTypeIsDamage(t *testing.T) {
	server := redistest.Start(t)
	s, tok, _ := mustOpen(t, server.URL(), Options{})
	appendTo(t, s, tok, 0, 1, "batch ")
	admin := server.Client()
	for _, key := range []string{s.head(), s.watermark(), s.sums(), s.nonces()} {
		succeeds(t, admin.Del(t.Context(), key).Err())
		succeeds(t, admin.RPush(t.Context(), key, "a list").Err())
		calls := map[string]func() error{
			"watermark": func() error { _, err := s.Watermark(t.Context()); return err },
			"apply": func() error {
				return s.Apply(t.Context(), tok, 0, 1,
					&persistence.Writes{Nonces: []persistence.Nonce{{Key: "k", Nonce: 1}}})
			},
		}
		switch key {
		case s.head():
			calls = map[string]func() error{
				"beat":  func() error { _, err := s.Beat(t.Context()); return err },
				"check": func() error { return s.Check(t.Context(), tok) },
				"append": func() error {
					return s.Append(t.Context(), tok, 1, 2,
						[]byte("batch"))
				},
				"acquire": func() error {
					_, _, err := s.Acquire(t.Context(),
						persistence.Claim{Owner: "test"})
					return err
				},
				"release": func() error { return s.Release(t.Context(), tok) },
				"open": func() error {
					again, err := Open(t.Context(), server.URL(), Options{Logger: quiet})
					if err == nil {
						again.Close()
					}
					return err
				},
			}
		case s.nonces():
			calls = map[string]func() error{
				"nonces": func() error { return s.Nonces(t.Context(), func(string, uint64) {}) },
			}
		}
		for what, call := range calls {
			if err := call(); !errors.Is(err, persistence.ErrCorrupt) {
				t.Errorf("%s of another type: %s: %v, want ErrCorrupt", key, what, err)
			}
		}
		succeeds(t, admin.Del(t.Context(), key).Err())
		s, tok, _ = mustOpen(t, server.URL(), Options{})
	}
}

// A Redis that has lost the journal's tail gets no rows of it, because nothing could remove them
// again. The owner leaves its mark, and a claim that accepts the loss finds the history unchanged.
func TestApplyOfLostRecordsWritesNothing(t *testing.T) {
	s, tok, _ := mustOpen(t, redistest.Start(t).URL(), Options{})
	appendTo(t, s, tok, 0, 20, "batch ")
	succeeds(t, s.Apply(t.Context(), tok, 0, 10, nil))
	cut(t, s, 15, "batch ")
	for range 2 {
		if err := s.Apply(t.Context(), tok, 10, 20, nil); !errors.Is(err, persistence.ErrGap) {
			t.Errorf("it is applied: %v", err)
		}
	}
	at, err := s.Watermark(t.Context())
	if err != nil || at != 10 || headField(t, s, "lost") != "20" {
		t.Errorf("the watermark is %d, %v, and it has lost %q", at, err, headField(t, s, "lost"))
	}
}
