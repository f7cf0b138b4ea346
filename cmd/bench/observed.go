package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// An observed is orders at the node that leads, at a fixed rate, beside the same while an observer
// has subscribers: they must cost the node that leads nothing, and nothing more may go to the
// observer.
type observed struct {
	streamed
	nodes    *cluster
	observer server

	alone, watched          *row // CPU of the node that leads
	bytes, watchedBytes     *row // to the observer
	batches, watchedBatches *row // to the observer
}

const (
	observedRate        = 1_000 // requests a second
	observedConnections = 64
)

// The counters of what an observer is sent.
const (
	metricFedBatches = "exchange_cluster_feed_batches_total"
	metricFedBytes   = "exchange_cluster_feed_bytes_total"
)

func newObserved(o options) *observed {
	o.connections = observedConnections
	v := &observed{streamed: streamed{options: o}}
	v.nodes = &cluster{server: server{title: "three nodes", options: o},
		env: []string{"EXCHANGE_CLUSTER_OBSERVERS=" + observerName}}
	pair := func(subject, unit string, group int) (without, with *row) {
		of := func(who string) *row {
			return &row{subject: fmt.Sprintf("%s at %s/s, %s", subject, show(observedRate), who),
				unit: unit, group: group}
		}
		without, with = of("an observer without subscribers"), of("960 subscribers at an observer")
		with.yardstick, with.aim.mostRatio = without, 1.1
		return without, with
	}
	v.alone, v.watched = pair("CPU: node that leads", "us/request", groupCPU)
	v.bytes, v.watchedBytes = pair("bytes to the observer", "bytes/request", groupStream)
	v.batches, v.watchedBatches = pair("batches to the observer", "batches/request", groupStream)
	return v
}

func (v *observed) name() string { return "subscribers at an observer" }

func (v *observed) rows() []*row {
	return []*row{v.alone, v.watched, v.bytes, v.watchedBytes, v.batches, v.watchedBatches}
}

const observerName = "o"

// observe starts an observer of the nodes.
func (c *cluster) observe(x *server) error {
	certificates := filepath.Join(c.dir, "certificates")
	if out, err := exec.Command(c.program(), "cluster", "certify", certificates, observerName,
		"--observer").CombinedOutput(); err != nil {
		return fmt.Errorf("cluster certify: %w: %s", err, out)
	}
	file := filepath.Join(c.dir, "observer.yaml")
	n := &clusterNode{}
	var err1, err2, err3 error
	n.address, err1 = freeAddress()
	n.operator, err2 = freeAddress()
	n.log, err3 = os.Create(filepath.Join(c.dir, observerName+".log"))
	err4 := os.WriteFile(file, []byte(settings+x.settings), 0o600)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	n.args = []string{c.program(), "serve", "--config", file, "--no-rate-limits", "--listen",
		n.address, "--operator", n.operator, "--node", observerName, "--observer", "--follow",
		strings.Join(c.peers, ","), "--data", filepath.Join(c.dir, observerName)}
	n.env = append(os.Environ(), "EXCHANGE_OPERATOR_TOKEN="+token, manyOrders,
		"EXCHANGE_CLUSTER_FOLDER="+filepath.Join(certificates, observerName))
	if err := n.start(); err != nil {
		return err
	}
	x.address, x.operator = n.address, n.operator
	x.stops = append(x.stops, n.kill)
	return await("an observer", func() bool {
		return answers("http://" + n.address + "/readyz")
	})
}

func (v *observed) begin(_ context.Context, dir string) error {
	if err := v.startSubscribers(); err != nil {
		return err
	}
	if err := v.nodes.launch(dir); err != nil {
		return err
	}
	v.observer.settings = manyFromHere
	if err := v.nodes.observe(&v.observer); err != nil {
		return err
	}
	users, err := makeAccounts(v.nodes.operator, v.options.connections, v.nodes.base)
	if err != nil {
		return err
	}
	v.nodes.clients, err = dial(v.nodes.address, v.options.connections, users,
		func(i int) string { return v.nodes.base(i) + "_USDT" })
	if err == nil {
		_, err = v.nodes.clients.run(v.options.length)
	}
	return err
}

func (v *observed) end() {
	v.observer.end()
	v.nodes.end()
	v.streamed.end()
}

// A fed is what a load took of the node that leads, and what the observer was sent meanwhile.
type fed struct{ requests, cpu, bytes, batches float64 }

// measure loads without subscribers, with them twice, and without them again, so a change meanwhile
// changes both.
func (v *observed) measure(context.Context) error {
	var without, with fed
	if err := v.load(&without); err != nil {
		return err
	}
	w := audienceOf960
	w.Address = v.observer.address
	if err := v.open(w); err != nil {
		return err
	}
	for range 2 {
		if err := v.load(&with); err != nil {
			return err
		}
	}
	var s seen
	if err := v.subscribers.ask(wish{Do: "await"}, &s); err != nil {
		return err
	}
	if s.Closed > 0 || s.Messages == 0 {
		return fmt.Errorf("%d subscribers of the observer were disconnected, and %d events came",
			s.Closed, s.Messages)
	}
	if err := v.close(); err != nil {
		return err
	}
	if err := v.load(&without); err != nil {
		return err
	}
	if !v.nodes.complete(v.nodes.leads) {
		return errors.New("another node leads now")
	}
	for _, x := range []struct {
		of                  *fed
		cpu, bytes, batches *row
	}{
		{&without, v.alone, v.bytes, v.batches},
		{&with, v.watched, v.watchedBytes, v.watchedBatches},
	} {
		n := x.of.requests
		x.cpu.values = append(x.cpu.values, x.of.cpu*1e6/n)
		x.bytes.values = append(x.bytes.values, x.of.bytes/n)
		x.batches.values = append(x.batches.values, x.of.batches/n)
	}
	return nil
}

// load has the clients send, and adds what that takes.
func (v *observed) load(to *fed) error {
	before, err := v.counts()
	if err != nil {
		return err
	}
	r, err := v.nodes.clients.runOpen(observedRate, v.options.openLength/4, newLatencies())
	if err != nil {
		return err
	}
	if 100*r.away > r.requests { // then it is not the CPU of orders
		return fmt.Errorf("%d of %d requests were turned away", r.away, r.requests)
	}
	after, err := v.counts()
	to.requests += float64(r.requests)
	to.cpu += after.cpu - before.cpu
	to.bytes += after.bytes - before.bytes
	to.batches += after.batches - before.batches
	return err
}

// counts returns the CPU of the node that leads, in seconds, and the observer's counters.
func (v *observed) counts() (f fed, err error) {
	cpu, err1 := cpuOf([]int{v.nodes.nodes[v.nodes.leads].cmd.Process.Pid})
	bytes, err2 := metric(&v.observer, metricFedBytes)
	batches, err3 := metric(&v.observer, metricFedBatches)
	return fed{cpu: cpu.Seconds(), bytes: bytes, batches: batches}, errors.Join(err1, err2, err3)
}
