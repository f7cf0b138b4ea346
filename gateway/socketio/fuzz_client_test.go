package socketio

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"
)

// A tape is a connection whose client has sent all its bytes: the handshake, and the rest in reads
// of a maximum size. It records everything sent to the client, which disconnects when nothing more
// is in flight.
type tape struct {
	part    int
	written func()        // waits until then
	closed  chan struct{} // by the server

	mu   sync.Mutex
	head []byte
	in   bytes.Reader
	out  bytes.Buffer
	once sync.Once
}

func (c *tape) Read(b []byte) (int, error) {
	select {
	case <-c.closed:
		return 0, net.ErrClosed
	default:
	}
	c.mu.Lock()
	if n := copy(b, c.head); n > 0 {
		c.head = c.head[n:]
		c.mu.Unlock()
		return n, nil
	}
	c.mu.Unlock()
	c.written()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.in.Read(b[:min(len(b), c.part)])
}

func (c *tape) Write(b []byte) (int, error) {
	select {
	case <-c.closed:
		return 0, net.ErrClosed
	default:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(b)
}

func (c *tape) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

func (c *tape) LocalAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
}
func (c *tape) RemoteAddr() net.Addr             { return c.LocalAddr() }
func (c *tape) SetDeadline(time.Time) error      { return nil }
func (c *tape) SetReadDeadline(time.Time) error  { return nil }
func (c *tape) SetWriteDeadline(time.Time) error { return nil }

// Bits of the byte that says how an input is sent.
const (
	inFrames = 1 << iota // each line of it is a message, instead of bytes as they are
	inMain               // the client is in the main namespace before
	upgrades             // the websocket takes the place of polling
	inParts              // few bytes are read at a time
)

// Bits of the first byte of a line.
const (
	isBinary = 1 << iota
	inFragments
	isPing
)

// clientFrames makes frames with a mask of each line.
func clientFrames(lines []byte) (frames []byte) {
	add := func(kind byte, payload []byte) {
		mask := [4]byte{0x5a, 0, 0xff, 7}
		at := len(frames)
		frames = appendHeader(frames, kind, len(payload))
		frames[at+1] |= 0x80
		frames = append(frames, mask[:]...)
		for i, b := range payload {
			frames = append(frames, b^mask[i%4])
		}
	}
	for line := range bytes.SplitSeq(lines, []byte{'\n'}) {
		if len(line) == 0 {
			continue
		}
		how, text, kind := line[0], line[1:], byte(textFrame)
		if how&isBinary != 0 {
			kind = binaryFrame
		}
		switch {
		case how&inFragments != 0:
			half := len(text) / 2
			add(kind&^0x80, text[:half])
			if how&isPing != 0 {
				add(0x89, text[:min(half, 125)])
			}
			add(0x80, text[half:])
		case how&isPing != 0:
			add(0x89, text)
		default:
			add(kind, text)
		}
	}
	return frames
}

// checkFrames checks the bytes for a client against the protocol.
func checkFrames(t *testing.T, got []byte, upgrade bool) {
	t.Helper()
	head, rest, ok := bytes.Cut(got, []byte("\r\n\r\n"))
	if !ok || !bytes.HasPrefix(head, []byte("HTTP/1.1 101 ")) {
		t.Fatalf("the handshake is answered with %q", got)
	}
	attachments := 0
	for n := 0; len(rest) > 0; n++ {
		kind, payload, next, ok := nextFrame(rest)
		if !ok {
			t.Fatalf("frame %d is none: %q of %q", n, rest, got)
		}
		rest = next
		switch {
		case kind == closeFrame && (len(payload) == 0 ||
			len(payload) >= 2 && closeCode(binary.BigEndian.Uint16(payload))):
			if len(rest) > 0 {
				t.Fatalf("%q follows a close frame", rest)
			}
		case kind == pongFrame && len(payload) < 126:
		case kind == binaryFrame && attachments > 0:
			attachments--
		case kind == textFrame && attachments == 0 && utf8.Valid(payload):
			if attachments, ok = serverPacket(payload, n == 0, upgrade); !ok {
				t.Fatalf("frame %d is %q, which is no packet of a server", n, payload)
			}
		default:
			t.Fatalf("frame %d is %#x %q, with %d attachments to come", n, kind, payload,
				attachments)
		}
	}
}

// closeCode reports whether a close frame may have the code.
func closeCode(code uint16) bool {
	return code >= 1000 && code < 5000 && code != 1004 && code != 1005 && code != 1006 &&
		code != 1015
}

// serverPacket reports whether a server sends such a packet, and how many attachments follow.
func serverPacket(text []byte, first, upgrade bool) (attachments int, ok bool) {
	switch {
	case first && upgrade:
		return 0, string(text) == "3probe"
	case first:
		return 0, len(text) > 1 && text[0] == '0' && json.Valid(text[1:])
	case len(text) < 2 || text[0] != engineMessage:
		return 0, string(text) == "2" // a ping
	}
	switch body := text[2:]; text[1] - '0' {
	case typeConnect, typeConnectError:
		if len(body) > 0 && body[0] == '/' {
			_, body, _ = bytes.Cut(body, []byte{','})
		}
		var payload struct{ Sid, Message string }
		err := json.Unmarshal(body, &payload)
		return 0, err == nil && (payload.Sid != "") == (text[1] == '0'+typeConnect) &&
			(payload.Message != "") == (text[1] == '0'+typeConnectError)
	default:
		p, err := decode(text[1:], 1<<20)
		return p.attachments, err == nil
	}
}

// addClientFrames adds the seeds of FuzzClientFrames.
func addClientFrames(f *testing.F) {
	var frames []byte
	for _, s := range []string{`42["message","héllo",{"a":[1]}]`, `42456["message-with-ack",1]`,
		"40/custom,", `42/custom,["x"]`, "41/custom,", "3"} {
		frames = append(frames, masked(textFrame, s)...)
	}
	frames = append(frames, masked(0x89, "there?")...)
	f.Add(frames, byte(inMain))
	f.Add(frames, byte(inMain|inParts))
	f.Add(frames, byte(0)) // an event of a client that is in no namespace
	for _, s := range []string{"", "\x00", "GET / HTTP/1.1\r\n\r\n",
		string(masked(textFrame, "42[\"\xff\"]")),
		string(masked(0x01, "4")) + string(masked(textFrame, "3")), string(masked(0x80, "3")),
		string(masked(textFrame|0x40, "3")), string(masked(0x83, "3")),
		string(masked(0x89, strings.Repeat("x", 126))), string(masked(closeFrame, "\x03\xe9bye")),
		string(masked(closeFrame, "\x03\xed")),
		string(masked(closeFrame, "")), string(masked(closeFrame, "\x03")),
		string(masked(textFrame, strings.Repeat("4", 3000))),
		string(appendFrame(nil, textFrame, []byte("42"))),
		string(binary.BigEndian.AppendUint64([]byte{textFrame, 0x80 | 127}, 1<<63)) + "1234",
		string(masked(textFrame, "42[1]")[:3])} {
		f.Add([]byte(s), byte(inMain))
	}
	for _, s := range []string{
		"\x0042[\"message\",1]\n\x02420[\"message-with-ack\",\"in fragments\"]\n\x0642[\"a ping " +
			"between\"]\n\x04ping",
		"\x00451-[\"message\",{\"_placeholder\":true,\"num\":0}]\n\x01bytes",
		"\x00452-7[\"message-with-ack\",{\"_placeholder\":true,\"num\":0}," +
			"{\"_placeholder\":true,\"num\":1}]\n\x01one\n\x03two",
		"\x00451-[\"message\",{\"_placeholder\":true,\"num\":0}]\n\x0042[1]",
		"\x01nothing waits for it",
		"\x0040/admin,{\"token\":\"secret\"}\n\x0040/admin,{\"token\":\"x\"}\n" +
			"\x0042/admin,[\"leave\"]",
		"\x0040/none,\n\x0040/silent,\n\x0042/silent,[\"x\"]", "\x0042[\"close\"]\n\x0042[\"x\"]",
		"\x0042[\"restart\"]", "\x0041\n\x0042[1]", "\x001", "\x002", "\x006\n\x003\n\x00431[]",
		"\x007",
		"\x0042[\"connect\"]", "\x0042[" + strings.Repeat("1,", 1000) + "1]",
		strings.Repeat("\x003\n", 60), "\x004599-[\"x\"]"} {
		f.Add([]byte(s), byte(inFrames|inMain))
		f.Add([]byte(s), byte(inFrames))
	}
	f.Add([]byte("\x002probe\n\x005\n\x0040\n\x0042[\"message\",1]"), byte(inFrames|upgrades))
	f.Add([]byte("\x002probe\n\x005\n\x0042[\"message\",1]"), byte(inFrames|upgrades|inMain))
	f.Add([]byte("\x002probe\n\x002probe"), byte(inFrames|upgrades|inParts))
	f.Add([]byte("\x005"), byte(inFrames|upgrades))
	f.Add([]byte("\x012probe"), byte(inFrames|upgrades))
}

// A client may send any bytes after its handshake. It receives only frames and packets of the
// protocol, and when the connection ends nothing of the client is left.
func FuzzClientFrames(f *testing.F) {
	addClientFrames(f)
	f.Fuzz(func(t *testing.T, sent []byte, how byte) {
		synctest.Test(t, func(t *testing.T) { hostileFrames(t, sent, how) })
	})
}

func hostileFrames(t *testing.T, sent []byte, how byte) {
	// So little that an input can meet the bounds.
	r := &rig{t: t, options: Options{MaxPayload: 2000, MessagesPerSecond: 1, MessagesBurst: 50,
		QueueBytes: 16 << 10}, left: map[*Socket]Reason{}, inside: map[*Socket]int{}}
	r.server = r.newServer()
	r.serving.Store(r.server)
	defer r.ended()
	query := "EIO=4&transport=websocket"
	var x *session
	if how&upgrades != 0 {
		x, _ = r.server.open(netip.IPv4Unspecified(), "/socket.io/", nil)
		query += "&sid=" + string(x.id)
		defer x.close(ServerClose)
		if how&inMain != 0 {
			worked(t, x.receive(enginePacket{data: []byte("40")}))
		}
	}
	if how&inFrames != 0 {
		sent = clientFrames(sent)
	}
	if how&(inMain|upgrades) == inMain {
		sent = append(masked(textFrame, "40"), sent...)
	}
	received := r.talk(x, query, sent, how&inParts != 0)
	if how&upgrades == 0 {
		eventually(t, "the session ends with its connection", func() bool {
			return len(r.server.all()) == 0
		})
	}
	checkFrames(t, received, how&upgrades != 0)
}

// talk sends bytes over a websocket, which upgrades a session if there is one, until the connection
// is closed. It returns the bytes that the client received.
func (r *rig) talk(x *session, query string, sent []byte, inParts bool) []byte {
	server := fasthttp.Server{Handler: r.server.Handle, KeepHijackedConns: true,
		NoDefaultContentType: true, Logger: quiet{}}
	c := &tape{part: 64 << 10, closed: make(chan struct{}),
		head: []byte("GET /socket.io/?" + query +
			" HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")}
	if inParts {
		c.part = 3
	}
	c.in.Reset(sent)
	c.written = func() {
		if x == nil {
			x = r.server.all()[0] // the session that reads now is its reader
		}
		eventually(r.t, "all is written", func() bool {
			x.mu.Lock()
			defer x.mu.Unlock()
			return x.link == nil || x.aborted || !x.writerRuns && x.out.empty()
		})
	}
	worked(r.t, server.ServeConn(c))
	<-c.closed
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.out.Bytes())
}

// ended expects all goroutines of the servers to end, and nothing to be left.
func (r *rig) ended() {
	r.t.Helper()
	r.restarts.Wait()
	r.serving.Load().Shutdown()
	r.server.Shutdown()
	r.check()
}
