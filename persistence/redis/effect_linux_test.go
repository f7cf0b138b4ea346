//go:build prove

package redis

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"exchange/persistence"
	"exchange/persistence/redistest"
)

// A way is one in which Redis answers `appendonly yes` while it acknowledges writes that are in no
// file. The store has seen a way's preparations; only one sign reveals its beginning.
type way struct {
	name           string
	prepare, begin func(t *testing.T, r *redistest.Server)
}

func holds(t *testing.T, r *redistest.Server) { r.HoldRewrites() }
func fails(t *testing.T, r *redistest.Server) { r.FailRewrites() }

func switchOn(t *testing.T, r *redistest.Server) {
	set(t, r.Client(), "appendonly", "no")
	set(t, r.Client(), "appendonly", "yes")
}

var ways = []way{
	{"the first rewrite runs", holds, func(t *testing.T, r *redistest.Server) {
		switchOn(t, r)
		r.AwaitRewrite()
	}},
	{"the first rewrite has failed", fails, func(t *testing.T, r *redistest.Server) {
		switchOn(t, r)
		r.AwaitFailedRewrite()
	}},
	{"switched on after the counts were reset", func(t *testing.T, r *redistest.Server) {
		r.HoldRewrites()
		set(t, r.Client(), "maxmemory", "0") // as many calls as are to come
	}, func(t *testing.T, r *redistest.Server) {
		succeeds(t, r.Client().ConfigResetStat(t.Context()).Err())
		switchOn(t, r)
		r.AwaitRewrite()
	}},
	{"after a full synchronisation", fails, func(t *testing.T, r *redistest.Server) {
		r.ResyncWholly(redistest.Start(t))
		r.AwaitFailedRewrite()
	}},
}

// notYet wants an error that says that writes are in no file, and that passes.
func notYet(t *testing.T, err error) {
	t.Helper()
	var not *notInEffect
	if !errors.As(err, &not) || !errors.Is(err, persistence.ErrNotInEffect) ||
		errors.Is(err, persistence.ErrNotDurable) {
		t.Fatalf("error is %v, want one of an append-only file that is not in effect", err)
	}
}

// kill -9 of Redis at such a moment loses no acknowledged write.
func TestNothingIsAcknowledgedWithoutAppendOnlyFile(t *testing.T) {
	t.Log(redistest.Version(t))
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			server := redistest.Start(t)
			w.prepare(t, server)
			s, tok, _ := mustOpen(t, server.URL(), Options{recheck: time.Nanosecond})
			appendTo(t, s, tok, 0, 200, "before ")
			w.begin(t, server)
			for range 5 { // with WAITAOF each takes its time
				notYet(t, s.Append(t.Context(), tok, 200, 201, []byte("in no file")))
				notYet(t, s.Check(t.Context(), tok))
			}
			server.EndRewrites()
			seq := uint64(200)
			resumes(t, s, tok, &seq)
			server.Kill()
			server.Restart()
			if _, _, last := mustOpen(t, server.URL(), Options{}); last != seq {
				t.Fatalf("the journal ends at %d, want %d", last, seq)
			}
		})
	}
}

// A start waits, as for a Redis that loads its data, and logs it.
func TestStartWaitsForAppendOnlyFile(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			server := redistest.Start(t)
			w.prepare(t, server)
			w.begin(t, server)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			waits := slog.New(slog.NewTextHandler(onText{"waiting for Redis", cancel}, nil))
			_, err := Open(ctx, server.URL(), Options{Logger: waits})
			wantError(t, err, context.Canceled)
			notYet(t, err)
			server.EndRewrites()
			mustOpen(t, server.URL(), Options{})
		})
	}
}

// An ordinary or failed rewrite changes nothing: the file keeps its content.
func TestOrdinaryRewriteDelaysNothing(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client()
	server.HoldRewrites()
	s, tok, seq := mustOpen(t, server.URL(), Options{recheck: time.Nanosecond})
	rewrite := func() {
		t.Helper()
		succeeds(t, admin.BgRewriteAOF(t.Context()).Err())
	}
	goOn := func() {
		t.Helper()
		for range 20 {
			appendTo(t, s, tok, seq, seq+1, "meanwhile ")
			seq++
			succeeds(t, s.Check(t.Context(), tok))
		}
	}
	rewrite()
	server.AwaitRewrite()
	goOn()
	server.EndRewrites()
	server.FailRewrites()
	resumes(t, s, tok, &seq)
	rewrite()
	server.AwaitFailedRewrite()
	goOn()
	server.Kill()
	server.Restart()
	if _, _, last := mustOpen(t, server.URL(), Options{}); last != seq {
		t.Fatalf("the journal ends at %d, want %d", last, seq)
	}
}
