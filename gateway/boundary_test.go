package gateway

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
)

// A head is answered when it is over for a lenient reader: its client sends no more, and would wait.
func TestAHeadWithoutCRIsAnsweredAtOnce(t *testing.T) {
	doors(t, func(t *testing.T, d *door) {
		for _, text := range []string{
			"GET / HTTP/1.1\nHost: x\n\n", "GET / HTTP/1.1\r\nHost: x\n\n", "GET / HTTP/1.1\r\nHost: x\n\r\n", "GET / HTTP/1.1\nHost: x\r\n\n",
			"GET / HTTP/1.1\r\nHost: x\r\n\n", d.head("Transfer-Encoding: chunked\r\n") + "0\r\n\n",
			d.head("Transfer-Encoding: chunked\r\n") + "2\r\n{}\r\n0\r\n\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
		} {
			for _, piece := range []int{1, 3, len(text)} {
				c := d.dial(t)
				for rest := text; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
					if _, err := io.WriteString(c, rest[:min(piece, len(rest))]); err != nil {
						break // it was answered before
					}
				}
				answer, err := io.ReadAll(c)
				if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") || strings.Count(string(answer), "HTTP/1.1") != 1 {
					t.Errorf("%q in pieces of %d: %q, %v", text, piece, answer, err)
				}
				c.Close()
			}
		}
	})
}

// followed is what is passed on of some bytes that come in pieces.
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
	for _, text := range []string{ // what is bad begins behind a bar
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
		"GET / HTTP/1.1\r\nUpgrade: WebSocket\r\nUpgrade: x\r\n\r\n\n\n" + "x\ny\n",
	} {
		want, rest, bad := strings.Cut(text, "|")
		for piece := 1; piece <= len(text); piece++ {
			if got, b := followed([]byte(want+rest), piece); string(got) != want || b.broken != bad {
				t.Errorf("%q in pieces of %d: %q", text, piece, got)
			}
		}
	}
}

// However the bytes come, the same is passed on; and what is followed allocates nothing.
func FuzzBoundaries(f *testing.F) {
	for _, s := range []string{"", "\n", "GET / HTTP/1.1\nHost: x\n\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET", "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello\n",
		"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\n", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
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
	})
}

func TestFollowingARequestAllocatesNothing(t *testing.T) {
	text := []byte("POST /api/v1/order HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhelloPOST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
	b := &boundaries{}
	if n := testing.AllocsPerRun(100, func() {
		if b.follow(text) != len(text) || b.broken {
			t.Fatal(fmt.Sprint("it is refused: ", b.part))
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkFollowing(b *testing.B) {
	text := []byte("POST /api/v1/order/ HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nX-KEY: 0123456789abcdef0123456789abcdef\r\nX-SIGN: " + strings.Repeat("a", 64) +
		"\r\nX-NONCE: 1700000000000000000\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 56\r\n\r\n" + strings.Repeat("x", 56))
	f := &boundaries{}
	b.ReportAllocs()
	for b.Loop() {
		f.follow(text)
	}
}
