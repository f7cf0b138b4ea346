package line

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var errListed = errors.New("a listed reason")

// between makes a session of each end of a connection; the other end answers. ended receives why
// each session is over.
func between(t *testing.T, answer func(q *Question) ([]byte, error)) (client, other *Session,
	ended chan error) {
	t.Helper()
	a, b := net.Pipe()
	q := Questions{Open: 2, Patience: time.Minute, Errors: []error{io.ErrNoProgress, errListed}}
	client = NewSession(a, usual, q)
	q.Answer = answer
	other = NewSession(b, usual, q)
	ended = make(chan error, 2)
	for _, s := range []*Session{client, other} {
		go func() { ended <- s.Run() }()
	}
	return client, other, ended
}

// An answer comes page by page in order, whatever others are open, and ends with its last page.
func TestAnswerArrivesPageByPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := between(t, func(q *Question) ([]byte, error) {
			for i := range 100 {
				if err := q.Send(fmt.Append(nil, string(q.Body), i)); err != nil {
					return nil, err
				}
			}
			return []byte("last"), nil
		})
		defer s.Close(errDone)
		var list []*Answer
		for _, body := range []string{"a", "b"} {
			x, err := s.Ask(7, 10, []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, x)
		}
		if _, err := s.Ask(7, 10, nil); err != errBusy {
			t.Errorf("a question too many: %v", err)
		}
		for i := range 100 {
			for k, x := range list {
				want := fmt.Sprint(string(rune('a'+k)), i)
				if page, err := x.Next(t.Context()); err != nil || string(page) != want {
					t.Fatalf("page %q comes, want %q: %v", page, want, err)
				}
			}
		}
		for _, x := range list {
			page, err := x.Next(t.Context())
			if string(page) != "last" || err != nil || x.More() {
				t.Errorf("the last page is %q: %v", page, err)
			}
			if _, err := x.Next(t.Context()); err != io.EOF {
				t.Errorf("after the end: %v", err)
			}
			x.End()
		}
		if b, err := s.Call(t.Context(), 7, []byte("c")); err != nil || string(b) != "c0" {
			t.Errorf("%q: %v", b, err)
		}
	})
}

// At most a window and a page are in flight: then the answer waits, for a while.
func TestAnswerWaitsForAcknowledgedPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent, over := make(chan int, 100), make(chan error, 1)
		s, _, _ := between(t, func(q *Question) ([]byte, error) {
			for i := 0; ; i++ {
				sent <- i
				if err := q.Send([]byte("12345")); err != nil {
					over <- err
					return nil, err
				}
			}
		})
		defer s.Close(errDone)
		x, err := s.Ask(7, 11, nil)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(sent) != 3 {
			t.Errorf("%d pages are in flight", len(sent))
		}
		for range 3 { // with the second one the first is done with
			if _, err := x.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if len(sent) != 5 {
			t.Errorf("%d pages were sent", len(sent))
		}
		time.Sleep(time.Hour)
		if err := <-over; err != errSlow {
			t.Errorf("the answer ends with %v", err)
		}
	})
}

// A listed error is matched, each with its text, and an answer that is not wanted any more ends.
func TestAnswerEndsWithItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := make(chan error, 1)
		s, _, _ := between(t, func(q *Question) ([]byte, error) {
			switch q.Kind {
			case 1:
				return nil, fmt.Errorf("%w: and why", errListed)
			case 2:
				return nil, errors.New("unknown")
			}
			<-q.Ctx.Done()
			stopped <- context.Cause(q.Ctx)
			return nil, nil
		})
		defer s.Close(errDone)
		_, err := s.Call(t.Context(), 1, nil)
		if !errors.Is(err, errListed) || !strings.Contains(err.Error(), "and why") {
			t.Errorf("a listed reason: %v", err)
		}
		if _, err = s.Call(t.Context(), 2, nil); errors.Is(err, errListed) ||
			!strings.Contains(err.Error(), "unknown") {
			t.Errorf("another reason: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Call(ctx, 3, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("no answer: %v", err)
		}
		if err := <-stopped; err != errDone {
			t.Errorf("it ends with %v", err)
		}
	})
}

// Unanswered questions are lost with the connection, and no more can be asked.
func TestQuestionsAreLostWithConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, other, ended := between(t, func(q *Question) ([]byte, error) {
			<-q.Ctx.Done()
			return nil, context.Cause(q.Ctx)
		})
		defer s.Close(errDone)
		x, err := s.Ask(1, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		other.Close(errListed)
		if _, err := x.Next(t.Context()); err != ErrLost {
			t.Errorf("it is %v", err)
		}
		for range 2 {
			<-ended
		}
		if _, err := s.Ask(1, 1, nil); err != ErrLost {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestMalformedMessageEndsSession(t *testing.T) {
	for what, says := range map[string][]byte{
		"no kind":              {77, 1},
		"no number":            {askMessage},
		"a question again":     {askMessage, 1, 1, 1},
		"an answer of nothing": {pageMessage, 1, 1},
		"an end of nothing":    {endMessage, 1, 0, 0},
		"taken too much":       {ackMessage, 1, 1},
		"taken half":           {ackMessage, 1, 0x80},
		"a nonsense question":  {askMessage, 2, 99, 1},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := net.Pipe()
				s := NewSession(b, usual, Questions{Open: 2, Patience: time.Minute,
					Answer: func(q *Question) ([]byte, error) {
						if q.Kind == 99 {
							return nil, ErrMalformed
						}
						<-q.Ctx.Done()
						return nil, nil
					}})
				ended := make(chan error, 1)
				go func() { ended <- s.Run() }()
				go io.Copy(io.Discard, a) //nolint:errcheck // its messages do not matter
				for _, m := range [][]byte{{askMessage, 1, 1, 1}, says} {
					b := append(binary.BigEndian.AppendUint32(nil, uint32(len(m))), m...)
					if _, err := a.Write(b); err != nil {
						t.Fatal(err)
					}
				}
				if err := <-ended; !errors.Is(err, ErrMalformed) {
					t.Errorf("it ends with %v", err)
				}
				a.Close()
			})
		})
	}
}

// A greeting is answered by the side that reads its kind and version, and by no other.
func TestGreetingIsTakenOrRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, x := range []struct {
			kind    byte
			version uint64
			want    string
		}{{'a', 3, ""}, {'a', 2, "version 3"}, {'b', 3, ErrPurpose.Error()},
			{'c', 1, "not today"}} {
			a, b := net.Pipe()
			go func() {
				g, err := Meet(b, time.Second, map[byte]uint64{'a': 3, 'c': 1})
				switch {
				case err != nil:
				case g.Kind == 'c':
					g.Refuse(errors.New("not today"))
				default:
					//nolint:errcheck // the other end checks
					g.Take(append([]byte("to "), g.Body...))
				}
			}()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			answer, err := Greet(ctx, a, x.kind, x.version, []byte("me"))
			cancel()
			switch {
			case x.want == "" && (err != nil || string(answer) != "to me"),
				x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)):
				t.Errorf("%c %d: %q, %v", x.kind, x.version, answer, err)
			}
			a.Close()
		}
	})
}

// A silent side is not waited for.
func TestSilentGreetingTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		begin := time.Now()
		if g, err := Meet(b, time.Second, nil); g != nil || err == nil {
			t.Errorf("%+v, %v", g, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := Greet(ctx, a, 'a', 1, nil); err == nil {
			t.Error("it is answered")
		}
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("it takes %v", took)
		}
	})
}
