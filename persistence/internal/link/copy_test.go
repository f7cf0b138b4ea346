package link

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// source opens the node b, which gives copies to a. It returns its address.
func source(t *testing.T, beat time.Duration,
	write func(ctx context.Context, to string, q Want, w io.Writer) error) (address string) {
	t.Helper()
	b := open(t, Options{Name: "b", Copy: write, Peers: []Peer{{"a", nowhere}}, beat: beat})
	return b.listener.Addr().String()
}

// joiner opens the node a, which has the peer b at an address.
func joiner(t *testing.T, address string) *Link {
	t.Helper()
	return open(t, Options{Name: "a", Peers: []Peer{{"b", address}}})
}

var wanted = Want{Nonce: "start", Least: 1234567}

// A source hears which copy is of use, and its reason why it has none comes to the peer. While it
// gives one, another is refused.
func TestAPeerHearsWhyThereIsNoCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.Repeat("copy", 1<<20)
		asked, release := make(chan Want, 3), make(chan error)
		a := joiner(t, source(t, 0,
			func(_ context.Context, to string, q Want, w io.Writer) error {
				if to != "a" {
					t.Errorf("the copy is for %q", to)
				}
				asked <- q
				if err := <-release; err != nil {
					return err
				}
				_, err := io.WriteString(w, text)
				return err
			}))
		type result struct {
			r   io.ReadCloser
			err error
		}
		fetch := func() <-chan result {
			c := make(chan result, 1)
			go func() {
				r, err := a.Fetch(t.Context(), "b", wanted)
				c <- result{r, err}
			}()
			if q := <-asked; q != wanted {
				t.Errorf("%+v is asked for", q)
			}
			return c
		}
		first := fetch()
		release <- errors.New("all are older")
		if r := <-first; r.err == nil || !strings.Contains(r.err.Error(), "all are older") {
			t.Errorf("a refusal is %v", r.err)
		}

		first = fetch()
		if _, err := a.Fetch(t.Context(), "b", wanted); err == nil ||
			!strings.Contains(err.Error(), "to another node") {
			t.Errorf("a busy source says %v", err)
		}
		release <- nil
		r := <-first
		if r.err != nil {
			t.Fatal(r.err)
		}
		got, err := io.ReadAll(r.r)
		if err != nil || string(got) != text {
			t.Errorf("%d bytes come of %d: %v", len(got), len(text), err)
		}
		r.r.Close()
	})
}

// A source says that a copy comes as long as it does not begin.
func TestASourceSaysThatACopyComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, released := make(chan struct{}), sync.Once{}
		begins := func() { released.Do(func() { close(release) }) }
		defer begins()
		address := source(t, time.Millisecond,
			func(_ context.Context, _ string, _ Want, w io.Writer) error {
				<-release
				_, err := io.WriteString(w, "copy")
				return err
			})
		conn := dial(t, address)
		first := wanted.hello(identity("c1", "a"))
		b := append(binary.BigEndian.AppendUint32(nil, uint32(len(first))), first...)
		if _, err := conn.Write(b); err != nil {
			t.Fatal(err)
		}
		succeeds(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		words := make([]byte, 5)
		if _, err := io.ReadFull(conn, words); err != nil || string(words) != "wwwww" {
			t.Fatalf("%q comes: %v", words, err)
		}
		begins()
		rest, err := io.ReadAll(conn)
		if err != nil || string(bytes.TrimLeft(rest, "w")) != "ccopy" {
			t.Errorf("%q comes: %v", rest, err)
		}
	})
}

// What is no answer of a source is refused, and a copy that never begins is not waited for.
func TestWhatIsNoAnswerOfASourceIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, x := range []struct{ says, want string }{
			{strings.Repeat("w", maxBeats), "does not begin"},
			{"exchange", "no word of a copy"},
			{"r\x00\x00\x04\x01", "a frame of 1025 bytes"},
			{"r\x00\x00\x00\x07old", "unexpected EOF"},
			{"ww", "EOF"},
		} {
			l := network.Listen("")
			a := joiner(t, l.Addr().String())
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					b, err := readFrame(conn, maxHello)
					if err == nil && bytes.HasPrefix(b, []byte(copyHello)) {
						io.WriteString(conn, x.says) //nolint:errcheck // the other end looks
					}
					conn.Close()
				}
			}()
			if _, err := a.Fetch(t.Context(), "b", wanted); err == nil ||
				!strings.Contains(err.Error(), x.want) {
				t.Errorf("%.20q: %v", x.says, err)
			}
			l.Close()
		}
	})
}

// A first frame that asks for no copy at a sequence is refused.
func TestAWantHasOneForm(t *testing.T) {
	var q Want
	text, _ := strings.CutPrefix(wanted.hello("c1/a"), copyHello)
	if rest, ok := q.cut(text); !ok || rest != "c1/a" || q != wanted {
		t.Errorf("%q is %+v, before %q", text, q, rest)
	}
	for _, text := range []string{"", "start", "start 1x name", "start -1 name",
		"start 18446744073709551616 name"} {
		if _, ok := q.cut(text); ok {
			t.Errorf("%q is taken", text)
		}
	}
}
