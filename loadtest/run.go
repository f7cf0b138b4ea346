package loadtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/valyala/fasthttp"

	"exchange/loadtest/generator"
)

// A test is one run.
type test struct {
	o       *Options
	rest    *rest
	field   *field
	clients []*sender
	prog    *progress
	base    time.Time
	name    string // of the run, in client ids

	began        time.Duration // of the first phase, since base
	seconds      []Second
	minutes      []Minute
	row          row // of the minutes, so far
	pace         generator.Pace
	availability []*availability // by the number of an address
}

// Run makes a test. Beside an error it may return a report of the part that was run. The end of ctx
// ends the load; outcomes acknowledged until then are verified.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	t := &test{o: &o, rest: newRest(&o), prog: &progress{w: o.Progress, terminal: o.Terminal},
		base: time.Now()}
	t.rest.silence.say = t.prog.line
	defer context.AfterFunc(ctx, t.rest.silence.impatient)()
	t.name = "lt" + strconv.FormatInt(time.Now().UnixMilli(), 36)
	defer t.prog.clear()
	var err error
	t.field, err = prepare(ctx, t.rest, t.prog.say)
	after, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	if err != nil {
		if t.field != nil && len(t.field.keysToRevoke) > 0 {
			err = errors.Join(err, t.field.revoke(after, t.rest, t.prog.say))
		}
		return nil, err
	}
	report, err := t.load(ctx, after, func() { cut(errInterrupted) })
	if report == nil {
		return nil, errors.Join(err, t.field.revoke(after, t.rest, t.prog.say))
	}
	return report, err
}

var errInterrupted = errors.New("interrupted; orders and keys of the test may be left")

// load connects, sends, and verifies. The end of ctx ends the load, or else its aftermath, by cut.
// After that it no longer waits for an exchange that does not answer.
func (t *test) load(ctx, after context.Context, cut func()) (*Report, error) {
	if err := t.makeSenders(ctx); err != nil {
		return nil, err
	}
	defer func() {
		for _, l := range t.clients {
			l.generator.Close()
		}
	}()
	stream, err := connectSubscribers(ctx, t.o, t.field.accounts, t.prog.say)
	if err != nil {
		return nil, err
	}
	defer stream.end()
	defer context.AfterFunc(ctx, t.stop)()

	report := t.newReport()
	witness := startWitness(after, t)
	for _, l := range t.clients {
		l.witness = witness
	}
	if report.Warmup, err = t.warmUp(stream); err != nil {
		witness.end()
		return nil, err
	}
	own := processTime()
	busy, _ := usageNow()
	watcher, banker := watch(after, t.rest), startBanker(after, t)
	var sum *stats
	var took time.Duration
	if t.o.Ramp {
		sum, took, err = t.ramp(ctx, report)
	} else {
		sum, took, err = t.phase(t.o.schedule(), t.o.length(), t.stageTitle)
	}
	if ctx.Err() == nil {
		defer context.AfterFunc(ctx, cut)()
	}
	watcher.end(after)
	witness.end()
	deposits := banker.end()
	if err != nil {
		return nil, err
	}
	t.endRow()
	report.setMeasurements(t, sum, took, processTime()-own)
	report.Machine = machineSince(busy, took, processTime()-own)
	report.complete(t, watcher, deposits)
	report.Interrupted = ctx.Err() != nil
	alive := t.rest.answering(after)
	if !t.o.NoVerify {
		v := newVerifier(after, t.rest, t.field, t.name, alive)
		witness.addTo(v)
		report.Verification = v.verify(stream, t.prog.say)
		for i, n := range v.read {
			report.Addresses[i].AccountsRead = n
		}
		err := t.field.tidy(after, t.rest.at(v.alive[0]), t.prog.say)
		if err == nil && t.o.operated() {
			t.prog.say("auditing")
			v.audit()
		}
		report.subscribers(stream)
		return report, err
	}
	report.subscribers(stream)
	return report, t.field.tidy(after, t.rest.at(alive[0]), t.prog.say)
}

// warmUp sends load that is verified like the other, and drops its measurements. It returns nil
// without a warmup.
func (t *test) warmUp(stream *subscribers) (*Warmup, error) {
	if t.o.Warmup == 0 {
		return nil, nil
	}
	s, took, err := t.phase(t.o.warmupSchedule(), t.o.Warmup, always("warming up: "))
	if err != nil {
		return nil, err
	}
	t.seconds, t.minutes, t.row, t.pace = nil, nil, row{}, generator.Pace{}
	for _, r := range t.availability {
		r.forget()
	}
	stream.forget()
	return &Warmup{Seconds: took.Seconds(), Requests: s.requests, Done: s.done, Late: s.late,
		Refused: s.refused, Unknown: s.unknown, Unsent: s.unsent}, nil
}

// makeSenders distributes connections and users over the generator's threads: one thread owns an
// account, one connection a key.
func (t *test) makeSenders(ctx context.Context) error {
	o, n := t.o, len(t.field.accounts)
	// of connections that share accounts, or accounts that share a connection
	groups := min(o.Connections, n)
	threads := min(o.Threads, groups)
	for range o.Addresses {
		t.availability = append(t.availability, &availability{})
	}
	for i := range threads {
		t.clients = append(t.clients, &sender{o: o, writer: newWriter(o, t.name),
			model: newModel(o.Model, t.field.pairs, o.Seed, uint64(i)),
			stats: t.newStats(), availability: t.availability})
	}
	for i := range o.Connections {
		l := t.clients[i%groups%threads]
		c := &conn{at: o.addressOf(i)}
		for a := i; a < n; a += o.Connections {
			c.users = append(c.users, t.field.accounts[a].users[0])
		}
		if i >= n {
			c.users = append(c.users, t.field.accounts[i%n].users[i/n])
		}
		for _, u := range c.users {
			u.at = c.at
		}
		l.conns = append(l.conns, c)
	}
	for _, l := range t.clients {
		l.sockets, l.conns = l.conns, slices.Repeat(l.conns, max(1, o.depth()))
		for i := len(l.sockets); i < len(l.conns); i++ {
			l.conns[i] = &conn{users: l.conns[i].users, at: l.conns[i].at}
		}
		var err error
		if l.generator, err = newGenerator(l, t.generatorOptions(ctx, l)); err != nil {
			return err
		}
		if err := l.generator.Connect(); err != nil {
			return fmt.Errorf("connecting: %w", err)
		}
	}
	return nil
}

// Tests replace these with connections in memory.
var (
	newGenerator = generator.New
	dial         = net.DialTimeout
	dialRest     fasthttp.DialFunc // nil: the usual one
)

func (t *test) generatorOptions(ctx context.Context, l *sender) generator.Options {
	return generator.Options{Connections: len(l.sockets), Timeout: t.o.Timeout,
		Depth: t.o.depth(), Dial: func(i int) (net.Conn, error) {
			address := t.o.Addresses[l.sockets[i].at]
			if t.o.Sockets > 0 {
				return dialOrders(ctx, t.o, address, l.sockets[i].users[0])
			}
			return dial("tcp", address, dialTimeout)
		}}
}

// newStats returns the measurements of a part that has not begun.
func (t *test) newStats() *stats {
	return newStats(len(t.field.pairs), len(t.o.Addresses), len(t.o.Stages))
}

// stop ends the load.
func (t *test) stop() {
	for _, l := range t.clients {
		l.generator.Stop()
	}
}

// always returns a constant title of a phase.
func always(title string) func(time.Duration) string {
	return func(time.Duration) string { return title }
}

// wholeSecond is the least time of a second that is plotted: a part of one would look like a fall.
const wholeSecond = 900 * time.Millisecond

// phase sends by a schedule, or as fast as answers come without one, and returns its measurements.
// title is the progress title at a moment.
func (t *test) phase(s *generator.Schedule, d time.Duration, title func(time.Duration) string) (
	*stats, time.Duration, error) {
	for _, l := range t.clients {
		l.generator.Inspect(func(int, uint64) { l.stats = t.newStats() })
	}
	begin := time.Now()
	if len(t.seconds) == 0 {
		t.began = begin.Sub(t.base)
	}
	batch := uint64(max(1, t.o.Batch)) // the schedule counts items, and a batch goes with its first
	errs := make([]error, len(t.clients))
	var wait sync.WaitGroup
	finished := make(chan struct{})
	for i, l := range t.clients {
		p := generator.Phase{Schedule: s, First: uint64(i) * batch,
			Step: uint64(len(t.clients)) * batch, Begin: begin, Length: d}
		wait.Go(func() { errs[i] = l.run(p) })
	}
	go func() { wait.Wait(); close(finished) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last, first := begin, len(t.seconds)
	for running := true; running; {
		select {
		case <-tick.C:
		case <-finished:
			running = false
		}
		now := time.Now()
		x := t.second(now, now.Sub(last))
		x.Asked = dueRate(s, last.Sub(begin), now.Sub(begin))
		if running {
			t.prog.second(&x, title(last.Sub(begin)), now.Sub(begin), d)
		}
		x.Partial = !running && len(t.seconds) > first && now.Sub(last) < wholeSecond
		t.seconds = append(t.seconds, x)
		last = now
	}
	sum := t.newStats()
	for _, l := range t.clients {
		sum.merge(l.stats)
	}
	return sum, time.Since(begin), errors.Join(errs...)
}

// second collects the measurements of all generators since its last call.
func (t *test) second(now time.Time, d time.Duration) (s Second) {
	h := newHistogram()
	var c counters
	var slowest time.Duration
	var pace generator.Pace
	for _, l := range t.clients {
		pace.Add(l.generator.TakePace())
		l.generator.Inspect(func(inFlight int, waiting uint64) {
			h.Merge(l.stats.recent)
			l.stats.recent.Reset()
			c.add(l.stats.lately)
			l.stats.lately = counters{}
			slowest, l.stats.slowest = max(slowest, l.stats.slowest), 0
			s.InFlight += inFlight
			s.Waiting += waiting
		})
	}
	s.At = (now.Sub(t.base) - t.began).Seconds()
	s.Rate = float64(c.done) / max(d.Seconds(), 1e-3)
	s.P50, s.P99, s.Max = milliseconds(h.ValueAtQuantile(50)), milliseconds(h.ValueAtQuantile(99)),
		milliseconds(slowest.Microseconds())
	s.Errors = c.refused + c.unknown
	s.Backlog = uint64(s.InFlight) + s.Waiting
	t.gather(&s, h, c, pace)
	return s
}

// dueRate returns the requests due, a second, from one time of a phase to another one; 0 in a
// closed loop.
func dueRate(s *generator.Schedule, from, to time.Duration) float64 {
	if s == nil {
		return 0
	}
	return (s.Integral(to) - s.Integral(from)) / max((to-from).Seconds(), 1e-3)
}

// latency returns a histogram in short, in milliseconds.
func latency(h *hdrhistogram.Histogram) Latency {
	q := func(p float64) float64 { return milliseconds(h.ValueAtQuantile(p)) }
	return Latency{Count: h.TotalCount(), Mean: h.Mean() / 1000, P50: q(50), P90: q(90), P99: q(99),
		P999: q(99.9), P9999: q(99.99), Max: milliseconds(h.Max())}
}
