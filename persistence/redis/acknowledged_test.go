//go:build prove

package redis

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
	"exchange/persistence/redistest"
)

// appendTo appends batches of one record each.
func appendTo(t *testing.T, s *Store, tok persistence.Token, from, to uint64, text string) {
	t.Helper()
	for seq := from; seq < to; seq++ {
		succeeds(t, s.Append(t.Context(), tok, seq, seq+1, fmt.Append(nil, text, seq)))
	}
}

// cut truncates a Redis to a sequence, like a lagging replica or a truncated file: the data is
// whole, and shorter.
func cut(t *testing.T, s *Store, at uint64, text string) {
	t.Helper()
	c := s.history
	for {
		last, err := c.XRevRangeN(t.Context(), s.stream(), "+", "-", 1).Result()
		succeeds(t, err)
		if len(last) == 0 || last[0].ID == dec(at)+"-0" {
			break
		}
		succeeds(t, c.XDel(t.Context(), s.stream(), last[0].ID).Err())
	}
	succeeds(t, c.Do(t.Context(), "XSETID", s.stream(), dec(at)+"-0", "ENTRIESADDED", at,
		"MAXDELETEDID", "0-0").Err())
	succeeds(t, c.HSet(t.Context(), s.head(), "seq", dec(at), "dig",
		hex(codec.Digest(fmt.Append(nil, text, at-1)))).Err())
}

func TestRedisWithLostAcknowledgedAppendsIsRefused(t *testing.T) {
	server := redistest.Start(t)
	file := filepath.Join(t.TempDir(), HeadFile)
	o := Options{Head: file, Logger: quiet}
	s, tok, _ := mustOpen(t, server.URL(), o)
	appendTo(t, s, tok, 0, 20, "batch ")
	cut(t, s, 15, "batch ")
	// The running exchange sees the loss at its next append, and ends.
	wantError(t, s.Append(t.Context(), tok, 20, 21, []byte("next")), persistence.ErrGap)
	s.Close()
	epoch := server.Client().HGet(t.Context(), s.head(), "epoch").Val()
	for range 2 { // each later start fails, too
		wantNoStart(t, server.URL(), o, persistence.ErrCorrupt,
			"up to sequence 20 were acknowledged", "ends at 15", "restore a backup", "remove "+file)
	}
	if got := server.Client().HGet(t.Context(), s.head(), "epoch").Val(); got != epoch {
		t.Error("a refused start has taken the store over")
	}
	// A host that has never seen it fails, too, because the running one has left a mark.
	other := mustOpenAlone(t, server.URL(), Options{Head: filepath.Join(t.TempDir(), HeadFile)})
	if beat, err := other.Beat(t.Context()); err != nil || beat.Lost != "20" || beat.End.Seq != 15 {
		t.Fatalf("%+v, %v", beat, err)
	}
	_, _, err := other.Acquire(t.Context(), persistence.Claim{Owner: "another host"})
	wantError(t, err, persistence.ErrCorrupt, `sequence "20"`, "--take-over")
	// The loss is accepted.
	succeeds(t, os.Remove(file))
	s = mustOpenAlone(t, server.URL(), o)
	tok, last, err := s.Acquire(t.Context(), persistence.Claim{Owner: "test", Insist: true})
	if err != nil || last != 15 {
		t.Fatalf("the journal ends at %d, %v", last, err)
	}
	appendTo(t, s, tok, 15, 20, "another ")
	s.Close()
	if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 {
		t.Fatal(fi, err)
	}
	mustOpen(t, server.URL(), o)
}

// One that was flushed ends at 0, and one that was cut off may have grown to the same length again.
func TestRedisWithOtherContentIsRefused(t *testing.T) {
	server := redistest.Start(t)
	file := filepath.Join(t.TempDir(), HeadFile)
	o := Options{Head: file, Logger: quiet}
	s, tok, _ := mustOpen(t, server.URL(), o)
	appendTo(t, s, tok, 0, 10, "batch ")
	s.Close()
	cut(t, mustOpenAlone(t, server.URL(), Options{}), 9, "batch ")
	other, tok, _ := mustOpen(t, server.URL(), Options{})
	appendTo(t, other, tok, 9, 10, "of another one ")
	wantNoStart(t, server.URL(), o, persistence.ErrCorrupt, "has another batch there")
	succeeds(t, server.Client().FlushAll(t.Context()).Err())
	wantNoStart(t, server.URL(), o, persistence.ErrCorrupt, "ends at 0")
}

// Another exchange has served meanwhile.
func TestRedisWithMoreRecordsIsAccepted(t *testing.T) {
	server := redistest.Start(t)
	first, second := Options{Head: filepath.Join(t.TempDir(), HeadFile)},
		Options{Head: filepath.Join(t.TempDir(), HeadFile)}
	var end uint64
	for round := range 6 {
		o := first
		if round%2 == 1 {
			o = second
		}
		s, tok, last := mustOpen(t, server.URL(), o)
		if last != end {
			t.Fatalf("the journal ends at %d, want %d", last, end)
		}
		appendTo(t, s, tok, end, end+3, "batch ")
		if got := s.acknowledged.Acknowledged().Seq; got != end+3 {
			t.Fatalf("the file has %d, want %d", got, end+3)
		}
		end += 3
		s.Close()
	}
	// Readers may rely on the journal's end, also without an append.
	s, _, _ := mustOpen(t, server.URL(), first)
	if got := s.acknowledged.Acknowledged().Seq; got != end {
		t.Fatalf("the file has %d, want %d", got, end)
	}
}

// A process is killed between its append and the file's update, or a Redis loses the tail between
// its check and the start.
func TestHeadFileMayLagAndStoreMayNotShrink(t *testing.T) {
	server := redistest.Start(t)
	o := Options{Head: filepath.Join(t.TempDir(), HeadFile), Logger: quiet}
	s, tok, _ := mustOpen(t, server.URL(), o)
	appendTo(t, s, tok, 0, 5, "batch ")
	succeeds(t, s.acknowledged.Reset(4))
	again, tok, last := mustOpen(t, server.URL(), o)
	if last != 5 {
		t.Fatalf("the journal ends at %d", last)
	}
	appendTo(t, again, tok, 5, 6, "batch ")
	cut(t, s, 3, "batch ")
	_, _, err := again.Acquire(t.Context(), persistence.Claim{Owner: "test"})
	wantError(t, err, persistence.ErrCorrupt)
}

// A restore is not refused for the earlier acknowledged end, and sets a new beginning of the
// journal. A refused restore changes nothing.
func TestRestoreResetsHeadFile(t *testing.T) {
	server := redistest.Start(t)
	file := filepath.Join(t.TempDir(), HeadFile)
	o := Options{Head: file, Logger: quiet}
	fill := Options{Head: file, Fill: true}
	s, tok, _ := mustOpen(t, server.URL(), o)
	appendTo(t, s, tok, 0, 20, "batch ")
	cut(t, s, 15, "batch ")
	s.Close()
	s, tok, _ = mustOpen(t, server.URL(), fill)
	if err := s.Begin(t.Context(), tok, 12); err == nil {
		t.Fatal("a store with a journal was reset")
	}
	s.Close()
	wantNoStart(t, server.URL(), o, persistence.ErrCorrupt) // the file is unchanged
	succeeds(t, server.Client().FlushAll(t.Context()).Err())
	s, tok, _ = mustOpen(t, server.URL(), fill)
	for range 2 {
		succeeds(t, s.Begin(t.Context(), tok, 12))
	}
	s.Close()
	wantNoStart(t, server.URL(), o, persistence.ErrCorrupt) // nor after an unfinished one
	s, tok, _ = mustOpen(t, server.URL(), fill)
	restored(t, s, tok, 12)
	s.Close()
	s, tok, last := mustOpen(t, server.URL(), o)
	if last != 12 {
		t.Fatalf("the journal ends at %d", last)
	}
	appendTo(t, s, tok, 12, 13, "batch ")
	s.Close()
	succeeds(t, server.Client().FlushAll(t.Context()).Err())
	wantNoStart(t, server.URL(), o, persistence.ErrCorrupt, "13") // it is kept as before
	// Where there was no file, a restore leaves no file.
	none := filepath.Join(t.TempDir(), HeadFile)
	s, tok, _ = mustOpen(t, server.URL(), Options{Head: none, Fill: true})
	restored(t, s, tok, 12)
	if _, err := os.Stat(none); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

// An empty file does not count as 0: neither a start nor a restore continues.
func TestDamagedHeadFileIsRefused(t *testing.T) {
	server := redistest.Start(t)
	file := filepath.Join(t.TempDir(), HeadFile)
	o := Options{Head: file, Logger: quiet}
	s, tok, _ := mustOpen(t, server.URL(), o)
	appendTo(t, s, tok, 0, 9, "batch ")
	s.Close()
	succeeds(t, os.Truncate(file, 16))
	for _, fill := range []bool{false, true} {
		o.Fill = fill
		wantNoStart(t, server.URL(), o, persistence.ErrCorrupt, file, "remove it")
	}
	succeeds(t, os.Remove(file))
	o.Fill = false
	s, _, last := mustOpen(t, server.URL(), o)
	if last != 9 || !s.HeadMissing() {
		t.Fatalf("the journal ends at %d, the file is missing: %v", last, s.HeadMissing())
	}
}

// An append that is not in the file is never acknowledged.
func TestAppendWithFailedHeadFileIsUnknown(t *testing.T) {
	server := redistest.Start(t)
	s, tok, _ := mustOpen(t, server.URL(), Options{Head: filepath.Join(t.TempDir(), HeadFile)})
	appendTo(t, s, tok, 0, 1, "batch ")
	succeeds(t, s.acknowledged.Close())
	wantError(t, s.Append(t.Context(), tok, 1, 2, []byte("batch")), os.ErrClosed)
}

// The file follows acknowledged appends alone. A refused append leaves it, and a repeated append
// moves it.
func TestHeadFileFollowsAcknowledgedAppends(t *testing.T) {
	server := redistest.Start(t)
	s, tok, _ := mustOpen(t, server.URL(), Options{Head: filepath.Join(t.TempDir(), HeadFile)})
	says := func(want uint64) {
		t.Helper()
		if got := s.acknowledged.Acknowledged().Seq; got != want {
			t.Fatalf("the file has %d, want %d", got, want)
		}
	}
	for seq := range uint64(3) {
		appendTo(t, s, tok, seq, seq+1, "batch ")
		says(seq + 1)
	}
	wantError(t, s.Append(t.Context(), tok, 7, 8, []byte("a batch")), persistence.ErrGap)
	says(3)
	succeeds(t, s.acknowledged.Reset(2))
	appendTo(t, s, tok, 2, 3, "batch ") // the same bytes again
	says(3)
	other, _, _ := mustOpen(t, server.URL(), Options{})
	other.Close()
	wantError(t, s.Append(t.Context(), tok, 3, 4, []byte("a batch")), persistence.ErrFenced)
	says(3)
}

// restored fills an empty store up to a sequence, as a restore does.
func restored(t *testing.T, s *Store, tok persistence.Token, seq uint64) {
	t.Helper()
	succeeds(t, s.Begin(t.Context(), tok, seq), s.Apply(t.Context(), tok, 0, seq, nil),
		s.SaveSnapshot(t.Context(), tok, seq, strings.NewReader("an image")))
}
