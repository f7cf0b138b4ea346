package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The event stream, under four subjects: bursts to a thousand subscribers, and the speed of one
// event; ten thousand connections; clients that poll; orders beside subscribers.

// The sizes of the audiences.
const (
	fanoutConnections = 1000
	crowdConnections  = 10_000
	pollingClients    = 64
	burst             = 20
)

func streamSubjects(o options) []subject {
	return []subject{newFanout(o), newCrowd(o), newPolling(o), newListened(o), newOwned(o)}
}

// A streamed subject has subscribers.
type streamed struct {
	options     options
	subscribers *helper
	// both ends of the pipe on which the subscribers tell that the awaited events have come
	told, tell *os.File
}

func (s *streamed) startSubscribers() (err error) {
	if s.told, s.tell, err = os.Pipe(); err != nil {
		return err
	}
	s.subscribers, err = startHelper(helperSubscribers, s.tell)
	return err
}

func (s *streamed) end() {
	s.subscribers.stop()
	for _, f := range []*os.File{s.told, s.tell} {
		if f != nil {
			f.Close()
		}
	}
}

// open replaces the subscribers by others.
func (s *streamed) open(w wish) error {
	if err := s.close(); err != nil {
		return err
	}
	w.Do = "open"
	return s.subscribers.ask(w, nil)
}

func (s *streamed) close() error { return s.subscribers.ask(wish{Do: "close"}, nil) }

// part returns how long one of several measurements takes.
func (s *streamed) part() float64 { return s.options.length.Seconds() / 3 }

// A fanout is the source and its thousand subscribers.
type fanout struct {
	streamed
	source *helper

	singly, joined, bare, one         *row // messages a second
	singlyCPU, joinedCPU, bareCPU     *row // microseconds a message
	oneCPU, waking, commit, sustained *row
	own                               *row // commit, for the account itself
	// events a second at which the search for the sustained rate begins
	try float64
}

func newFanout(o options) *fanout {
	row := func(subject, unit string, yardstick *row, a aim) *row {
		return &row{subject: "stream: " + subject, unit: unit, group: groupStream,
			yardstick: yardstick, aim: a}
	}
	f := &fanout{streamed: streamed{options: o}, try: 10_000}
	f.singly = row("bursts of 20 to 1,000, one write for each message", "messages/s", nil, aim{})
	f.joined = row("bursts of 20 to 1,000 subscribers", "messages/s", f.singly,
		aim{least: 1.5e6, leastRatio: 5})
	f.bare = row("bursts of 1 to 1,000, a bare loop of writes", "messages/s", nil, aim{})
	f.one = row("bursts of 1 to 1,000 subscribers", "messages/s", f.bare, aim{leastRatio: 0.9})
	f.singlyCPU = row("CPU of one write for each message", "us/message", nil, aim{})
	f.joinedCPU = row("CPU of bursts of 20", "us/message", f.singlyCPU, aim{})
	f.bareCPU = row("CPU of a bare loop of writes", "us/message", nil, aim{})
	f.oneCPU = row("CPU of bursts of 1", "us/message", f.bareCPU, aim{})
	f.waking = row("a wake-up and a write, to the bytes at the other side", "us", nil, aim{})
	f.commit = row("commit of a trade, to the bytes at an idle subscriber", "us", f.waking,
		aim{mostRatio: 3})
	f.own = row("commit of a trade, to the bytes of own at an idle subscriber", "us", f.waking,
		aim{mostRatio: 3})
	f.sustained = row("trades that 1,000 subscribers sustain", "events/s", nil, aim{})
	return f
}

func (f *fanout) name() string { return "stream to 1,000" }

func (f *fanout) rows() []*row {
	return []*row{f.singly, f.joined, f.bare, f.one, f.singlyCPU, f.joinedCPU, f.bareCPU, f.oneCPU,
		f.waking, f.commit, f.own, f.sustained}
}

func (f *fanout) begin(_ context.Context, dir string) error {
	if err := f.startSubscribers(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(dir, "source-")
	if err != nil {
		return err
	}
	f.source, err = startHelper(helperSource, f.told, "-dir", dir)
	return err
}

func (f *fanout) end() {
	f.source.stop()
	f.streamed.end()
}

// to gives the source subscribers of the trades, which report when this many messages have come.
func (f *fanout) to(connections, each int) error {
	return f.with(wish{Each: each,
		Groups: []audience{{connections, []string{"trades." + tradedPair}}}})
}

// with gives the source its subscribers.
func (f *fanout) with(w wish) error {
	if err := f.close(); err != nil {
		return err
	}
	var at yield
	if err := f.source.ask(demand{Do: "fresh"}, &at); err != nil {
		return err
	}
	w.Address = at.Address
	return f.open(w)
}

func (f *fanout) measure(context.Context) error {
	if err := f.measureLatency(); err != nil {
		return err
	}
	for _, m := range []struct {
		burst               int
		bare, stream        *row
		bareCPU, messageCPU *row
	}{{burst, f.singly, f.joined, f.singlyCPU, f.joinedCPU},
		{1, f.bare, f.one, f.bareCPU, f.oneCPU}} {
		if err := f.to(fanoutConnections, fanoutConnections*m.burst); err != nil {
			return err
		}
		if err := f.measureBursts(m.burst, m.bare, m.bareCPU, m.stream, m.messageCPU); err != nil {
			return err
		}
	}
	return f.measureSustained()
}

// measureBursts takes the yardstick and the stream in turns of a small part of a second, so a
// disturbance disturbs both.
func (f *fanout) measureBursts(burst int, bare, bareCPU, stream, streamCPU *row) error {
	const turns = 4
	kinds := []string{"singly", "stream"}
	var sums [2]yield
	for range turns {
		for i, kind := range kinds {
			var y yield
			if err := f.source.ask(demand{Do: kind, Burst: burst, Seconds: f.part() / turns},
				&y); err != nil {
				return err
			}
			sums[i].Events += y.Events
			sums[i].Seconds += y.Seconds
			sums[i].CPU += y.CPU
		}
	}
	for i, to := range [][2]*row{{bare, bareCPU}, {stream, streamCPU}} {
		messages := float64(sums[i].Events) * fanoutConnections
		to[0].values = append(to[0].values, messages/sums[i].Seconds)
		to[1].values = append(to[1].values, sums[i].CPU*1e6/messages)
	}
	return nil
}

// measureLatency has one subscriber of the trades, and then one of the account that trades.
func (f *fanout) measureLatency() error {
	var trades, own yield
	latency := demand{Do: "latency", Samples: 100}
	if err := f.to(1, 1); err != nil {
		return err
	}
	if err := f.source.ask(latency, &trades); err != nil {
		return err
	}
	if err := f.with(wish{Each: 1, Owners: []listener{takerKey}}); err != nil {
		return err
	}
	if err := f.source.ask(latency, &own); err != nil {
		return err
	}
	f.waking.values = append(f.waking.values, median(append(trades.Waking, own.Waking...)))
	f.commit.values = append(f.commit.values, median(trades.Commit))
	f.own.values = append(f.own.values, median(own.Commit))
	return nil
}

// measureSustained raises the rate of events by steps of a quarter until it is too high. If the
// first rate is too high, measureSustained lowers the rate until one holds.
func (f *fanout) measureSustained() error {
	const step, seconds = 1.25, 0.5
	best, want := 0.0, -1
	for range 12 {
		if want < 0 {
			if err := f.to(fanoutConnections, 0); err != nil {
				return err
			}
			want = 0
		}
		var y yield
		if err := f.source.ask(demand{Do: "rate", Rate: f.try, Seconds: seconds}, &y); err != nil {
			return err
		}
		var got seen
		want += y.Events * fanoutConnections
		if err := f.subscribers.ask(wish{Do: "await", Messages: want, Within: seconds},
			&got); err != nil {
			return err
		}
		reached := float64(y.Events) / y.Seconds
		if sustained := got.Closed == 0 && got.Messages >= want && reached > 0.9*f.try; sustained {
			best = reached
			f.try *= step
			continue
		}
		f.try /= step
		if best > 0 {
			f.try /= step // the next round begins below
			break
		}
		want = -1 // with other subscribers: these have something to catch up with
	}
	f.sustained.values = append(f.sustained.values, best)
	return nil
}

// A crowd is ten thousand connections to an exchange that is started for each round.
type crowd struct {
	streamed
	dir          string
	connections  int
	rss, heap    *row
	writes, took *row
}

func newCrowd(o options) *crowd {
	c := &crowd{streamed: streamed{options: o}, connections: crowdConnections}
	// Each end takes a file descriptor of its process. Go raises the soft limit of descriptors to
	// the hard one.
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil &&
		limit.Max < crowdConnections+spareDescriptors {
		c.connections = max(1, int(limit.Max)-spareDescriptors)
	}
	of := show(float64(c.connections)) + " connections"
	if c.connections < crowdConnections {
		of += " (the hard limit of open files allows no more)"
	}
	row := func(subject, unit string, a aim) *row {
		return &row{subject: "stream: " + subject, unit: unit, group: groupStream, aim: a}
	}
	c.rss = row("resident memory of each of "+of, bytesHeld, aim{most: 30_000})
	c.heap = row("heap and stacks of each of "+of, bytesHeld, aim{most: 30_000})
	c.writes = row("one event to "+of+", writes to each", "writes", aim{most: 1})
	c.took = row("one event to "+of+", from the order to the last byte", "ms", aim{})
	return c
}

// spareDescriptors are the descriptors that are not for subscribers.
const spareDescriptors = 512

func (c *crowd) name() string { return "stream to 10,000" }

func (c *crowd) rows() []*row { return []*row{c.rss, c.heap, c.writes, c.took} }

func (c *crowd) begin(_ context.Context, dir string) error {
	c.dir = dir
	return c.startSubscribers()
}

func (c *crowd) measure(context.Context) error {
	s := &server{options: options{connections: 2}, settings: manyFromHere}
	defer s.end()
	if err := startExchange(s, c.dir, nil); err != nil {
		return err
	}
	rss, heap, err := memory(s)
	if err != nil {
		return err
	}
	if err := c.open(wish{Address: s.address, Each: c.connections,
		Groups: []audience{{c.connections, []string{"trades." + tradedPair}}}}); err != nil {
		return err
	}
	rssThen, err := resident(s.pids[0])
	if err != nil {
		return err
	}
	_, heapThen, err := memory(s)
	if err != nil {
		return err
	}
	each := func(then, before float64) float64 { return (then - before) / float64(c.connections) }
	c.rss.values = append(c.rss.values, each(rssThen, rss))
	c.heap.values = append(c.heap.values, each(heapThen, heap))
	if err := c.measureEvents(s); err != nil {
		return err
	}
	return c.close()
}

// measureEvents makes single trades.
func (c *crowd) measureEvents(s *server) error {
	const events = 5
	before, err := metric(s, "exchange_stream_writes_total")
	if err != nil {
		return err
	}
	var times []float64
	for range events {
		if err := s.clients.place(0,
			"amount=0.001&pair=BTC_USDT&price=50000&type=sell"); err != nil {
			return err
		}
		start := monotonic()
		if err := s.clients.place(1,
			"amount=0.001&pair=BTC_USDT&price=50000&type=buy"); err != nil {
			return err
		}
		at, err := c.arrived()
		if err != nil {
			return err
		}
		times = append(times, float64(at-start)/1e6)
	}
	after, err := metric(s, "exchange_stream_writes_total")
	if err != nil {
		return err
	}
	c.writes.values = append(c.writes.values, (after-before)/float64(events*c.connections))
	c.took.values = append(c.took.values, median(times))
	return nil
}

// arrived waits until the subscribers have the awaited events.
func (s *streamed) arrived() (at int64, err error) {
	var b [8]byte
	_ = s.told.SetReadDeadline(time.Now().Add(10 * time.Second)) // otherwise it waits for longer
	if _, err = io.ReadFull(s.told, b[:]); err != nil {
		err = fmt.Errorf("the subscribers do not have everything: %w", err)
	}
	return int64(binary.LittleEndian.Uint64(b[:])), err
}

// manyFromHere lets all subscribers come from one address.
const manyFromHere = "stream: {connections: 20000, connections_per_address: 20000}\n"

// resident returns the memory that a process has, as the system counts it.
func resident(pid int) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	var all, pages float64
	_, err = fmt.Sscan(string(b), &all, &pages)
	return pages * float64(os.Getpagesize()), err
}

// memory returns an exchange's resident bytes, and the bytes in its heap and stacks after a
// collection.
func memory(s *server) (rss, heap float64, err error) {
	text, err := s.get("/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return 0, 0, err
	}
	for _, name := range []string{"HeapAlloc = ", "Stack = "} {
		m := regexp.MustCompile("(?m)^# " + name + "([0-9]+)").FindStringSubmatch(text)
		if m == nil {
			return 0, 0, fmt.Errorf("no %q in the heap profile", name)
		}
		n, _ := strconv.ParseFloat(m[1], 64)
		heap += n
	}
	rss, err = resident(s.pids[0])
	return rss, heap, err
}

// metric returns one number of the exchange's monitoring.
func metric(s *server, name string) (float64, error) {
	text, err := s.get("/metrics")
	if err != nil {
		return 0, err
	}
	m := regexp.MustCompile("(?m)^" + name + " (.*)$").FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("no %s among the metrics", name)
	}
	return strconv.ParseFloat(m[1], 64)
}

// get asks the operator's listener.
func (s *server) get(path string) (string, error) {
	req, err := http.NewRequest("GET", "http://"+s.operator+path, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != 200 {
		err = fmt.Errorf("%s: %d %s", path, resp.StatusCode, b)
	}
	return string(b), err
}

// Polling is an exchange with clients that poll, and nothing to say.
type polling struct {
	streamed
	server
	idle, polled *row
}

func newPolling(o options) *polling {
	p := &polling{streamed: streamed{options: o}, server: server{options: options{connections: 1}}}
	p.server.settings = "stream: {ping_interval_ms: 1000}\n"
	p.idle = &row{subject: "stream: CPU of an exchange that nobody asks", unit: "% of a core",
		group: groupStream}
	p.polled = &row{subject: "stream: CPU with 64 idle polling clients, pinged each second",
		unit: "% of a core", group: groupStream, aim: aim{most: 1}}
	return p
}

func (p *polling) name() string { return "stream to polling clients" }

func (p *polling) rows() []*row { return []*row{p.idle, p.polled} }

func (p *polling) begin(_ context.Context, dir string) error {
	if err := p.startSubscribers(); err != nil {
		return err
	}
	return startExchange(&p.server, dir, nil)
}

func (p *polling) end() {
	p.server.end()
	p.streamed.end()
}

func (p *polling) measure(context.Context) error {
	for _, side := range []struct {
		polls int
		to    *row
	}{{0, p.idle}, {pollingClients, p.polled}} {
		if side.polls > 0 {
			if err := p.subscribers.ask(wish{Do: "poll", Address: p.address, Polls: side.polls},
				nil); err != nil {
				return err
			}
		}
		before, err := cpuClock(p.pids[0])
		if err != nil {
			return err
		}
		start := time.Now()
		time.Sleep(time.Duration(1.5 * p.part() * float64(time.Second)))
		after, err := cpuClock(p.pids[0])
		if err != nil {
			return err
		}
		side.to.values = append(side.to.values,
			100*(after-before).Seconds()/time.Since(start).Seconds())
	}
	return p.close()
}

// cpuClock returns the CPU time of another process, finer than cpuOf.
func cpuClock(pid int) (time.Duration, error) {
	const scheduled = 2 // see clock_getcpuclockid(3)
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|scheduled), &t)
	return time.Duration(t.Nano()), err
}
