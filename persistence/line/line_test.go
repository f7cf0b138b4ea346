package line

import (
	"bytes"
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

var usual = Options{Longest: 1 << 22, Takes: 1 << 22, Waiting: 1 << 20, Beat: time.Second,
	Silence: 3 * time.Second}

// pair returns one end of a line, and the messages that its other end receives.
func pair(t *testing.T, o Options) (l *Line, got chan string, ended chan error) {
	a, b := net.Pipe()
	l, other := New(a, o), New(b, o)
	got, ended = make(chan string, 10_000), make(chan error, 2)
	go func() { ended <- l.Run(func([]byte) error { return nil }) }()
	go func() {
		ended <- other.Run(func(m []byte) error {
			got <- string(m)
			return nil
		})
	}()
	return l, got, ended
}

func text(s string) func([]byte) []byte {
	return func(b []byte) []byte { return append(b, s...) }
}

func TestMessagesArriveWholeAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, got, ended := pair(t, usual)
		long := strings.Repeat("x", keptBytes+1)
		for i := range 1000 {
			if err := l.Send(text(fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
		for l.Send(text(long)) == errFull {
			synctest.Wait()
		}
		if err := l.Send(text("last")); err != nil && err != errFull {
			t.Fatal(err)
		}
		l.Close()
		if err := l.Send(text("too late")); err != errClosed {
			t.Errorf("sent after the end: %v", err)
		}
		for range 2 {
			<-ended
		}
		close(got)
		i := 0
		for m := range got {
			switch {
			case i < 1000 && m == fmt.Sprint(i), i == 1000 && m == long, i == 1001 && m == "last":
			default:
				t.Fatalf("message %d has %d bytes: %.20q", i, len(m), m)
			}
			i++
		}
		if i < 1001 {
			t.Errorf("%d messages came", i)
		}
	})
}

func TestQuietLineStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, got, ended := pair(t, usual)
		<-time.After(time.Hour) // of the bubble
		if err := l.Send(text("still here")); err != nil {
			t.Fatal(err)
		}
		if m := <-got; m != "still here" {
			t.Errorf("%q came", m)
		}
		l.Close()
		<-ended
		<-ended
	})
}

func TestSilentPeerEndsLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer b.Close()
		go io.Copy(io.Discard, b) //nolint:errcheck // it reads all, and sends nothing
		l, begin := New(a, usual), time.Now()
		if err := l.Run(func([]byte) error { return nil }); err == nil {
			t.Error("a line ended for no reason")
		}
		if took := time.Since(begin); took != usual.Silence {
			t.Errorf("it ended after %v", took)
		}
	})
}

func TestUnfinishedMessageEndsLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		go io.Copy(io.Discard, b) //nolint:errcheck // the line's messages do not matter
		over := make(chan struct{})
		go func() {
			defer close(over)
			defer b.Close()
			b.Write([]byte{0, 0, 255, 255}) //nolint:errcheck // it may be gone
			for range 100 {
				if _, err := b.Write([]byte{1}); err != nil {
					return
				}
				<-time.After(usual.Silence / 4) // of the bubble
			}
		}()
		begin := time.Now()
		if err := New(a, usual).Run(func([]byte) error { return nil }); err == nil {
			t.Error("a line ended for no reason")
		}
		if took := time.Since(begin); took != 2*usual.Silence {
			t.Errorf("it ended after %v", took)
		}
		<-over
	})
}

func TestPeerThatReadsNothingEndsLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer b.Close()
		o := usual
		o.Waiting = 100
		l := New(a, o)
		full := error(nil)
		for i := 0; full == nil && i < 1000; i++ {
			full = l.Send(text("to be read by nobody"))
		}
		if full != errFull {
			t.Errorf("all of it waits: %v", full)
		}
		ended := make(chan error, 1)
		go func() { ended <- l.Run(func([]byte) error { return nil }) }()
		beat := make([]byte, headBytes)
		for {
			select {
			case <-ended:
			case <-time.After(usual.Beat):
				b.SetWriteDeadline(time.Now().Add(time.Second)) //nolint:errcheck // a pipe's
				b.Write(beat)                                   //nolint:errcheck // it may be gone
				continue
			}
			break
		}
		if err := l.Send(text("too late")); err != errClosed {
			t.Errorf("sent after the end: %v", err)
		}
	})
}

func TestMalformedMessageEndsLine(t *testing.T) {
	for name, bytes := range map[string][]byte{
		"a message that is too long": binary.BigEndian.AppendUint32(nil, uint32(usual.Longest)+1),
		"a message of 4 GB":          {255, 255, 255, 255},
		"half a head":                {0, 0},
		"half a message":             {0, 0, 0, 9, 'h', 'a', 'l', 'f'},
		"half a long message":        append([]byte{0, 32, 0, 0}, bytes.Repeat([]byte{1}, 100)...),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := net.Pipe()
				go func() {
					b.Write(bytes) //nolint:errcheck // the other end may be gone
					b.Close()
				}()
				err := New(a, usual).Run(func(m []byte) error {
					t.Errorf("a message came: %q", m)
					return nil
				})
				if err == nil {
					t.Error("the line ended for no reason")
				}
			})
		})
	}
}

func TestReceiverErrorEndsLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		refused := errors.New("nonsense")
		l := New(a, usual)
		go l.Run(func([]byte) error { return nil }) //nolint:errcheck // its other end says why
		if err := l.Send(text("nonsense")); err != nil {
			t.Fatal(err)
		}
		if err := New(b, usual).Run(func([]byte) error { return refused }); err != refused {
			t.Errorf("the line ended with %v", err)
		}
		synctest.Wait()
		if err := l.Send(text("more")); err != errClosed {
			t.Errorf("sent after the end: %v", err)
		}
	})
}

func TestEmptyOrTooLongMessageIsNotSent(t *testing.T) {
	a, _ := net.Pipe()
	o := usual
	o.Longest = 3
	l := New(a, o)
	for _, m := range []string{"", "long"} {
		if err := l.Send(text(m)); err == nil || len(l.forming) > 0 {
			t.Errorf("%q is sent: %v", m, err)
		}
	}
}
