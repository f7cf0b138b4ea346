package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"exchange/gateway/sign"
	"exchange/loadtest/generator"
)

// Subscribers are raw websockets on one thread and the generator's poller. Their cost is small:
// reading, and a look at the first bytes of each frame.

// An audience is a number of subscribers of the same channels.
type audience struct {
	Connections int
	Channels    []string
}

// A listener is a key whose account a subscriber observes.
type listener struct{ Key, Secret string }

// A wish is a request to the subscribers' helper.
type wish struct {
	Do       string // open, await, poll or close
	Address  string
	Groups   []audience // open
	Owners   []listener // open: a subscriber of own for each of them, too
	Each     int        // open: report on the pipe whenever this many events have come
	Messages int        // await: until this many have come since the open
	Within   float64    // await: seconds
	Polls    int        // poll: the number of clients that poll
}

// A seen counts the subscribers' events since the open.
type seen struct {
	Messages int // events of channels
	Reads    int
	Closed   int // connections that the server ended
}

// A subscriber is one connection.
type subscriber struct {
	number   int // in the poller
	channels []string
	login    *listener // of own; nil: it has channels
	upgraded bool
	awaited  int    // channels that have not let it in
	kept     []byte // of a head or a frame that has not come as a whole
	skip     int    // bytes of a frame that are of no interest
}

// subscribers are all of them.
type subscribers struct {
	poll    generator.Poller
	pipe    *os.File
	list    []*subscriber // by number; nil: closed, and standard input
	dial    func() error  // opens one more; nil: no more are wanted
	opening int
	seen    seen
	each    int
	mark    int // messages at the last write to the pipe
	done    func() (finished bool, err error)
	polls   context.CancelFunc
	failed  error
	in      []byte // of questions
	buffer  []byte
}

// openingAtOnce is how many connections are opened at once.
const openingAtOnce = 256

// serveSubscribers runs the helper's main loop.
func serveSubscribers() {
	runtime.LockOSThread()
	s := &subscribers{pipe: os.NewFile(3, "pipe"), list: make([]*subscriber, 1),
		buffer: make([]byte, 1<<20)}
	var err error
	if s.poll, err = generator.NewPoller(); err == nil {
		err = s.poll.Add(0, os.Stdin)
	}
	var ready []int
	for err == nil {
		ready, err = s.poll.Wait(20*time.Millisecond, ready[:0])
		for _, i := range ready {
			if i > 0 {
				s.readable(i)
			} else if err = s.questions(); err == io.EOF {
				return
			}
		}
		for s.dial != nil && s.opening < openingAtOnce && s.failed == nil {
			s.failed = s.dial()
		}
		s.finish()
	}
	fmt.Fprintln(os.Stderr, "subscribers:", err)
	os.Exit(1)
}

// finish answers the question that is open, if it can be.
func (s *subscribers) finish() {
	if s.done == nil {
		return
	}
	finished, err := s.done()
	if err == nil {
		err = s.failed
	}
	if finished || err != nil {
		s.done, s.failed = nil, nil
		answer(s.seen, err)
	}
}

func (s *subscribers) questions() error {
	var b [4096]byte
	n, err := s.poll.Read(0, b[:])
	if err != nil {
		return io.EOF
	}
	s.in = append(s.in, b[:n]...)
	line, rest, whole := bytes.Cut(s.in, []byte{'\n'})
	if !whole {
		return nil
	}
	var w wish
	err = json.Unmarshal(line, &w)
	s.in = append(s.in[:0], rest...)
	if err == nil {
		err = s.handle(&w)
	}
	if err != nil {
		answer(nil, err)
	}
	return nil
}

func (s *subscribers) handle(w *wish) error {
	switch w.Do {
	case "open":
		s.open(w)
	case "await":
		until := time.Now().Add(time.Duration(w.Within * float64(time.Second)))
		s.done = func() (bool, error) {
			return s.seen.Messages >= w.Messages || s.seen.Closed > 0 || time.Now().After(until),
				nil
		}
	case "poll":
		ctx, cancel := context.WithCancel(context.Background())
		s.polls = cancel
		if err := startPolls(ctx, w.Address, w.Polls); err != nil {
			return err
		}
		answer(s.seen, nil)
	case "close":
		s.close()
		answer(s.seen, nil)
	default:
		return fmt.Errorf("%q is no question", w.Do)
	}
	return nil
}

// open opens connections and waits until all are subscribed.
func (s *subscribers) open(w *wish) {
	s.seen, s.each, s.mark = seen{}, w.Each, 0
	groups := w.Groups
	s.dial = func() error {
		for len(groups) > 0 && groups[0].Connections == 0 {
			groups = groups[1:]
		}
		if len(groups) > 0 {
			groups[0].Connections--
			return s.connect(w.Address, groups[0].Channels, nil)
		}
		if len(w.Owners) > 0 {
			x := &w.Owners[0]
			w.Owners = w.Owners[1:]
			return s.connect(w.Address, nil, x)
		}
		s.dial = nil
		return nil
	}
	s.done = func() (bool, error) {
		if s.seen.Closed > 0 {
			return true, fmt.Errorf("the server closed %d connections that had just been opened",
				s.seen.Closed)
		}
		return s.dial == nil && s.opening == 0, nil
	}
}

func (s *subscribers) connect(address string, channels []string, login *listener) error {
	conn, err := net.DialTimeout("tcp", address, patienceWithServer)
	if err != nil {
		return err
	}
	// Closed connections are gone at once. Otherwise the next thousands would have no ports.
	if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
		return err
	}
	c := &subscriber{number: len(s.list), channels: channels, awaited: max(1, len(channels)),
		login: login}
	s.list = append(s.list, c)
	s.opening++
	if err := s.poll.Add(c.number, conn); err != nil {
		return err
	}
	return s.poll.Write(c.number, []byte("GET /socket.v2/?EIO=4&transport=websocket HTTP/1.1\r\n"+
		"Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
}

func (s *subscribers) close() {
	for i, c := range s.list {
		if c != nil {
			s.poll.Remove(i)
		}
	}
	s.list = s.list[:1]
	s.opening, s.dial, s.failed = 0, nil, nil
	if s.polls != nil {
		s.polls()
		s.polls = nil
	}
}

// readable reads once from a connection.
func (s *subscribers) readable(number int) {
	if number >= len(s.list) || s.list[number] == nil { // closed since the wait
		return
	}
	c := s.list[number]
	n, err := s.poll.Read(number, s.buffer)
	if err == generator.ErrAgain {
		return
	}
	if err != nil {
		s.lost(c)
		return
	}
	s.seen.Reads++
	b := s.buffer[:n]
	if len(c.kept) > 0 {
		b = append(c.kept, b...)
		c.kept = nil
	}
	if !c.upgraded {
		head, rest, whole := bytes.Cut(b, []byte("\r\n\r\n"))
		if !whole {
			c.kept = bytes.Clone(b)
			return
		}
		if !bytes.HasPrefix(head, []byte("HTTP/1.1 101 ")) {
			s.failed = fmt.Errorf("a subscriber was refused: %q", b)
			return
		}
		c.upgraded, b = true, rest
		ask := `420["challenge"]`
		if c.login == nil {
			names, _ := json.Marshal(c.channels)
			ask = `42["subscribe",` + string(names) + "]"
		}
		if err := s.say(c, "40", ask); err != nil {
			s.failed = err
		}
	}
	s.frames(c, b)
	if s.each > 0 && s.seen.Messages-s.mark >= s.each {
		s.mark += s.each
		// An error means that the owner has closed its end.
		_, _ = s.pipe.Write(binary.LittleEndian.AppendUint64(nil, uint64(monotonic())))
	}
}

// say writes packets to a connection, together.
func (s *subscribers) say(c *subscriber, packets ...string) error {
	var b []byte
	for _, p := range packets {
		b = generator.AppendFrame(b, []byte(p))
	}
	return s.poll.Write(c.number, b)
}

// lost notes a connection that the server has closed.
func (s *subscribers) lost(c *subscriber) {
	s.seen.Closed++
	if c.awaited > 0 {
		s.opening--
	}
	s.poll.Remove(c.number)
	s.list[c.number] = nil
}

// How many bytes of a frame name its kind, and how many a login is answered with at most.
const (
	looked = 24
	acked  = 4096
)

// looks returns how many bytes of a frame are looked at.
func (c *subscriber) looks() int {
	if c.login != nil && c.awaited > 0 {
		return acked
	}
	return looked
}

// frames counts the frames that have come.
func (s *subscribers) frames(c *subscriber, b []byte) {
	for len(b) > 0 {
		if c.skip > 0 {
			n := min(c.skip, len(b))
			c.skip -= n
			b = b[n:]
			continue
		}
		header, size, ok := generator.FrameHeader(b)
		look := min(size, c.looks())
		if !ok || len(b) < header+look {
			c.kept = bytes.Clone(b)
			return
		}
		s.frame(c, b[0], b[header:header+look])
		n := min(header+size, len(b))
		c.skip = header + size - n
		b = b[n:]
	}
}

var (
	admitted  = []byte(`42["subscribe.success"`)
	refused   = []byte(`42["subscribe.error"`)
	snapshot  = []byte(`42["own",{"snapshot"`) // it is no event
	eventHead = []byte(`42["`)
	ackHead   = []byte("43")
)

// frame takes one frame, or its beginning.
func (s *subscribers) frame(c *subscriber, kind byte, b []byte) {
	switch {
	case kind == 0x88 || len(b) == 1 && b[0] == '1' || bytes.HasPrefix(b, []byte("44")) ||
		bytes.HasPrefix(b, refused):
		s.failed = fmt.Errorf("a subscriber received %q", b)
	case len(b) == 1 && b[0] == '2':
		s.say(c, "3") //nolint:errcheck // the server will say so
	case bytes.HasPrefix(b, admitted):
		if c.awaited--; c.awaited == 0 {
			s.opening--
		}
	case bytes.HasPrefix(b, ackHead) && c.login != nil:
		if err := s.acknowledged(c, b[len(ackHead):]); err != nil {
			s.failed = err
		}
	case bytes.HasPrefix(b, eventHead) && !bytes.HasPrefix(b, snapshot):
		s.seen.Messages++
	}
}

// acknowledged continues with a login: the challenge is signed, and then own is asked for.
func (s *subscribers) acknowledged(c *subscriber, b []byte) error {
	var answers []struct {
		Challenge string
		Status    int
	}
	if err := json.Unmarshal(b[1:], &answers); err != nil || len(answers) != 1 ||
		b[0] != '0' && answers[0].Status != 200 {
		return fmt.Errorf("a subscriber's login was answered with %q", b)
	}
	switch b[0] {
	case '0':
		text := "login\n" + c.login.Key + "\n" + answers[0].Challenge
		event := append([]byte(`421["login",{"key":"`+c.login.Key+`","sign":"`),
			sign.New([]byte(c.login.Secret)).Sign(nil, []byte(text))...)
		return s.say(c, string(event)+`"}]`)
	case '1':
		return s.say(c, `422["own.subscribe"]`)
	}
	c.awaited--
	s.opening--
	return nil
}

// monotonic returns the time of a clock that all processes share, in nanoseconds.
func monotonic() int64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) //nolint:errcheck // it never fails
	return t.Nano()
}

// startPolls starts clients that poll, and returns when they are in.
func startPolls(ctx context.Context, address string, n int) error {
	ready := make(chan error, n)
	for range n {
		go func() { ready <- poll(ctx, "http://"+address+"/socket.v2/?EIO=4&transport=polling") }()
	}
	var failed error
	for range n {
		failed = errors.Join(failed, <-ready)
	}
	return failed
}

// poll opens a session that polls until ctx ends.
func poll(ctx context.Context, url string) error {
	client := &http.Client{Transport: &http.Transport{}}
	do := func(method, url, body string) (string, error) {
		req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
		if err != nil {
			return "", err
		}
		resp, err := client.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode != 200 {
			err = fmt.Errorf("%d %s", resp.StatusCode, b)
		}
		return string(b), err
	}
	text, err := do("GET", url, "")
	if err != nil {
		return err
	}
	var open struct{ Sid string }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "0")), &open); err != nil {
		return err
	}
	url += "&sid=" + open.Sid
	if _, err := do("POST", url, "40\x1e"+`42["subscribe","trades"]`); err != nil {
		return err
	}
	go func() {
		defer client.CloseIdleConnections()
		for ctx.Err() == nil {
			text, err := do("GET", url, "")
			if err == nil && strings.HasPrefix(text, "2") {
				_, err = do("POST", url, "3")
			}
			if err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "a polling client:", err)
				return
			}
		}
	}()
	return nil
}
