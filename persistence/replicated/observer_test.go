package replicated

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// observer returns an observer of the nodes.
func (c *nodes) observer(name string) *Observer {
	c.Helper()
	cert, key, err := c.authority.IssueObserver(name)
	must(c.T, err)
	o, err := NewObserver(ObserverOptions{Cluster: cluster, Name: name, Nodes: c.list,
		Logger: quiet,
		Dial:   c.net.Dial, Credentials: proof(c.T, c.authority, cert, key)})
	must(c.T, err)
	c.Cleanup(func() { o.Close() })
	return o
}

// A node accepts the observers that its configuration names, once a handler is set, also while it
// follows. Nodes that do not name them are not involved.
func TestOnlyNamedObserversAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newNodes(t)
		c.change = map[int]func(*Options){}
		for i := range voters {
			c.change[i] = func(o *Options) { o.Observers = []string{"o1", "n1"} }
		}
		c.all(0, 1, 2)
		o, ctx := c.observer("o1"), t.Context()
		refused := func(what string, o *Observer, node, why string) {
			t.Helper()
			conn, err := o.Dial(ctx, node)
			if err == nil {
				conn.Close()
			}
			if err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %v", what, err)
			}
		}
		refused("before observers are taken", o, "n1", "takes no observers yet")
		took := make(chan string, 2*voters)
		for _, s := range c.stores {
			s.Accept(func(string, net.Conn) { t.Error("an observer is taken for a member") })
			s.AcceptObservers(func(from string, conn net.Conn) {
				defer conn.Close()
				took <- from
				io.Copy(conn, conn) //nolint:errcheck // the other end looks
			})
		}
		refused("a stranger", c.observer("o2"), "n1", "takes no observer o2")
		refused("a node that is not named", o, "n9", "not a node")
		for _, n := range c.list {
			for _, name := range []string{"o1", "n1"} { // a node's name is allowed
				conn, err := c.observer(name).Dial(ctx, n.Name)
				must(t, err)
				must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
				must(t, echoes(conn))
				if from := <-took; from != name {
					t.Errorf("observer %s is taken for %q", name, from)
				}
				conn.Close()
			}
		}
		c.stores[0].AcceptObservers(nil)
		refused("when observers are taken no more", o, "n1", "takes no observers yet")

		within, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		conn, err := o.Dial(within, "n2")
		must(t, err)
		must(t, c.stores[1].Close())
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("a node has ended, and its observer's connection has not")
		}
	})
}
