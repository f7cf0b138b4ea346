package loadtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fasthttp/websocket"
)

// Channels are those of the event stream, for all pairs. "book" is the events book_<pair> for old
// clients, and "own" the events of an account.
var Channels = []string{"ticker", "orderbook.20", "diff", "trades", "book", ownChannel}

// A subscriber is a socket of the event stream. It reconnects after a lost connection.
type subscriber struct {
	o       *Options
	channel string
	address string
	at      int   // number of the address
	keeps   bool  // keeps local books, to compare
	user    *user // of "own"
	conn    *websocket.Conn
	events  atomic.Uint64
	bytes   atomic.Uint64
	lost    atomic.Uint64 // connections
	wholes  atomic.Uint64 // whole books in place of changes that did not fit, or after a loss
	warm    eventCounts   // until the end of the warmup

	mu    sync.Mutex
	books map[string]*localBook
	last  map[string]uint64 // newest trade by pair; of "own" the newest event
	wrong []string
	buf   []byte
}

// eventCounts are the counters of a subscriber at one moment.
type eventCounts struct{ events, bytes, lost, wholes uint64 }

func (s *subscriber) snapshot() eventCounts {
	return eventCounts{s.events.Load(), s.bytes.Load(), s.lost.Load(), s.wholes.Load()}
}

// forget drops everything until now from the report.
func (s *subscribers) forget() {
	for _, x := range s.all {
		if x.warm = x.snapshot(); x.channel == ownChannel {
			x.user.lag.forget()
		}
	}
}

// subscribers are all of a test.
type subscribers struct {
	all   []*subscriber
	stop  context.CancelFunc
	group sync.WaitGroup
}

// connectSubscribers connects all subscribers, and returns when all are connected.
func connectSubscribers(ctx context.Context, o *Options, accounts []*account,
	say func(string, ...any)) (*subscribers, error) {
	s := &subscribers{}
	for _, channel := range Channels {
		for i := range o.Subscribers[channel] {
			n := len(o.Addresses)
			x := &subscriber{o: o, channel: channel, keeps: channel == "diff" && i < n, at: i % n,
				books: map[string]*localBook{}, last: map[string]uint64{}}
			if channel == ownChannel { // not at the address of the account's orders
				x.user = accounts[i].users[0]
				x.user.lag = newOwnLag()
				x.at = (x.user.at + 1) % n
			}
			x.address = o.Addresses[x.at]
			s.all = append(s.all, x)
		}
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	var n atomic.Int64
	err := atOnce(ctx, len(s.all), workers, func(ctx context.Context, i int) error {
		say("connecting subscriber %d of %d", n.Add(1), len(s.all))
		return s.all[i].connect(ctx)
	})
	if err != nil {
		s.end()
		return nil, fmt.Errorf("connecting to the event stream: %w", err)
	}
	for _, x := range s.all {
		s.group.Go(func() { x.run(running) })
	}
	return s, nil
}

// end closes all sockets.
func (s *subscribers) end() {
	s.stop()
	for _, x := range s.all {
		x.mu.Lock()
		if x.conn != nil {
			x.conn.Close()
		}
		x.mu.Unlock()
	}
	s.group.Wait()
}

// connect joins and requests the events.
func (s *subscriber) connect(ctx context.Context) error {
	path := streamPath
	if s.channel == "book" {
		path = "/socket.io/" // a client that subscribes to nothing there gets book_ of all pairs
	}
	ctx, cancel := s.o.forSocket(ctx)
	defer cancel()
	conn, err := dialStream(ctx, s.address, path)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.conn = conn
	for _, b := range s.books {
		b.known = false
	}
	s.mu.Unlock()
	if s.channel == ownChannel {
		err = logIn(ctx, conn, s.user)
	} else {
		err = s.say("40")
	}
	if err == nil {
		err = s.requestEvents()
	}
	if err != nil {
		conn.Close()
	}
	return err
}

// requestEvents requests the events of the channel.
func (s *subscriber) requestEvents() error {
	switch s.channel {
	case "book":
		return nil
	case ownChannel:
		return s.say(`421["own.subscribe"]`)
	}
	return s.say(`42["subscribe","` + s.channel + `"]`)
}

func (s *subscriber) say(packet string) error {
	if s.conn == nil {
		return nil // in a test, without a socket
	}
	return s.conn.WriteMessage(websocket.TextMessage, []byte(packet))
}

// run reads until the test ends.
func (s *subscriber) run(ctx context.Context) {
	for {
		err := s.read()
		if ctx.Err() != nil {
			return
		}
		s.conn.Close()
		if errors.Is(err, errJSON) {
			s.note("an event of %s cannot be understood", s.channel)
		}
		s.lost.Add(1)
		for s.connect(ctx) != nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
		if ctx.Err() != nil {
			s.conn.Close()
			return
		}
	}
}

// errLater is a subscription that the server refuses for now, as in a fail-over.
var errLater = errors.New("the events were refused for now")

// read processes events until the connection ends.
func (s *subscriber) read() error {
	for {
		_, r, err := s.conn.NextReader()
		if err != nil {
			return err
		}
		if s.buf, err = readAll(r, s.buf[:0]); err != nil {
			return err
		}
		switch b := s.buf; {
		case len(b) == 1 && b[0] == '2': // ping
			if err := s.say("3"); err != nil {
				return err
			}
		case bytes.HasPrefix(b, []byte(`42["`)):
			if err := s.event(b[3:]); err != nil {
				return err
			}
		case bytes.HasPrefix(b, []byte(`431[{"status":503,`)):
			return errLater
		case bytes.HasPrefix(b, []byte("431[")) && !granted(b[len("431["):]):
			s.note("the events of %s were refused: %.200s", s.user.title(), b)
		}
	}
}

// readAll reads like io.ReadAll, into existing memory.
func readAll(r io.Reader, b []byte) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			b = slices.Grow(b, 4096)
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}

// event processes one event: its name and its argument, after a bracket.
func (s *subscriber) event(b []byte) error {
	name, rest, ok := nextValue(b)
	if !ok || len(rest) < 2 || rest[0] != ',' {
		return errJSON
	}
	argument := rest[1:]
	s.bytes.Add(uint64(len(b)))
	switch string(unquoted(name)) {
	case "subscribe.success":
		return nil
	case "subscribe.error":
		s.note("the channel %s was refused: %.200s", s.channel, argument)
		return nil
	case "depth.diff":
		s.events.Add(1)
		return s.diff(argument)
	case "trades":
		s.events.Add(1)
		return s.trade(argument)
	case ownChannel:
		s.events.Add(1)
		return s.own(argument)
	case "login.end":
		return nil
	}
	s.events.Add(1)
	return nil
}

func (s *subscriber) diff(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var book *localBook
	d, err := readDiff(b, s.keeps, func(name []byte) string {
		if book = s.books[string(name)]; book == nil {
			book = &localBook{}
			s.books[string(name)] = book
		}
		return "" // a caller that needs the name has the bytes
	})
	if err != nil {
		return err
	}
	if d.snapshot && book.update > 0 {
		s.wholes.Add(1)
	}
	if err := book.apply(&d, s.keeps); err != nil {
		if errors.Is(err, errJSON) {
			return err
		}
		s.noteLocked("the stream of %s is not dense: %v", s.nameOf(book), err)
		return s.say(`42["subscribe","diff"]`)
	}
	return nil
}

func (s *subscriber) nameOf(book *localBook) string {
	for name, b := range s.books {
		if b == book {
			return name
		}
	}
	return "?"
}

// trade checks that the ids of a pair's trades grow.
func (s *subscriber) trade(b []byte) error {
	var id uint64
	var pair []byte
	if err := eachField(b, func(name, v []byte) bool {
		switch string(name) {
		case "id":
			id = number(v)
		case "pair":
			pair = v
		}
		return true
	}); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.last[string(pair)]; id <= last {
		s.noteLocked("trade %d of %s comes after trade %d in the stream", id, pair, last)
	}
	s.last[string(pair)] = id
	return nil
}

// mostNoted bounds the faults noted by one subscriber.
const mostNoted = 20

func (s *subscriber) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteLocked(format, args...)
}

func (s *subscriber) noteLocked(format string, args ...any) {
	if len(s.wrong) < mostNoted {
		s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
	}
}
