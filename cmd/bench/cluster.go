package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A cluster is three nodes on this machine. Its address and operator are those of the node that
// leads.
type cluster struct {
	server
	nodes [3]clusterNode
	leads int      // place of the node that leads
	env   []string // of the nodes, beside that of all
	dir   string   // of their folders, below that of the program
	peers []string // the nodes' addresses for each other, as --nodes has them
}

// program is the exchange.
func (c *cluster) program() string { return filepath.Join(filepath.Dir(c.dir), "exchange") }

// A clusterNode is one process, which may be started again.
type clusterNode struct {
	address, operator string
	args, env         []string
	log               *os.File
	cmd               *exec.Cmd
}

// clusterTick is cluster.tick_ms of the nodes.
const clusterTick = 30

// launch makes the certificates, starts the nodes in folders of their own, and waits until one of
// them leads.
func (c *cluster) launch(dir string) error {
	dir, err := os.MkdirTemp(dir, "cluster-")
	if err != nil {
		return err
	}
	c.dir = dir
	program := c.program()
	file := filepath.Join(dir, "settings.yaml")
	if err := os.WriteFile(file, []byte(settings+c.settings), 0o600); err != nil {
		return err
	}
	certificates := filepath.Join(dir, "certificates")
	for i := range c.nodes {
		peers, err := freeAddress()
		if err != nil {
			return err
		}
		c.peers = append(c.peers, nodeName(i)+"="+peers)
	}
	if out, err := exec.Command(program, append([]string{"cluster", "init", certificates},
		c.peers...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("cluster init: %w: %s", err, out)
	}
	for i := range c.nodes {
		n, err1, err2, err3 := &c.nodes[i], error(nil), error(nil), error(nil)
		n.address, err1 = freeAddress()
		n.operator, err2 = freeAddress()
		data := filepath.Join(dir, nodeName(i))
		n.log, err3 = os.Create(data + ".log")
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		n.args = []string{program, "serve", "--config", file, "--no-rate-limits", "--listen",
			n.address, "--operator", n.operator, "--store", "pebble:" + data, "--node", nodeName(i),
			"--nodes", strings.Join(c.peers, ",")}
		n.env = append(os.Environ(), "EXCHANGE_OPERATOR_TOKEN="+token, manyOrders,
			"EXCHANGE_CLUSTER_TICK_MS="+strconv.Itoa(clusterTick),
			"EXCHANGE_CLUSTER_FOLDER="+filepath.Join(certificates, nodeName(i)))
		n.env = append(n.env, c.env...)
		if err := n.start(); err != nil {
			return err
		}
		c.stops = append(c.stops, n.kill)
	}
	return c.findLeader()
}

func nodeName(node int) string { return string(rune('a' + node)) }

func (n *clusterNode) start() error {
	n.cmd = exec.Command(n.args[0], n.args[1:]...)
	n.cmd.Stdout, n.cmd.Stderr, n.cmd.Env = n.log, n.log, n.env
	return n.cmd.Start()
}

func (n *clusterNode) kill() {
	n.cmd.Process.Kill() //nolint:errcheck // it may have ended
	n.cmd.Wait()         //nolint:errcheck
}

// findLeader waits until all nodes are there, and agree on the one that leads.
func (c *cluster) findLeader() error {
	err := await("a cluster of three nodes", func() bool {
		for i := range c.nodes {
			if c.complete(i) {
				c.leads = i
				return true
			}
		}
		return false
	})
	if err != nil {
		return err
	}
	c.address, c.operator = c.nodes[c.leads].address, c.nodes[c.leads].operator
	return nil
}

// standing is a node's view of the cluster.
type standing struct {
	Leader string
	Serves bool
	Nodes  []struct {
		Lag    *uint64
		Silent *uint64 `json:"silent_ticks"`
	}
}

// complete reports whether a node leads and serves, as all say, and all others have its log. One
// that stood still says that it leads for a moment longer than the others do.
func (c *cluster) complete(leader int) bool {
	for i := range c.nodes {
		var s standing
		err := askOperator("GET", c.nodes[i].operator, "cluster", nil, &s)
		if err != nil || s.Leader != nodeName(leader) ||
			i == leader && (!s.Serves || !s.allHaveTheLog()) {
			return false
		}
	}
	return true
}

// allHaveTheLog reports whether the leader receives messages of all, and they lack little.
func (s *standing) allHaveTheLog() bool {
	const few = 1000 // entries
	for _, n := range s.Nodes {
		if n.Lag == nil || *n.Lag > few || n.Silent == nil || *n.Silent > 3 {
			return false
		}
	}
	return true
}

// A clusterLoad is orders at the node that leads, beside an exchange of one machine.
type clusterLoad struct {
	cluster
	follower *row
}

// newClusterLoad measures with this many connections; so does the yardstick.
func newClusterLoad(o options, connections int, yardstick *server, mostCPU float64) *clusterLoad {
	o.connections = connections
	title := fmt.Sprintf("node that leads three, %d connections", connections)
	c := &clusterLoad{cluster: cluster{server: *newServer(title, o, nil, yardstick, 0)}}
	c.cpu.aim.mostRatio = mostCPU
	c.follower = &row{subject: fmt.Sprintf("CPU: node that follows, %d connections", connections),
		unit: "us/request", group: groupCPU, aim: aim{most: 25}}
	return c
}

func (c *clusterLoad) rows() []*row { return append(c.server.rows(), c.follower) }

func (c *clusterLoad) begin(_ context.Context, dir string) error {
	if err := c.launch(dir); err != nil {
		return err
	}
	users, err := makeAccounts(c.operator, c.options.connections, c.base)
	if err != nil {
		return err
	}
	c.clients, err = dial(c.address, c.options.connections, users,
		func(i int) string { return c.base(i) + "_USDT" })
	if err != nil {
		return err
	}
	_, err = c.clients.run(c.options.length)
	return err
}

func (c *clusterLoad) measure(ctx context.Context) error {
	c.pids = []int{c.nodes[c.leads].cmd.Process.Pid}
	followers := []int{}
	for i := range c.nodes {
		if i != c.leads {
			followers = append(followers, c.nodes[i].cmd.Process.Pid)
		}
	}
	before, err := cpuOf(followers)
	if err != nil {
		return err
	}
	if err := c.server.measure(ctx); err != nil {
		return err
	}
	after, err := cpuOf(followers)
	if err != nil {
		return err
	}
	requests := float64(c.clients.result.requests)
	each := (after - before).Seconds() * 1e6 / float64(len(followers))
	c.follower.values = append(c.follower.values, each/requests)
	if !c.complete(c.leads) {
		return errors.New("another node leads now")
	}
	return nil
}

// A failover is for how long no client gets an acknowledgement when the node that leads is lost.
type failover struct {
	cluster
	kill, stop, transfer *row
	asking               *asking
}

func newFailover(o options, accounts int, most float64) *failover {
	f := &failover{}
	f.title, f.options, f.accounts = "fail-over, "+show(float64(accounts))+" accounts", o, accounts
	silence := func(what string, most float64) *row {
		return &row{subject: fmt.Sprintf("silence of clients at %s, %s accounts", what,
			show(float64(accounts))), unit: "s", group: groupFailover, aim: aim{most: most}}
	}
	f.kill, f.stop, f.transfer = silence("a kill", most), silence("a stop", 2.5),
		silence("a hand-over", 0.3)
	return f
}

func (f *failover) rows() []*row { return []*row{f.kill, f.stop, f.transfer} }

func (f *failover) begin(_ context.Context, dir string) error {
	if err := f.launch(dir); err != nil {
		return err
	}
	users, err := makeAccounts(f.operator, f.accounts, f.base)
	if err != nil {
		return err
	}
	f.asking = newAsking(f.nodes[:], users[:readerCount])
	f.stops = append(f.stops, f.asking.stop)
	return nil
}

func (f *failover) measure(context.Context) error {
	for _, fault := range []struct {
		row  *row
		do   func(n *clusterNode) error
		mend func(n *clusterNode) error
	}{
		{f.kill, func(n *clusterNode) error { n.kill(); return nil }, (*clusterNode).start},
		{f.stop, func(n *clusterNode) error { return n.cmd.Process.Signal(syscall.SIGSTOP) },
			func(n *clusterNode) error { return n.cmd.Process.Signal(syscall.SIGCONT) }},
		{f.transfer, func(n *clusterNode) error {
			return operate(n.operator, "cluster/transfer", map[string]any{}, nil)
		}, func(*clusterNode) error { return nil }},
	} {
		if err := f.findLeader(); err != nil {
			return err
		}
		n := &f.nodes[f.leads]
		silence, err := f.asking.longest(n.address, func() error { return fault.do(n) })
		if err := errors.Join(err, fault.mend(n)); err != nil {
			return err
		}
		fault.row.values = append(fault.row.values, silence.Seconds())
	}
	return nil
}

// settling is how long acknowledgements must come from another node for a fail-over to be over.
const settling = time.Second
