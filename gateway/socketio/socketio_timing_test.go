//go:build linux && !race && prove

package socketio

import (
	"bytes"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"
)

// A bare client is a file descriptor: it takes no memory and hardly any time of the process.
func bare(t testing.TB, address string) (fd int) {
	_, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	fd = must(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
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

// bytesPerConnection opens that many websocket sessions that have joined a namespace, and returns
// the memory of one session. counted is the heap and the stacks by the runtime, and resident is the
// system's count. The clients are bare file descriptors and take none of this.
func bytesPerConnection(t *testing.T, connections int) (counted, resident int) {
	// As the gateway's: a buffer of 8 KiB for the head of each request.
	server := New(Options{})
	server.Namespace("/silent", Namespace{})
	l := must(net.Listen("tcp", "127.0.0.1:0"))
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
		text := must(os.ReadFile("/proc/self/statm"))
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
		n := must(strconv.Atoi(s))
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
