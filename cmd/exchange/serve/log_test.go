package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// A blocked reader of the log costs one wait, and then lines. When it reads again, it gets the
// queued ones, in order, and each new one at once.
func TestAReaderOfTheLogThatStandsStillCostsLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, to := io.Pipe()
		w, begun := newLineWriter(to), time.Now()
		defer close(w.lines)
		const more = 10
		for i := range logRoom + 1 + more { // one is being written
			fmt.Fprintf(w, "line %d\n", i)
		}
		if waited := time.Since(begun); waited != logPatience || w.Lost() != more {
			t.Errorf("it waited %v, and lost %d lines", waited, w.Lost())
		}
		var text bytes.Buffer
		done := make(chan struct{})
		go func() {
			io.Copy(&text, r) //nolint:errcheck // the pipe's end
			close(done)
		}()
		synctest.Wait()
		fmt.Fprintln(w, "the last one")
		to.Close()
		<-done
		var want bytes.Buffer
		for i := range logRoom + 1 {
			fmt.Fprintf(&want, "line %d\n", i)
		}
		if want.WriteString("the last one\n"); text.String() != want.String() {
			t.Errorf("%d bytes were read, want %d", text.Len(), want.Len())
		}
	})
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestALogThatCannotBeWrittenIsCounted(t *testing.T) {
	w := newLineWriter(failingWriter{})
	defer close(w.lines)
	for range 3 {
		if n, err := fmt.Fprintln(w, "x"); n != 2 || err != nil {
			t.Error(n, err)
		}
	}
	if w.Lost() != 3 {
		t.Errorf("%d lines were lost", w.Lost())
	}
}
