package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/gateway"
	"exchange/gateway/edge"
	"exchange/gateway/encode"
	"exchange/gateway/socketio"
	"exchange/persistence"
	"exchange/persistence/pebble"
)

// The source is an exchange that is asked for events within its process: engine, gateway and stream
// are the real ones, and the store takes everything at once. Orders go to the engine directly. An
// order that meets twenty small ones is a burst of twenty trades in one record. So an event costs
// no HTTP, and the yardsticks write to the very connections that the stream writes to.

// A demand is a request to the source.
type demand struct {
	Do      string // fresh, stream, singly, latency or rate
	Burst   int    // stream, singly: events at once
	Seconds float64
	Samples int     // latency
	Rate    float64 // rate: events a second
}

// A yield is the outcome of a demand.
type yield struct {
	Address string // fresh
	Bursts  int
	Events  int
	Seconds float64
	CPU     float64   // of this process, in seconds
	Waking  []float64 // microseconds from a wake-up to the bytes at the subscriber
	Commit  []float64 // the same from the commit of a trade
}

// A source is the helper.
type source struct {
	address  string
	listener *remembering
	store    *forgetful
	engine   *actors.Engine
	pair     *directory.Pair
	taker    *trader
	makers   []*trader
	stock    int      // orders of one lot that rest for sale
	bidden   bool     // the order that takes all that is sold rests
	pipe     *os.File // where the subscribers tell that they have everything
	frame    []byte   // a trade
}

// A trader is an account with its key.
type trader struct {
	key   *directory.Key
	nonce uint64
}

// forgetful is a store that takes everything at once and keeps none of it.
type forgetful struct {
	persistence.Store
	committed atomic.Int64 // when the newest append was durable, by monotonic
}

func (f *forgetful) Append(context.Context, persistence.Token, uint64, uint64, []byte) error {
	f.committed.Store(monotonic())
	return nil
}
func (*forgetful) Apply(context.Context, persistence.Token, uint64, uint64,
	*persistence.Writes) error {
	return nil
}
func (*forgetful) SaveSnapshot(context.Context, persistence.Token, uint64, io.Reader) error {
	return nil
}

// remembering is a listener that keeps its accepted connections.
type remembering struct {
	net.Listener
	mu       sync.Mutex
	accepted []net.Conn
}

func (l *remembering) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		l.accepted = append(l.accepted, c)
		l.mu.Unlock()
	}
	return c, err
}

// serveSource runs the helper; dir is for the store.
func serveSource(dir string) {
	s := &source{}
	err := syscall.SetNonblock(3, true) // so that waiting has deadlines
	s.pipe = os.NewFile(3, "pipe")
	if err == nil {
		err = s.start(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "source:", err)
		os.Exit(1)
	}
	serveQuestions(func(line []byte) (any, error) {
		var d demand
		if err := json.Unmarshal(line, &d); err != nil {
			return nil, err
		}
		switch d.Do {
		case "fresh": // the connections that matter come now
			s.listener.mu.Lock()
			s.listener.accepted = nil
			s.listener.mu.Unlock()
			return yield{Address: s.address}, nil
		case "stream":
			return s.bursts(&d, s.trade, s.prepare)
		case "singly":
			w := s.newWriters()
			defer w.stop()
			return s.bursts(&d, w.write, func(int) error { return nil })
		case "latency":
			return s.latency(&d)
		case "rate":
			return s.rate(&d)
		}
		return nil, fmt.Errorf("%q is no demand", d.Do)
	})
}

const coin = money.Amount(1e8)

func (s *source) start(dir string) error {
	log := slog.New(slog.DiscardHandler)
	store, err := pebble.Open(dir, pebble.Options{Logger: log})
	if err != nil {
		return err
	}
	s.store = &forgetful{Store: store}
	sealer, err := seal.New(make([]byte, seal.KeyBytes))
	if err != nil {
		return err
	}
	o := actors.Options{Store: s.store, Owner: "bench", Limits: actors.DefaultLimits,
		Timing: actors.DefaultTiming, Snapshot: actors.DefaultSnapshot,
		Withdrawal:  actors.DefaultWithdrawal,
		Sealer:      func(bool) (*seal.Sealer, error) { return sealer, nil },
		KeyMaterial: gateway.KeyMaterial, Log: log, Exit: os.Exit,
		Currencies: []directory.Currency{{Code: "BTC"}, {Code: "USDT"}},
		Pairs: []directory.PairRules{{Name: tradedPair, Base: "BTC", Quote: "USDT",
			PricePrecision:   2,
			AmountPrecision:  8,
			MinimumOrderSize: 1, MaximumOrderSize: 10_000_000 * coin}}}
	if s.engine, err = actors.Start(context.Background(), o); err != nil {
		return err
	}
	s.pair = s.engine.Pair([]byte(tradedPair))
	for i := range 65 {
		t, err := s.trader(fmt.Sprint("trader-", i))
		if err != nil {
			return err
		}
		s.makers = append(s.makers, t)
	}
	s.taker, s.makers = s.makers[64], s.makers[:64]
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.address, s.listener = tcp.Addr().String(), &remembering{Listener: tcp}
	g := gateway.New(edge.Options{Log: log, BodyBytes: 64 << 10, HeaderBytes: 8 << 10,
		Connections: 65_536, IdleTimeout: time.Minute,
		ReadTimeout: time.Minute, WriteTimeout: time.Minute,
		Limits: edge.Limits{Stream: edge.StreamOptions{Connections: 20_000,
			ConnectionsPerAddress: 20_000}}})
	g.SetEngine(s.engine)
	go g.Serve(s.listener) //nolint:errcheck // it ends with the process
	trade := append(encode.Trade(nil, 123_456, 50_000e8, tradedPair, trading.Buy,
		time.Now().UnixMicro(), lot), '}')
	s.frame = socketio.AppendFrame(nil, "/", "trades", trade)
	return nil
}

// tradedPair is the pair of all load.
const tradedPair = "BTC_USDT"

// takerKey is the key of the trader whose orders meet the others.
var takerKey = listener{"key-trader-64", "secret"}

func (s *source) trader(name string) (*trader, error) {
	_, err := s.engine.CreateAccount("bench", name, "")
	_, err2 := s.engine.CreateKey("bench", name, "key-"+name, "secret", event.AllPermissions, nil)
	_, err3 := s.engine.Deposit("bench", name, "BTC", 100_000_000*coin, name+"-BTC")
	_, err4 := s.engine.Deposit("bench", name, "USDT", 90_000_000_000*coin, name+"-USDT")
	return &trader{key: s.engine.Key([]byte("key-" + name))}, errors.Join(err, err2, err3, err4)
}

// The lot is the amount of each trade. Asks are above bids, so that takers of the one do not meet
// the other.
const (
	lot = coin / 1000
	ask = money.Price(50_000e8)
	bid = money.Price(49_000e8)
)

func (s *source) place(t *trader, side trading.Side, price money.Price,
	amount money.Amount) error {
	t.nonce++
	c, err := s.engine.Place(t.key, t.nonce,
		&actors.OrderRequest{Pair: s.pair, Side: side, Price: price, Amount: amount})
	if err != nil {
		return err
	}
	defer c.Free()
	if c.Outcome() != actors.Accepted {
		return fmt.Errorf("an order was refused: %+v", c.Record().Refusal)
	}
	return nil
}

// prepare makes sure that bursts of that many trades can be had for a while: orders of one lot
// rest.
func (s *source) prepare(burst int) error {
	if s.stock >= burst {
		return nil
	}
	each := max(256, 8*burst)
	failed := make(chan error)
	for _, m := range s.makers {
		go func() {
			var err error
			for i := 0; i < each && err == nil; i++ {
				err = s.place(m, trading.Sell, ask, lot)
			}
			failed <- err
		}()
	}
	var err error
	for range s.makers {
		err = errors.Join(err, <-failed)
	}
	s.stock += each * len(s.makers)
	return err
}

// trade places one order that meets this many others.
func (s *source) trade(burst int) error {
	s.stock -= burst
	return s.place(s.taker, trading.Buy, ask, lot*money.Amount(burst))
}

// bursts asks for each burst when the one before has arrived everywhere. The time of prepare does
// not count.
func (s *source) bursts(d *demand, burst, prepare func(int) error) (y yield, err error) {
	for y.Seconds < d.Seconds {
		if err := prepare(d.Burst); err != nil {
			return y, err
		}
		cpu, start := ownCPU(), time.Now()
		for y.Seconds+time.Since(start).Seconds() < d.Seconds &&
			(d.Do != "stream" || s.stock >= d.Burst) {
			if err := burst(d.Burst); err != nil {
				return y, err
			}
			if _, err := s.arrived(); err != nil {
				return y, err
			}
			y.Bursts++
		}
		y.Seconds += time.Since(start).Seconds()
		y.CPU += (ownCPU() - cpu).Seconds()
	}
	y.Events = y.Bursts * d.Burst
	return y, nil
}

// arrived waits until the subscribers say when they had everything.
func (s *source) arrived() (at int64, err error) {
	var b [8]byte
	if err := s.pipe.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return 0, err
	}
	_, err = io.ReadFull(s.pipe, b[:])
	if err != nil {
		err = fmt.Errorf("the subscribers do not have everything: %w", err)
	}
	return int64(binary.LittleEndian.Uint64(b[:])), err
}

// ownCPU returns the CPU time of this process.
func ownCPU() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r) //nolint:errcheck // it never fails
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// writers are the yardstick: as many goroutines as the stream has shards, each with its part of the
// connections. On waking, each goroutine writes each event to each of its connections.
type writers struct {
	wake    []chan int
	written sync.WaitGroup
}

func (s *source) newWriters() *writers {
	w := &writers{}
	s.listener.mu.Lock()
	all := slices.Clone(s.listener.accepted)
	s.listener.mu.Unlock()
	n := runtime.GOMAXPROCS(0)
	for i := range n {
		wake := make(chan int)
		w.wake = append(w.wake, wake)
		mine := all[i*len(all)/n : (i+1)*len(all)/n]
		go func() {
			for burst := range wake {
				for range burst {
					for _, c := range mine {
						c.Write(s.frame) //nolint:errcheck // the subscribers would miss it
					}
				}
				w.written.Done()
			}
		}()
	}
	return w
}

func (w *writers) write(burst int) error {
	w.written.Add(len(w.wake))
	for _, wake := range w.wake {
		wake <- burst
	}
	w.written.Wait()
	return nil
}

func (w *writers) stop() {
	for _, wake := range w.wake {
		close(wake)
	}
}

// idle is how long a subscriber has had nothing: longer than the stream pauses between two writes.
const idle = 5 * time.Millisecond

// latency measures in turns how long a trade takes to an idle subscriber, and a frame from a
// goroutine that is woken for it.
func (s *source) latency(d *demand) (y yield, err error) {
	w := s.newWriters()
	defer w.stop()
	w.wake = w.wake[len(w.wake)-1:] // the only connection is of the last one
	us := func(from, to int64) float64 { return float64(to-from) / 1e3 }
	for range d.Samples {
		if err := s.prepare(1); err != nil {
			return y, err
		}
		time.Sleep(idle)
		begin := monotonic()
		w.written.Add(1)
		w.wake[0] <- 1
		at, err := s.arrived()
		if err != nil {
			return y, err
		}
		y.Waking = append(y.Waking, us(begin, at))

		time.Sleep(idle)
		if err := s.trade(1); err != nil {
			return y, err
		}
		if at, err = s.arrived(); err != nil {
			return y, err
		}
		y.Commit = append(y.Commit, us(s.store.committed.Load(), at))
	}
	return y, nil
}

// rate makes trades one at a time, this many a second, if the engine can.
func (s *source) rate(d *demand) (y yield, err error) {
	if !s.bidden {
		s.bidden = true
		if err := s.place(s.taker, trading.Buy, bid, 1_000_000*coin); err != nil {
			return y, err
		}
	}
	var due, done atomic.Int64
	failed := make(chan error, len(s.makers))
	work := make(chan struct{}, 1<<16)
	for _, m := range s.makers {
		go func() {
			var err error
			for range work {
				if err == nil {
					err = s.place(m, trading.Sell, bid, lot)
				}
				done.Add(1)
			}
			failed <- err
		}()
	}
	cpu, start := ownCPU(), time.Now()
	for elapsed := 0.0; elapsed < d.Seconds; elapsed = time.Since(start).Seconds() {
		for due.Load() < int64(elapsed*d.Rate) {
			due.Add(1)
			work <- struct{}{}
		}
		time.Sleep(time.Millisecond)
	}
	close(work)
	for range s.makers {
		err = errors.Join(err, <-failed)
	}
	y.Events, y.Seconds, y.CPU = int(due.Load()), time.Since(start).Seconds(),
		(ownCPU() - cpu).Seconds()
	return y, err
}
