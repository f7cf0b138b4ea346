package listen

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/valyala/fasthttp"
)

// followed returns the bytes that are passed on of a text that comes in pieces.
func followed(text []byte, piece int) (passed []byte, b *boundaries) {
	b = &boundaries{}
	for len(text) > 0 && !b.broken {
		part := text[:min(piece, len(text))]
		text = text[len(part):]
		passed = append(passed, part[:b.follow(part)]...)
	}
	return passed, b
}

func TestWhereARequestEnds(t *testing.T) {
	const get, post = "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST / HTTP/1.1\r\nHost: x\r\n"
	for _, text := range []string{ // the bad part begins after a bar
		get + get,
		"\r\n\n" + get,
		"GET / HTTP/1.1\nHost: x\r\n\r\n",
		get + "GET / HTTP/1.1\nHost: x|\n",
		get + "GET / HTTP/1.1\r\n|\n",
		post + "Content-Length: 2\r\n\r\n\n\n" + get,
		post + "Content-Length: 1\r\n\r\n\n\n" + get, // the second is an empty line before the next
		post + "content-length:  2 \r\n\r\n\n\n" + get,
		post + "Content-Length: x\r|\n",
		post + "Content-Length: 2\r\nContent-Length: 2\r\n\r|\n",
		post + "Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n\n\n\r\n0\r\n\r\n" + get,
		post + "Transfer-Encoding: Chunked\r\n\r\nA \r\n0123456789\r\n0\r\n|\n",
		post + "Transfer-Encoding: chunked\r\n\r\n2|\n",
		post + "Transfer-Encoding: gzip\r|\n",
		post + "Content-Length:" + strings.Repeat(" ", 60) + "2\r|\n",
		post + "Transfer-Encoding: chunked\r\n\r\n0\r\nX-A: 1\r|\n",
		post + "X-A: 1\r\n| 2\r\n",
		post + "X-A: 1\r\n|\t2\r\n",
		post + "X| A: 1\r\n",
		post + "|: 1\r\n",
		post + "X-A\r|\n",
		post + strings.Repeat("X", 60) + "|\t: 1\r\n",
		"GET / HTTP/1.1\r\nUpgrade: WebSocket\r\nUpgrade: x\r\n\r\n\n\n" + "x\ny\n",
	} {
		want, rest, bad := strings.Cut(text, "|")
		for piece := 1; piece <= len(text); piece++ {
			if got, b := followed([]byte(want+rest), piece); string(got) != want ||
				b.broken != bad {
				t.Errorf("%q in pieces of %d: %q", text, piece, got)
			}
		}
	}
}

// ends are the ends of requests in some bytes, up to a request for another protocol.
func ends(text []byte) (list []int) {
	b := &boundaries{}
	for i := range text {
		begun := b.part != beforeHead
		if b.off || b.follow(text[i:i+1]) == 0 {
			return list
		}
		if begun && b.part == beforeHead {
			list = append(list, i+1)
		}
	}
	return list
}

// The bytes passed on do not depend on how they arrive, and the server finds the same requests in
// them. Each end that the server finds is an end here.
func FuzzBoundaries(f *testing.F) {
	for _, s := range []string{"", "\n", "GET / HTTP/1.1\nHost: x\n\n",
		"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET",
		"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello\n",
		"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\n",
		"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
		"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n\n\n"} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, piece uint8) {
		whole, b := followed(text, len(text)+1)
		parts, c := followed(text, int(piece)+1)
		if !bytes.Equal(whole, parts) || b.broken != c.broken {
			t.Fatalf("%q is passed on of %q, in pieces of %d %q", whole, text, int(piece)+1, parts)
		}
		if !bytes.HasPrefix(text, whole) || !b.broken && len(whole) != len(text) {
			t.Fatalf("%q is passed on of %q", whole, text)
		}
		endsAreTheServers(t, whole)
	})
}

// endsAreTheServers wants the server to find the same requests in the bytes passed on. n is their
// number.
func endsAreTheServers(t *testing.T, text []byte) (n int) {
	t.Helper()
	list, of := ends(text), endsForTheServer(text)
	if len(list) < len(of) || !slices.Equal(list[:len(of)], of) {
		t.Fatalf("requests in %q end at %v for the server, and at %v", text, of, list)
	}
	return len(of)
}

// The same for requests made of standard and non-standard parts, in any order.
func TestServerAndBoundariesAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	one := func(texts ...string) string { return texts[r.IntN(len(texts))] }
	often := func(usual string, others ...string) string { // mostly the usual one
		if r.IntN(12) > 0 {
			return usual
		}
		return one(others...)
	}
	end := func() string { return often("\r\n", "\n", "\r", "\r\r\n", "") }
	found := 0
	for range 50_000 {
		var text strings.Builder
		for range 1 + r.IntN(3) {
			text.WriteString(often("", "\r\n", "\n", " "))
			text.WriteString(one("GET", "POST", "HEAD", "PUT") + " / " +
				often("HTTP/1.1", "HTTP/1.0", "HTTP/2.0") + end())
			text.WriteString("Host: x" + end())
			body := one("", "", "hello", "\n", "\r\n\r\n", "GET / HTTP/1.1\r\nHost: y\r\n\r\n")
			for range r.IntN(4) {
				text.WriteString(one("Content-Length", "Transfer-Encoding", "X-A", "content-length",
					"Expect") + often(": ", ":", " : ", "\t:", ":\t"))
				text.WriteString(one("0", "5", fmt.Sprint(len(body)), fmt.Sprint(len(body)),
					"chunked", "chunked", "Chunked", "identity", "100-continue", "x", "+5") + end())
				text.WriteString(often("", " folded\r\n", "\tfolded\r\n", "no colon\r\n"))
			}
			switch r.IntN(4) {
			case 0:
				text.WriteString(end() + body)
			case 1:
				fmt.Fprintf(&text, "Content-Length: %d%s%s%s", len(body), end(), end(), body)
			default:
				text.WriteString("Transfer-Encoding: chunked" + end() + end())
				if len(body) > 0 {
					fmt.Fprintf(&text, "%x%s%s%s%s", len(body), often("", ";a=b", " ", ";a\n"),
						end(), body, end())
				}
				text.WriteString(often("0", "00", "0 ", "0;a") + end() +
					often("", "X-A: 1\r\n", "Content-Length: 5\r\n") + end())
			}
		}
		whole, _ := followed([]byte(text.String()), text.Len()+1)
		found += endsAreTheServers(t, whole)
	}
	if found < 10_000 {
		t.Errorf("the server has found %d requests", found)
	}
}

func TestAnEmptyHostIsPassedOnAsAnother(t *testing.T) {
	const first = "GET / HTTP/1.1\r\nX: y\r\n"
	for text, want := range map[string]string{
		"Host:\r\n\r\n":                        "Host:-\r\n\r\n",
		"hOST: \t\r\nA:\r\n\r\n":               "hOST: \t-\r\nA:\r\n\r\n",
		"Host: h\r\n\r\n":                      "Host: h\r\n\r\n",
		"Hosts:\r\n\r\n":                       "Hosts:\r\n\r\n",
		"Content-Length: 8\r\n\r\nHost:\r\n\r": "Content-Length: 8\r\n\r\nHost:\r\n\r",
	} {
		text, want = strings.Repeat(first+text, 20), strings.Repeat(first+want, 20)
		for _, room := range []int{1, 2, 7, 100, 10_000} {
			for _, in := range []io.Reader{strings.NewReader(text),
				iotest.OneByteReader(strings.NewReader(text))} {
				b, got := &boundaries{}, []byte(nil)
				for p := make([]byte, room); ; {
					n, err := b.read(in, p)
					if got = append(got, p[:n]...); err != nil {
						break
					}
				}
				if string(got) != want {
					t.Errorf("%.60q with room for %d is passed on as %.60q", text, room, got)
				}
			}
		}
	}
}

// endsForTheServer are the ends of the requests that the server accepts. The list ends at the first
// request that is refused, or asks for another protocol.
func endsForTheServer(text []byte) (list []int) {
	rest := bytes.NewReader(text)
	in := bufio.NewReaderSize(rest, 64<<10)
	for {
		var r fasthttp.Request
		if r.ReadLimitBody(in, 1<<20) != nil {
			return list
		}
		if r.MayContinue() && r.ContinueReadBody(in, 1<<20) != nil || !Speaks(r.Header.Protocol()) {
			return list
		}
		list = append(list, len(text)-rest.Len()-in.Buffered())
		if len(r.Header.Peek("Upgrade")) > 0 {
			return list
		}
	}
}

func TestFollowingARequestAllocatesNothing(t *testing.T) {
	text := []byte(
		"POST /api/v1/order HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhelloPOST / " +
			"HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
	b := &boundaries{}
	if n := testing.AllocsPerRun(100, func() {
		if b.follow(text) != len(text) || b.broken {
			t.Fatal(fmt.Sprint("it is refused: ", b.part))
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The cost of the checks of a head, beside the server's own reading.
func BenchmarkTheChecksOfAHead(b *testing.B) {
	text := []byte(
		"POST /api/v1/order/ HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: x\r\nX-KEY: " +
			"0123456789abcdef0123456789abcdef\r\nX-SIGN: " + strings.Repeat("a", 64) +
			"\r\nX-NONCE: 1700000000000000000\r\nContent-Type: " +
			"application/x-www-form-urlencoded\r\nContent-Length: 56\r\n\r\n" + strings.Repeat("x",
			56))
	var r fasthttp.Request
	worked(b, r.Read(bufio.NewReader(bytes.NewReader(text))))
	f := &boundaries{}
	b.ReportAllocs()
	for b.Loop() {
		f.follow(text)
		if !Speaks(r.Header.Protocol()) {
			b.Fatal("refused")
		}
	}
}
