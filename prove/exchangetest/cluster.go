package exchangetest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// NewNode prepares a node. folder is that of `exchange cluster init`, and nodes are the names and
// addresses of all nodes.
func NewNode(t testing.TB, folder, name string, nodes []string) *Server {
	t.Helper()
	s := New(t, "pebble:"+t.TempDir(), "--node", name, "--nodes", strings.Join(nodes, ","))
	s.Args = append(s.Args, "--public-url", "http://"+s.Listen)
	// A long tick keeps elections rare on a loaded processor.
	s.Env = append(s.Env, "EXCHANGE_CLUSTER_FOLDER="+filepath.Join(folder, name),
		"EXCHANGE_CLUSTER_TICK_MS=100")
	return s
}

// NewObserver prepares an observer of nodes that name it.
func NewObserver(t testing.TB, folder, name string, nodes []string) *Server {
	t.Helper()
	s := New(t, "pebble:"+t.TempDir(), "--node", name, "--observer", "--follow",
		strings.Join(nodes, ","))
	s.Env = append(s.Env, "EXCHANGE_CLUSTER_FOLDER="+filepath.Join(folder, name))
	return s
}

// SendsMailsTo has the next start send the mails to another mail server.
func (s *Server) SendsMailsTo(m *Mails) {
	s.Mails = m
	s.Env = append(s.Env, m.Env()...)
}

// An Entry is a process of a cluster that clients use: it does not lead.
type Entry string

const (
	Follower Entry = "follower"
	Observer Entry = "observer"
)

// A Cluster is one exchange: three nodes, and an observer of them.
type Cluster struct {
	Processes []*Server // the observer is the last one

	t testing.TB
}

// NewCluster prepares a cluster, and starts none of its processes.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	const observer = "o1"
	c := &Cluster{t: t}
	folder, names := filepath.Join(t.TempDir(), "cluster"), []string{"a", "b", "c"}
	var list []string
	for _, name := range names {
		list = append(list, name+"="+FreeAddress(t))
	}
	for _, name := range names {
		s := NewNode(t, folder, name, list)
		s.Env = append(s.Env, "EXCHANGE_CLUSTER_OBSERVERS="+observer)
		if len(c.Processes) > 0 { // all nodes share one mail server
			s.SendsMailsTo(c.Processes[0].Mails)
		}
		c.Processes = append(c.Processes, s)
	}
	for _, args := range [][]string{append([]string{"init", folder}, list...),
		{"certify", folder, observer, "--observer"}} {
		args = append([]string{"cluster"}, args...)
		if out, text, code := c.Processes[0].Command(args...); code != 0 {
			t.Fatalf("%q ends with %d: %s%s", args, code, out, text)
		}
	}
	c.Processes = append(c.Processes, NewObserver(t, folder, observer, list))
	return c
}

// Demo makes the next start of each process serve the demo.
func (c *Cluster) Demo() {
	for _, s := range c.Processes {
		s.Demo()
	}
}

// Start runs all processes, and returns the entry, and the exchange as its users see it: operators
// use the leader, and clients the entry. From then on the agreed configuration does not change, so
// that the entry serves without a break.
func (c *Cluster) Start(entry Entry) (at, exchange *Server) {
	c.t.Helper()
	last := len(c.Processes) - 1
	nodes, observer := c.Processes[:last], c.Processes[last]
	for _, s := range nodes {
		s.Run()
	}
	// A new cluster agrees on the configuration twice: at first, and once all nodes have reported
	// the newest format. A later term finds it complete.
	follower := c.leader(nodes)
	Eventually(c.t, "the newest format may be written", func() bool {
		var view struct {
			Format int
			Nodes  []struct{ Reads int }
		}
		_, err := follower.Call("GET", "/operator/v1/cluster", nil, &view)
		return err == nil && len(view.Nodes) > 0 && view.Format > 0 &&
			view.Format == view.Nodes[0].Reads
	})
	if code := follower.Terminate(); code != 0 {
		c.t.Fatalf("the leader ends with %d", code)
	}
	seen := *c.leader(nodes)
	follower.Start()
	observer.Start()
	if at = observer; entry == Follower {
		at = follower
	}
	seen.Listen = at.Listen
	return at, &seen
}

// leader waits for a leader, and returns it.
func (c *Cluster) leader(nodes []*Server) *Server {
	c.t.Helper()
	led := -1
	Eventually(c.t, "a node leads", func() bool {
		led = slices.IndexFunc(nodes, func(s *Server) bool {
			status, _, err := s.Client.Get(nil, "http://"+s.Listen+"/leaderz")
			return err == nil && status == 200
		})
		return led >= 0
	})
	return nodes[led]
}
