//go:build linux && !race && prove

package socketio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"
)

// A bare client is a file descriptor: it takes no memory and hardly any time of the process.
func bare(t testing.TB, address string) (fd int) {
	_, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: n, Addr: [4]byte{127, 0, 0, 1}}); err !=
		nil {
		t.Fatal(err)
	}
	say := func(b []byte, want string) {
		if _, err := unix.Write(fd, b); err != nil {
			t.Fatal(err)
		}
		buffer := [4096]byte{}
		for got := []byte(nil); !bytes.Contains(got, []byte(want)); {
			n, err := unix.Read(fd, buffer[:])
			if err != nil || n == 0 {
				t.Fatalf("%d, %v after %q", n, err, got)
			}
			got = append(got, buffer[:n]...)
		}
	}
	say(
		[]byte(
			"GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: x\r\nConnection: "+
				"Upgrade\r\nUpgrade: websocket\r\n"+
				"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"),
		"maxPayload")
	say(masked(textFrame, "40/silent"), "40/silent,{")
	return fd
}

// subscribers are bare clients, whose bytes one goroutine throws away and counts.
type subscribers struct {
	*rig
	sockets  []*Socket
	received atomic.Int64
	want     atomic.Int64
	all      chan struct{}
}

func subscribe(b *testing.B, n int) *subscribers {
	s := &subscribers{rig: echo(b, Options{}, loopback), all: make(chan struct{}, 1)}
	s.server.Namespace("/silent", Namespace{Connect: func(x *Socket, _ json.RawMessage) error {
		s.sockets = append(s.sockets, x) // one at a time, as they come
		return nil
	}})
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		b.Fatal(err)
	}
	for range n {
		fd := bare(b, s.address)
		b.Cleanup(func() { unix.Close(fd) }) //nolint:errcheck
		if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, fd,
			&unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
			b.Fatal(err)
		}
	}
	var done atomic.Bool
	var wait sync.WaitGroup
	b.Cleanup(func() { done.Store(true); wait.Wait(); unix.Close(poll) }) //nolint:errcheck
	wait.Go(func() {
		events, buffer := make([]unix.EpollEvent, 256), make([]byte, 64<<10)
		for !done.Load() {
			n, _ := unix.EpollWait(poll, events, 100)
			for _, e := range events[:max(n, 0)] {
				if n, err := unix.Read(int(e.Fd),
					buffer); err == nil && s.received.Add(int64(n)) == s.want.Load() {
					s.all <- struct{}{}
				}
			}
		}
	})
	return s
}

// shards calls f with each socket, from as many goroutines as a hub would have, and waits until all
// bytes have arrived.
func (s *subscribers) shards(bytes int, f func(*Socket)) {
	s.want.Add(int64(bytes * len(s.sockets)))
	n := runtime.GOMAXPROCS(0)
	for i := range n {
		go func() {
			for j := i; j < len(s.sockets); j += n {
				f(s.sockets[j])
			}
		}()
	}
	<-s.all
}

// processor returns the processor time of this process.
func processor() time.Duration {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &u) //nolint:errcheck // of oneself it never fails
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// An operation is a burst of a trade's events for 1,000 subscribers, until all have read the burst.
// The subscribers are in the same process and have a part of the time.
func BenchmarkFanOut(b *testing.B) {
	const subscribers = 1000
	trade := []byte(
		`{"id":123456789,"price":"50000.25","pair":"BTC_USD","type":"buy","timestamp":1700000000.123,"amount":"0.12"}`)
	frame := AppendFrame(nil, "/", "trades", trade)
	for _, burst := range []int{1, 20} {
		joined := bytes.Repeat(frame, burst)
		run := func(name string, f func(*Socket)) {
			b.Run(fmt.Sprintf("burst=%d/%s", burst, name), func(b *testing.B) {
				s := subscribe(b, subscribers)
				start := processor()
				b.ReportAllocs()
				for b.Loop() {
					s.shards(len(joined), f)
				}
				messages := float64(b.N * subscribers * burst)
				b.ReportMetric(messages/b.Elapsed().Seconds(), "msg/s")
				b.ReportMetric(float64((processor()-start).Nanoseconds())/messages, "cpu-ns/msg")
			})
		}
		one := []Delivery{{Frames: joined}}
		each := []Delivery{{Frames: frame}}
		split := []Delivery{{Tag: 1, Frames: joined[:len(joined)/2]},
			{Tag: 2, Frames: joined[len(joined)/2:]}}
		run("Deliver", func(s *Socket) { s.Deliver(one, nil) })
		run("Deliver of two channels", func(s *Socket) { s.Deliver(split, nil) })
		run("one write a message", func(s *Socket) {
			for range burst {
				s.Deliver(each, nil)
			}
		})
		run("a bare loop of writes", func(s *Socket) {
			if _, err := s.session.link.Conn.Write(joined); err != nil {
				b.Error(err)
			}
		})
	}
}

func BenchmarkAppendFrame(b *testing.B) {
	payload := []byte(
		`{"id":123456789,"price":"50000.25","pair":"BTC_USD","type":"buy","timestamp":1700000000.123,"amount":"0.12"}`)
	b.ReportAllocs()
	for dst := []byte{}; b.Loop(); {
		dst = AppendFrame(dst[:0], "/", "trades", payload)
	}
}

// An operation is a ping to each of 64 clients that poll, its pong, and the next poll. With pings
// every 25 s no more happens. %core is of both sides, because the clients are in the same process.
func BenchmarkIdlePolls(b *testing.B) {
	const clients = 64
	r := echo(b, Options{MessagesPerSecond: -1}, loopback)
	client := &fasthttp.HostClient{Addr: r.address, MaxConns: 2 * clients}
	do := func(method, sid, body string) string {
		q, a := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		defer fasthttp.ReleaseRequest(q)
		defer fasthttp.ReleaseResponse(a)
		q.Header.SetMethod(method)
		q.SetRequestURI(r.url("EIO=4&transport=polling&sid=" + sid))
		q.Header.SetContentType("text/plain;charset=UTF-8")
		q.SetBodyString(body)
		if err := client.Do(q, a); err != nil {
			return err.Error()
		}
		return string(a.Body())
	}
	var wait sync.WaitGroup
	var sessions []*session
	pongs := make(chan struct{}, clients)
	for range clients {
		p := r.polling()
		p.join()
		sessions = append(sessions, r.server.find([]byte(p.sid)))
		wait.Go(func() {
			for {
				if body := do("GET", p.sid, ""); body != "2" {
					if body != "1" { // the end
						b.Error(body)
					}
					return
				}
				if body := do("POST", p.sid, "3"); body != "ok" {
					b.Error(body)
				}
				pongs <- struct{}{}
			}
		})
	}
	held := func() bool { return r.server.Stats().HeldPolls == clients }
	start := processor()
	b.ReportAllocs()
	for b.Loop() {
		for _, x := range sessions {
			x.mu.Lock()
			x.send([]Delivery{{Frames: pingFrame}}, nil)
			x.unlock()
		}
		for range clients {
			<-pongs
		}
	}
	perRound := float64((processor() - start).Nanoseconds()) / float64(b.N)
	b.ReportMetric(perRound/clients, "cpu-ns/ping")
	b.ReportMetric(100*perRound/25e9, "%core")
	eventually(b, "all poll again", held)
	r.server.Shutdown()
	wait.Wait()
}

// bytesPerConnection opens so many websocket sessions that have joined a namespace, and returns the
// memory of one session. counted is the heap and the stacks by the runtime, and resident is the
// system's count. The clients are bare file descriptors and take none of this.
func bytesPerConnection(t *testing.T, connections int) (counted, resident int) {
	// As the gateway's: a buffer of 8 KiB for the head of each request.
	server := New(Options{})
	server.Namespace("/silent", Namespace{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &fasthttp.Server{Handler: server.Handle, KeepHijackedConns: true,
		ReadBufferSize: 8 << 10, Logger: quiet{},
		Concurrency: 2 * connections, MaxIdleWorkerDuration: 100 * time.Millisecond}
	go web.Serve(l) //nolint:errcheck // ends with the listener
	var list []int
	defer func() {
		for _, fd := range list {
			unix.Close(fd) //nolint:errcheck
		}
		server.Shutdown()
		web.Shutdown() //nolint:errcheck
	}()
	connect := func(n int) {
		for range n {
			list = append(list, bare(t, l.Addr().String()))
		}
	}
	measure := func() (counted, resident int) {
		eventually(t, "the HTTP server's goroutines are gone", func() bool {
			return runtime.NumGoroutine() < len(list)+20
		})
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		text, err := os.ReadFile("/proc/self/statm")
		if err != nil {
			t.Fatal(err)
		}
		pages, _ := strconv.Atoi(strings.Fields(string(text))[1])
		return int(m.HeapAlloc + m.StackInuse), pages * os.Getpagesize()
	}
	connect(10)
	counted, resident = measure()
	connect(connections)
	c, r := measure()
	if s := server.Stats(); s.WebSocket != connections+10 {
		t.Fatalf("%+v", s)
	}
	return (c - counted) / connections, (r - resident) / connections
}

// CONNECTIONS is how many are opened; each takes two file descriptors.
func TestBytesPerConnection(t *testing.T) {
	connections := 1000
	if s := os.Getenv("CONNECTIONS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		connections = n
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err == nil {
		limit.Cur = limit.Max
		unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) //nolint:errcheck // then there are fewer
		if most := int(limit.Cur)/2 - 100; connections > most {
			t.Logf("%d connections, for there are no more than %d file descriptors", most,
				limit.Cur)
			connections = most
		}
	}
	counted, resident := bytesPerConnection(t, connections)
	t.Logf("%d connections: %d bytes each of heap and stack, %d resident", connections, counted,
		resident)
	if counted > 30_000 {
		t.Errorf("%d bytes per connection", counted)
	}
}
