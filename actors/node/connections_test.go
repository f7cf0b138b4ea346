package node

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"exchange/actors"
	"exchange/persistence"
	"exchange/persistence/line"
)

// A node accepts a few operators' connections at a time, in addition to the one for clients'
// commands.
func TestOperatorsUseSeparateConnections(t *testing.T) {
	bubble(t, func(t *testing.T) {
		came := make(chan string, OperatorsAtOnce)
		c := newCluster(t, func(_ int, o *actors.Options) {
			o.Operators = func(from string, conn net.Conn) {
				defer conn.Close()
				came <- from
				io.Copy(conn, conn) //nolint:errcheck // checked at the other end
			}
		})
		r := c.next()
		fund(t, r.Engine, "ann", nil)
		at := (r.at + 1) % len(c.nodes)
		b, replica := c.branch(at), c.nodes[at].replica
		dial := func() (net.Conn, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			return DialOperators(ctx, replica, c.list[r.at].Name)
		}
		var open []net.Conn
		for range OperatorsAtOnce {
			conn := must[net.Conn](t)(dial())
			defer conn.Close()
			open = append(open, conn)
			if from := <-came; from != c.list[at].Name {
				t.Errorf("node %s is taken for %s", c.list[at].Name, from)
			}
		}
		if _, err := dial(); err == nil || !strings.Contains(err.Error(),
			"too many operators' requests") {
			t.Error("one too many is accepted:", err)
		}
		if err := b.Commands.Writable(); err != nil {
			t.Error("operators' connections occupy that of clients:", err)
		}
		text := make([]byte, 4)
		if _, err := open[0].Write([]byte("text")); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadFull(open[0], text); err != nil || string(text) != "text" {
			t.Errorf("%q comes back: %v", text, err)
		}
		open[1].Close()
		var again net.Conn
		eventually(t, "there is room", func() (ok bool) {
			var err error
			again, err = dial()
			return err == nil
		})
		again.Close()
	})
}

// greeting is how a connection of a kind begins.
func greeting(kind byte, version byte) string {
	return string([]byte{0, 0, 0, 2, kind, version})
}

// A connection of an unknown kind, or without a greeting, is closed.
func TestConnectionOfUnknownKindIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, func(_ int, o *actors.Options) { o.Timing.OwnerStale = 5 * time.Second })
		r := c.next()
		at := (r.at + 1) % len(c.nodes)
		var replica persistence.Replica = c.nodes[at].replica
		for what, says := range map[string]string{"silence": "",
			"another purpose":              greeting('x', 1),
			"operators that are not taken": greeting(callOperators, 1),
			"nonsense":                     "\x00\x00\x00\x00"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			conn := must[net.Conn](t)(replica.Dial(ctx, c.list[r.at].Name))
			cancel()
			io.WriteString(conn, says) //nolint:errcheck // it may have ended
			succeeds(t, conn.SetReadDeadline(time.Now().Add(time.Hour)))
			if b, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) ||
				(what != "silence" && !strings.Contains(string(b), line.ErrPurpose.Error())) {
				t.Errorf("%s is answered: %q, %v", what, b, err)
			}
			conn.Close()
		}
		if err := r.Err(); err != nil {
			t.Error(err)
		}
	})
}

// An observer cannot forward an operator's request, in any form.
func TestObserverCannotForwardOperatorRequests(t *testing.T) {
	bubble(t, func(t *testing.T) {
		v := newObservatory(t, func(_ int, o *actors.Options) {
			o.Operators = func(from string, conn net.Conn) {
				t.Errorf("a request of %s is taken", from)
				conn.Close()
			}
		})
		r := v.next()
		for _, node := range v.list {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			conn := must[net.Conn](t)(v.dial("o1")(ctx, node.Name))
			cancel()
			//nolint:errcheck // the reply is checked
			io.WriteString(conn, greeting(callOperators, 1))
			if b, _ := io.ReadAll(conn); !strings.Contains(string(b), line.ErrPurpose.Error()) {
				t.Errorf("node %s answers %q", node.Name, b)
			}
			conn.Close()
		}
		if err := r.Err(); err != nil {
			t.Error(err)
		}
	})
}
