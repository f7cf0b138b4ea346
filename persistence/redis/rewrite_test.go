//go:build prove

package redis

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"exchange/persistence"
	"exchange/persistence/redistest"
)

// grown opens a store with a file that is larger than the least that is rewritten.
func grown(t *testing.T, url string, log *slog.Logger) (*Store, persistence.Token) {
	t.Helper()
	s, err := Open(t.Context(), url, Options{Logger: log, rewriteLeast: 1 << 10, trimEntries: 20})
	succeeds(t, err)
	t.Cleanup(func() { s.Close() })
	tok, _, err := s.Acquire(t.Context(), persistence.Claim{Owner: "test"})
	succeeds(t, err)
	for seq := range uint64(100) {
		succeeds(t, s.Append(t.Context(), tok, seq, seq+1, make([]byte, 100)))
	}
	return s, tok
}

// calls returns how often a command was called.
func calls(t *testing.T, s *Store, command string) string {
	t.Helper()
	info, err := s.info(t.Context(), "commandstats")
	succeeds(t, err)
	n, _, _ := strings.Cut(strings.TrimPrefix(info["cmdstat_"+command], "calls="), ",")
	return n
}

func TestGrownFileIsRewrittenAfterTrim(t *testing.T) {
	server := redistest.Start(t, "auto-aof-rewrite-percentage", "0")
	s, tok := grown(t, server.URL(), quiet)
	trim := func(upTo uint64) {
		t.Helper()
		succeeds(t, s.Trim(t.Context(), tok, upTo))
	}
	trim(50)
	if n := calls(t, s, "bgrewriteaof"); n != "1" {
		t.Fatalf("%q rewrites were requested", n)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		info, err := s.info(t.Context(), "persistence")
		succeeds(t, err)
		if info["aof_rewrite_in_progress"] == "0" && info["aof_last_bgrewrite_status"] == "ok" &&
			info["aof_base_size"] != "0" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the rewrite did not end: %v", info)
		}
	}
	trim(60)
	if n := calls(t, s, "bgrewriteaof"); n != "1" {
		t.Errorf("%q rewrites were requested, although nothing has grown", n)
	}
}

// Without permission the moment is left to Redis.
func TestForbiddenRewriteIsLoggedOnce(t *testing.T) {
	server := redistest.Start(t, "auto-aof-rewrite-percentage", "0")
	succeeds(t, server.Client().Do(t.Context(), "ACL", "SETUSER", "limited", "on", ">word", "~*",
		"&*", "+@all", "-bgrewriteaof").Err())
	var log bytes.Buffer
	url := strings.Replace(server.URL(), "redis://", "redis://limited:word@", 1)
	s, tok := grown(t, url, slog.New(slog.NewTextHandler(&log, nil)))
	for _, upTo := range []uint64{50, 60} {
		succeeds(t, s.Trim(t.Context(), tok, upTo))
	}
	if n := strings.Count(log.String(), "may not make Redis rewrite"); n != 1 {
		t.Errorf("it is logged %d times:\n%s", n, log.String())
	}
}

func TestJournalIsTrimmedInParts(t *testing.T) {
	server := redistest.Start(t, "stream-node-max-entries", "10")
	s, tok := grown(t, server.URL(), quiet)
	for _, upTo := range []uint64{63, 63, 98} {
		parts := 0
		err := s.Trim(persistence.WithPace(t.Context(), func() error {
			parts++
			return nil
		}), tok, upTo)
		succeeds(t, err)
		left, err := s.history.XRange(t.Context(), s.stream(), "-", "+").Result()
		succeeds(t, err)
		if first := fmt.Sprint(upTo+1, "-0"); len(left) != int(100-upTo) || left[0].ID != first {
			t.Errorf("up to %d: %d are left, from %s on", upTo, len(left), left[0].ID)
		}
		if upTo == 63 && len(left) > 0 && parts < 1 || upTo == 98 && parts < 3 {
			t.Errorf("up to %d: %d parts", upTo, parts)
		}
	}
}
