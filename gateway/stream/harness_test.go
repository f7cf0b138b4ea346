package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/gateway/api"
	"exchange/gateway/socketio"
	"exchange/gateway/socketio/sockettest"
	"exchange/persistence"
	"exchange/persistence/memory"
)

const coin = money.Amount(1e8)

// The HTTP server writes dates, for which it starts a goroutine that never ends: in no bubble.
var _ = new(fasthttp.ResponseHeader).Header()

// bubble runs a test in a bubble of today. Pools are emptied before and after, because channels and
// timers belong to one bubble.
func bubble(t *testing.T, f func(t *testing.T)) {
	emptyPools := func() { runtime.GC(); runtime.GC() } // which pools outlive once
	emptyPools()
	defer emptyPools()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
		firstBeat = time.Now()
		f(t)
	})
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for late := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("it did not happen: %s", what)
		}
	}
}

// goroutines run each waking mailbox in a goroutine of its own, because the default ones outlive
// their engine.
type goroutines struct{ mailbox.Runners }

func (goroutines) Schedule(m *mailbox.Mailbox) { go m.Run() }

// A world is an engine with its stream, on a listener of its own, that can be started again on the
// same disk. It lives in a bubble.
type world struct {
	t      testing.TB
	disk   *memory.Disk
	store  *memory.Store
	engine *actors.Engine
	hub    *Hub
	server *socketio.Server
	http   *fasthttp.Server
	dialer websocket.Dialer
	tune   func(*socketio.Options)
	silent bool        // clients get book_ of all pairs until their first request
	stale  atomic.Bool // the engine cannot confirm that it is current

	follows bool // only public data is sent
	nonces  atomic.Uint64
	keys    []*directory.Key
}

func newWorld(t testing.TB, tune func(*socketio.Options)) *world {
	w := &world{t: t, disk: memory.NewDisk(), tune: tune}
	w.nonces.Store(uint64(time.Now().UnixNano()))
	w.start()
	for i := range 4 {
		name := fmt.Sprint("trader-", i)
		w.must(w.engine.CreateAccount("test", name, name+"@example.org"))
		w.must(w.engine.CreateKey("test", name, "key-"+name, "secret", event.AllPermissions, nil))
		for _, c := range []string{"BTC", "ETH", "USDT"} {
			w.must(w.engine.Deposit("test", name, c, 1_000_000*coin, name+c))
		}
	}
	w.findKeys()
	t.Cleanup(func() { w.stop() })
	return w
}

func (w *world) must(_ actors.Admin, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) findKeys() {
	w.keys = nil
	for i := range 4 {
		w.keys = append(w.keys, w.engine.Key([]byte(fmt.Sprint("key-trader-", i))))
	}
}

func (w *world) start() {
	store := memory.Open(w.disk, persistence.Retention{})
	store.BeforeSync = func() error { // a disk is slow
		time.Sleep(time.Millisecond)
		return nil
	}
	sealer := must(seal.New(make([]byte, seal.KeyBytes)))
	o := actors.Options{Store: store, Owner: "test", Limits: actors.DefaultLimits,
		Timing: actors.DefaultTiming, Snapshot: actors.DefaultSnapshot,
		Withdrawal:  actors.DefaultWithdrawal,
		Sealer:      func(bool) (*seal.Sealer, error) { return sealer, nil },
		Mail:        func(context.Context, *actors.Mail) error { return nil },
		KeyMaterial: func([]byte) any { return nil }, Log: slog.New(slog.DiscardHandler),
		Exit:      func(code int) { panic(fmt.Sprint("exit ", code)) },
		Scheduler: goroutines{}}
	for _, c := range []string{"BTC", "ETH", "USDT"} {
		o.Currencies = append(o.Currencies, directory.Currency{Code: c, Sign: c[:1]})
	}
	for _, p := range [][2]string{{"BTC", "USDT"}, {"ETH", "USDT"}, {"ETH", "BTC"}} {
		o.Pairs = append(o.Pairs, directory.PairRules{Name: p[0] + "_" + p[1], Base: p[0],
			Quote:          p[1],
			PricePrecision: 2, AmountPrecision: 8,
			MinimumOrderSize: 1, MaximumOrderSize: 1_000_000 * coin})
	}
	e := must(actors.Start(context.Background(), o))
	ho := Options{Interval: time.Millisecond, shards: 2,
		Guard: testGuard{w}, current: func() error {
			if w.stale.Load() {
				return actors.ErrNotConfirmed
			}
			return e.AwaitCurrent()
		}}
	a := api.New(e.Public, e)
	if w.follows {
		a, ho.Guard = api.New(e.Public, nil), nil
		ho.Absent = func(c *api.Call) (leader string) {
			c.Fail(api.Following, " Node b leads.")
			return ""
		}
	}
	h := New(a, ho)
	options := socketio.Options{MessagesPerSecond: -1}
	if w.tune != nil {
		w.tune(&options)
	}
	s := socketio.New(options)
	s.Namespace("/", h.Hooks(func(*socketio.Socket) bool { return w.silent }))
	l := sockettest.Listen(w.t)
	w.dialer.NetDial = func(string, string) (net.Conn, error) { return l.Dial() }
	w.store, w.engine, w.hub, w.server = store, e, h, s
	w.http = &fasthttp.Server{Handler: s.Handle, KeepHijackedConns: true, Logger: log{},
		MaxIdleWorkerDuration: time.Second}
	go w.http.Serve(small{l}) //nolint:errcheck // ends with the listener
}

// small connections have small system buffers, so that a slow client is noticed soon.
type small struct{ net.Listener }

func (s small) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err == nil {
		err = c.(*sockettest.Conn).SetWriteBuffer(8 << 10)
	}
	return c, err
}

// log keeps the HTTP server quiet.
type log struct{}

func (log) Printf(string, ...any) {}

func (w *world) stop() {
	w.server.Shutdown()
	w.http.Shutdown() //nolint:errcheck
	w.hub.Close()
	worked(w.t, w.engine.Stop(context.Background()))
	w.store.Close()
	time.Sleep(w.http.MaxIdleWorkerDuration) // the HTTP server's own goroutines end
}

func (w *world) restart() {
	w.stop()
	w.start()
	w.findKeys()
}

func (w *world) pair(name string) *directory.Pair { return w.engine.Pair([]byte(name)) }

// place places an order of a trader and returns its id, 0 if it was refused.
func (w *world) place(trader int, pair string, side trading.Side, price, amount float64) uint64 {
	w.t.Helper()
	order := actors.OrderRequest{Pair: w.pair(pair), Side: side, Price: money.Price(price * 1e8),
		Amount: money.Amount(amount * 1e8)}
	c, err := w.engine.Place(w.keys[trader], w.nonces.Add(1), &order)
	if err != nil {
		w.t.Error(err)
		return 0
	}
	defer c.Free()
	if c.Outcome() != actors.Accepted {
		return 0
	}
	return c.Record().Order.ID
}

func (w *world) cancel(trader int, order uint64) {
	w.t.Helper()
	c, err := w.engine.Cancel(w.keys[trader], w.nonces.Add(1), order)
	if err != nil {
		w.t.Error(err)
		return
	}
	c.Free()
}

// A streamEvent is an event from the stream.
type streamEvent struct {
	name string
	body json.RawMessage
}

// A listener is a client on a raw websocket.
type listener struct {
	t    testing.TB
	conn *websocket.Conn
	turn chan struct{} // full while something is written
	mu   sync.Mutex
	more *sync.Cond
	got  []streamEvent // not taken yet
	over error         // the connection has ended
	held bool          // it reads nothing
	acks map[string]json.RawMessage
	id   string // of the socket

	asked int // number of the newest request
}

func (w *world) dial() (*websocket.Conn, *http.Response, error) {
	return w.dialer.Dial("ws://exchange.test/socket.v2/?EIO=4&transport=websocket", nil)
}

func (w *world) listen() *listener {
	w.t.Helper()
	conn, resp, err := w.dial()
	if err != nil {
		w.t.Fatal(err, resp)
	}
	l := &listener{t: w.t, conn: conn, turn: make(chan struct{}, 1),
		acks: map[string]json.RawMessage{}}
	l.more = sync.NewCond(&l.mu)
	l.say("40")
	go l.read()
	w.t.Cleanup(func() {
		conn.Close()
		l.hold(false)
	})
	return l
}

func (l *listener) say(text string) {
	if err := l.write(text); err != nil {
		l.t.Error(err)
	}
}

func (l *listener) write(text string) error {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	return l.conn.WriteMessage(websocket.TextMessage, []byte(text))
}

func (l *listener) read() {
	for {
		l.mu.Lock()
		for l.held {
			l.more.Wait()
		}
		l.mu.Unlock()
		_, b, err := l.conn.ReadMessage()
		l.mu.Lock()
		switch {
		case err != nil:
			l.over = err
		case bytes.HasPrefix(b, []byte("42[")):
			var list []json.RawMessage
			var s streamEvent
			if err := json.Unmarshal(b[2:], &list); err != nil || len(list) != 2 ||
				json.Unmarshal(list[0], &s.name) != nil {
				l.over = fmt.Errorf("an event that is none: %s", b)
			} else {
				s.body = list[1]
				l.got = append(l.got, s)
			}
		case bytes.HasPrefix(b, []byte("40{")):
			var open struct{ SID string }
			if err := json.Unmarshal(b[2:], &open); err != nil {
				l.over = err
			}
			l.id = open.SID
		case bytes.HasPrefix(b, []byte("43")):
			id, body, _ := strings.Cut(string(b[2:]), "[")
			l.acks[id] = json.RawMessage("[" + body)
		}
		over := l.over
		l.more.Broadcast()
		l.mu.Unlock()
		if over != nil {
			return
		}
		if bytes.Equal(b, []byte("2")) {
			l.write("3") //nolint:errcheck // it may be closed just now
		}
	}
}

func (l *listener) hold(on bool) {
	l.mu.Lock()
	l.held = on
	l.more.Broadcast()
	l.mu.Unlock()
}

// next waits for the next event.
func (l *listener) next() streamEvent {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wait("the next event", func() bool { return len(l.got) > 0 || l.over != nil })
	if len(l.got) == 0 {
		l.t.Fatalf("the connection ended: %v", l.over)
	}
	s := l.got[0]
	l.got = l.got[1:]
	return s
}

// wait waits until a condition holds, for at most a minute. mu is held.
func (l *listener) wait(what string, ok func() bool) {
	l.t.Helper()
	late := false
	timer := time.AfterFunc(time.Minute, func() {
		l.mu.Lock()
		late = true
		l.more.Broadcast()
		l.mu.Unlock()
	})
	defer timer.Stop()
	for !ok() {
		if late {
			l.t.Fatalf("it did not happen within a minute: %s", what)
		}
		l.more.Wait()
	}
}

// expect checks the next event.
func (l *listener) expect(event, body string) {
	l.t.Helper()
	if s := l.next(); s.name != event || !matches(body, string(s.body)) {
		l.t.Fatalf("got  %s %s\nwant %s %s", s.name, s.body, event, body)
	}
}

// matches compares text with a pattern in which * stands for anything within a number.
func matches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	for i, p := range parts {
		if i == 0 {
			if !strings.HasPrefix(text, p) {
				return false
			}
			text = text[len(p):]
			continue
		}
		text = strings.TrimLeft(text, "0123456789.")
		if !strings.HasPrefix(text, p) {
			return false
		}
		text = text[len(p):]
	}
	return text == ""
}

// ended waits for the end of the connection.
func (l *listener) ended() error {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wait("the end of the connection", func() bool { return l.over != nil })
	return l.over
}

// subscribe asks for channels and waits for their successes.
func (l *listener) subscribe(channels ...string) {
	l.t.Helper()
	b := must(json.Marshal(append([]string{"subscribe"}, channels...)))
	l.say("42" + string(b))
	for range channels {
		for {
			s := l.next()
			if s.name == "subscribe.success" {
				break
			}
			if s.name == "subscribe.error" {
				l.t.Fatalf("%s", s.body)
			}
			l.mu.Lock()
			l.got = append(l.got, s)
			l.mu.Unlock()
		}
	}
}

// must returns what came without an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// worked ends the test at an error.
func worked(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
