package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"exchange/core/wire"
	"exchange/persistence/line"
)

const (
	// copyRate is how many bytes of a copy are sent in a second: much less than disks and networks
	// allow, so that a serving node is not slowed down.
	copyRate = 32 << 20
	copyPage = copyRate / 64
	// copyWindow is how many bytes of a copy are in flight at a time.
	copyWindow = 8 * copyPage
	// copySilence is the longest time until the peer reads more of a copy: it pauses while it
	// checks the received part.
	copySilence = time.Minute
	// copyWithin is the longest time until a copy begins: the source may read a whole state before
	// the first byte.
	copyWithin = time.Hour
	// maxCopy bounds a copy, in bytes.
	maxCopy = 1 << 40
)

// A Want is a peer's request for a copy.
type Want struct {
	Nonce string // of the peer's start
	Least uint64 // sequence below which a copy is useless to the peer
}

// askCopy requests a copy, with a Want.
const askCopy = 1

var errBusy = errors.New("it is giving a copy to another node: try again later")

func (l *Link) session(conn net.Conn, answer func(q *line.Question) ([]byte, error)) *line.Session {
	return line.NewSession(conn, line.Options{Longest: 2 * copyPage, Takes: 2 * copyPage,
		Waiting: 2 * copyWindow, Beat: writeWithin / 4, Silence: writeWithin},
		line.Questions{Open: 1, Patience: copySilence, Answer: answer})
}

// serveCopy answers a peer that requests a copy.
func (l *Link) serveCopy(from string, conn net.Conn) {
	defer conn.Close()
	err := l.session(conn, func(q *line.Question) ([]byte, error) {
		err := l.copy(from, q)
		if err != nil {
			l.refused.Warn(l.o.Logger, "a copy for another node has ended early", from, err, "node",
				from)
		}
		return nil, err
	}).Run()
	l.o.Logger.Debug("a connection for a copy has ended", "node", from, "error", err)
}

func (l *Link) copy(from string, q *line.Question) error {
	var want Want
	p := wire.Read(q.Body)
	if p.Value(&want); !p.End() || q.Kind != askCopy {
		return line.ErrMalformed
	}
	select {
	case l.copySlot <- struct{}{}:
		defer func() { <-l.copySlot }()
	default:
		return errBusy
	}
	if l.o.Copy == nil {
		return errors.New("this node has no copy to give")
	}
	return l.o.Copy(q.Ctx, from, want, pacedWriter{q})
}

// A pacedWriter sends at copyRate, to a peer that keeps reading.
type pacedWriter struct{ to *line.Question }

func (w pacedWriter) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		piece := b[:min(len(b), copyPage)]
		begin := time.Now()
		if err := w.to.Send(piece); err != nil {
			return n, err
		}
		n += len(piece)
		rest := time.Second*time.Duration(len(piece))/copyRate - time.Since(begin)
		if !pause(w.to.Ctx, max(rest, 0)) {
			return n, w.to.Ctx.Err()
		}
		b = b[len(piece):]
	}
	return n, nil
}

// Fetch requests a copy from a peer, on its own connection, and waits until it begins. An error has
// the peer's reason for a refusal. The reader returns an error if the copy is incomplete. ctx ends
// it.
func (l *Link) Fetch(ctx context.Context, from string, want Want) (io.ReadCloser, error) {
	conn, err := l.call(ctx, from, kindCopy)
	if err != nil {
		return nil, err
	}
	f := &fetched{ctx: ctx, session: l.session(conn, nil), ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		f.session.Run() //nolint:errcheck // the answer has its own error
		conn.Close()
	}()
	begins, cancel := context.WithTimeout(ctx, copyWithin)
	defer cancel()
	f.answer, err = f.session.Ask(askCopy, copyWindow, wire.AppendValue(nil, &want))
	if err == nil {
		f.page, err = f.answer.Next(begins)
	}
	if err != nil && !errors.Is(err, io.EOF) { // of a copy without a byte
		f.Close() //nolint:errcheck // the other error counts
		return nil, fmt.Errorf("there is no copy: %w", err)
	}
	return f, nil
}

// fetched is a copy being received.
type fetched struct {
	ctx     context.Context
	session *line.Session
	answer  *line.Answer
	page    []byte // not read yet
	read    int64
	ended   chan struct{} // closed when the connection has ended
}

func (f *fetched) Read(b []byte) (n int, err error) {
	if len(f.page) == 0 {
		if f.page, err = f.answer.Next(f.ctx); err != nil {
			return 0, err
		}
	}
	n = copy(b, f.page)
	f.page = f.page[n:]
	if f.read += int64(n); f.read > maxCopy {
		return n, fmt.Errorf("a copy of more than %d bytes", int64(maxCopy))
	}
	return n, nil
}

// Close ends the connection.
func (f *fetched) Close() error {
	f.session.Close(net.ErrClosed)
	<-f.ended
	return nil
}
