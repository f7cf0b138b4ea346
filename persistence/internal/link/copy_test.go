package link

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// source opens the node b, which gives copies to a. It returns its address.
func source(t *testing.T,
	write func(ctx context.Context, to string, q Want, w io.Writer) error) (address string) {
	t.Helper()
	b := open(t, Options{Name: "b", Copy: write, Peers: []Peer{{"a", nowhere}}})
	return b.listener.Addr().String()
}

// joiner opens the node a, which has the peer b at an address.
func joiner(t *testing.T, address string) *Link {
	t.Helper()
	return open(t, Options{Name: "a", Peers: []Peer{{"b", address}}})
}

var wanted = Want{Nonce: "start", Least: 1234567}

// A source receives which copy is useful, and the peer receives its reason for a refusal. While it
// gives one, another is refused.
func TestPeerReceivesReasonWithoutCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.Repeat("copy", 1<<20)
		requests, release := make(chan Want, 3), make(chan error)
		a := joiner(t, source(t,
			func(_ context.Context, to string, q Want, w io.Writer) error {
				if to != "a" {
					t.Errorf("the copy is for %q", to)
				}
				requests <- q
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
			if q := <-requests; q != wanted {
				t.Errorf("%+v is requested", q)
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
			t.Errorf("a busy source answers %v", err)
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

		first = fetch()
		release <- nil
		r = <-first
		if r.err != nil {
			t.Fatal(r.err)
		}
		a.Drop("b") // in its middle
		if got, err := io.ReadAll(r.r); err == nil {
			t.Errorf("%d bytes of %d are a whole copy", len(got), len(text))
		}
		r.r.Close()
	})
}

// A copy that takes long to begin comes, and one that never begins is not waited for.
func TestCopyMayTakeLongToBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for takes, want := range map[time.Duration]error{copyWithin - time.Second: nil,
			10 * copyWithin: context.DeadlineExceeded} {
			a := joiner(t, source(t, func(ctx context.Context, _ string, _ Want,
				w io.Writer) error {
				if !pause(ctx, takes) {
					return ctx.Err()
				}
				_, err := io.WriteString(w, "copy")
				return err
			}))
			r, err := a.Fetch(t.Context(), "b", wanted)
			if !errors.Is(err, want) {
				t.Errorf("%v: %v", takes, err)
			}
			if err == nil {
				if b, err := io.ReadAll(r); err != nil || string(b) != "copy" {
					t.Errorf("%q comes: %v", b, err)
				}
				r.Close()
			}
		}
	})
}

// A copy without a byte is one.
func TestCopyMayBeEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := joiner(t, source(t, func(context.Context, string, Want, io.Writer) error {
			return nil
		}))
		r, err := a.Fetch(t.Context(), "b", wanted)
		succeeds(t, err)
		defer r.Close()
		if b, err := io.ReadAll(r); err != nil || len(b) > 0 {
			t.Errorf("%q comes: %v", b, err)
		}
	})
}
