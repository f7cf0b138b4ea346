package observing

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange/core/state"
	"exchange/persistence/line"
)

// asksForImage opens a feed with an image, and returns its start.
func asksForImage(t *testing.T, s *Server, name string) (a *line.Answer, err error) {
	t.Helper()
	conn, there := net.Pipe()
	t.Cleanup(func() { conn.Close() })
	go s.meets(name, there)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := line.Greet(ctx, conn, Call, Version, make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	session := newSession(conn, time.Hour, nil)
	go session.Run() //nolint:errcheck // the answer ends with it
	if a, err = session.Ask(askFeed, 1, []byte{0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	page, err := a.Next(ctx)
	if err == nil && page[0] != feedBegin {
		t.Fatalf("a feed starts with %d", page[0])
	}
	return a, err
}

// A slow image transfer continues while no other observer asks for an image, or its time is not
// over. Otherwise it is aborted for the other one.
func TestSlowObserverYieldsImageTransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newRealm(t)
		m, h := v.add("a", nil)
		m.image, m.imageAt = state.New().AppendTo(nil), 4
		s := NewServer(feedOf{m}, h, slog.New(slog.DiscardHandler), time.Hour)
		slow, err := asksForImage(t, s, "o1")
		if err != nil {
			t.Fatal(err)
		}
		_, err = asksForImage(t, s, "o2")
		if err == nil || !strings.Contains(err.Error(), errTransfer.Error()) {
			t.Fatalf("another one gets %v", err)
		}
		time.Sleep(usualPatience.grace)
		next, err := asksForImage(t, s, "o3")
		if err != nil {
			t.Fatalf("the next one gets %v", err)
		}
		if _, err := slow.Next(t.Context()); err != line.ErrLost {
			t.Errorf("the slow one continues: %v", err)
		}
		if _, err = asksForImage(t, s, "o1"); err == nil {
			t.Error("it aborts the next one in turn")
		}
		for page := []byte(nil); !bytes.HasSuffix(page, []byte{feedImage}); {
			if page, err = next.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		next.End()
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if now := s.transfer; now != nil {
			t.Errorf("the image of %s is not over", now.to.from)
		}
	})
}
