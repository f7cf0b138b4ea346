package serve

import (
	"io"
	"sync/atomic"
	"time"
)

// The log never stops or ends the exchange. A blocked reader costs lines, and no order.

const (
	logRoom     = 4096                   // maximum of lines queued for the reader
	logPatience = 100 * time.Millisecond // the longest wait for a line to be written
)

// A lineWriter passes lines on to a writer that may block or fail. It waits until a line is
// written, so that the last line of a process is written. After too long a wait, it waits for no
// further line until all are written. Any goroutine may write, a line or more with each Write.
type lineWriter struct {
	lines   chan waitingLine
	stalled atomic.Bool
	lost    atomic.Uint64
}

type waitingLine struct {
	text    []byte
	written chan struct{}
}

func newLineWriter(out io.Writer) *lineWriter {
	w := &lineWriter{lines: make(chan waitingLine, logRoom)}
	go w.run(out)
	return w
}

// run passes the lines on, until the process ends.
func (w *lineWriter) run(out io.Writer) {
	for line := range w.lines {
		if _, err := out.Write(line.text); err != nil {
			w.lost.Add(1)
		}
		close(line.written)
		if len(w.lines) == 0 {
			w.stalled.Store(false)
		}
	}
}

// Write implements io.Writer. It returns no error: lines without room, and failed lines, are
// counted.
func (w *lineWriter) Write(text []byte) (int, error) {
	line := waitingLine{append([]byte(nil), text...), make(chan struct{})}
	select {
	case w.lines <- line:
	default:
		w.lost.Add(1)
		return len(text), nil
	}
	if w.stalled.Load() {
		return len(text), nil
	}
	select {
	case <-line.written:
	case <-time.After(logPatience):
		w.stalled.Store(true)
	}
	return len(text), nil
}

// Lost returns the number of lost lines. Any goroutine may call it.
func (w *lineWriter) Lost() uint64 { return w.lost.Load() }
