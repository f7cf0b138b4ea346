package replicated

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange/persistence"
)

// A member opens connections to another one that accepts them, until one of them is removed. The
// configuration may still name it.
func TestOnlyMembersOpenConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newNodes(t)
		c.all(0, 1, 2)
		at, _ := c.own()
		led, ctx := c.stores[at], t.Context()
		other := (at + 1) % voters
		name, s := c.list[other].Name, c.stores[other]
		if st := led.Standing(); st.Leader != c.list[at].Name {
			t.Errorf("node %q leads, and shows %q as the leader", c.list[at].Name, st.Leader)
		}
		if _, err := s.Dial(ctx, c.list[at].Name); err == nil ||
			!strings.Contains(err.Error(), "takes no connections yet") {
			t.Errorf("before it takes any: %v", err)
		}
		if _, err := s.Dial(ctx, name); !errors.Is(err, persistence.ErrInvalid) {
			t.Errorf("to itself: %v", err)
		}
		if _, err := s.Dial(ctx, "n9"); err == nil ||
			!strings.Contains(err.Error(), "not a member") {
			t.Errorf("to a stranger: %v", err)
		}
		ended := make(chan error, voters)
		take := func(from string, conn net.Conn) {
			defer conn.Close()
			_, err := io.WriteString(conn, from+"\n")
			if err == nil {
				_, err = io.Copy(conn, conn)
			}
			ended <- err
		}
		led.Accept(take)
		s.Accept(take)

		there, err := s.Dial(ctx, c.list[at].Name)
		must(t, err)
		defer there.Close()
		back, err := led.Dial(ctx, name)
		must(t, err)
		defer back.Close()
		for conn, from := range map[net.Conn]string{there: name, back: c.list[at].Name} {
			must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
			got := make([]byte, len(from)+1)
			if _, err := io.ReadFull(conn, got); err != nil || string(got) != from+"\n" {
				t.Errorf("node %s is taken for %q: %v", from, got, err)
			}
			must(t, echoes(conn))
		}

		within, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		must(t, led.Remove(within, name))
		for _, conn := range []net.Conn{there, back} {
			_, err := conn.Read(make([]byte, 1))
			if late, ok := errors.AsType[net.Error](err); err == nil || ok && late.Timeout() {
				t.Fatalf("a connection of a removed node stays open: %v", err)
			}
			<-ended
		}
		if _, err := led.Dial(ctx, name); err == nil || !strings.Contains(err.Error(),
			"not a member") {
			t.Errorf("to a node that was removed: %v", err)
		}
	})
}
