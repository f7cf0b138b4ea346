package observing

import (
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"exchange/core/state"
)

// asksForImage opens a feed with an image, and returns its first frame.
func asksForImage(t *testing.T, s *Server, name string) (conn net.Conn, kind byte, text string) {
	t.Helper()
	conn, there := net.Pipe()
	t.Cleanup(func() { conn.Close() })
	go s.Serve(name, there)
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := hello(conn, laneFeed, 7, make([]byte, 17)...); err != nil {
		t.Fatal(err)
	}
	kind, payload, err := readFrame(conn, nil)
	if err != nil {
		t.Fatal(err)
	}
	return conn, kind, string(payload)
}

// An observer that takes its image slowly keeps it as long as no other one asks for an image, or
// its time is not over. Otherwise it ends for the other one.
func TestASlowObserverKeepsNoOtherFromItsImage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newRealm(t)
		m, h := v.add("a", nil)
		m.image, m.imageAt = state.New().AppendTo(nil), 4
		s := NewServer(feedOf{m}, h, slog.New(slog.DiscardHandler), time.Hour)
		slow, kind, _ := asksForImage(t, s, "o1")
		if kind != feedBegin {
			t.Fatalf("an image begins with %d", kind)
		}
		_, kind, text := asksForImage(t, s, "o2")
		if kind != feedRefused || text[1:] != errImaging.Error() {
			t.Fatalf("another one hears %d %q", kind, text)
		}
		time.Sleep(usualPatience.grace)
		next, kind, _ := asksForImage(t, s, "o3")
		if kind != feedBegin {
			t.Fatalf("the next one hears %d", kind)
		}
		if _, err := slow.Read(make([]byte, 1<<20)); err == nil {
			t.Error("the slow one goes on")
		}
		if _, kind, _ = asksForImage(t, s, "o1"); kind != feedRefused {
			t.Errorf("it ends the next one in turn, and hears %d", kind)
		}
		kind = feedBegin
		for kind != feedImage {
			var err error
			if kind, _, err = readFrame(next, nil); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if now := s.imaging; now != nil {
			t.Errorf("the image of %s is not over", now.to.from)
		}
	})
}
