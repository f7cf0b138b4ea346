package exchangetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
)

// A Listener is a program that receives events until its standard input ends.
type Listener struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
	log   bytes.Buffer
}

// Listen starts such a program.
func Listen(t testing.TB, command ...string) *Listener {
	t.Helper()
	l := &Listener{t: t, cmd: exec.Command(command[0], command[1:]...)}
	in, err1 := l.cmd.StdinPipe()
	out, err2 := l.cmd.StdoutPipe()
	l.cmd.Stderr = &l.log
	succeeds(t, err1, err2, l.cmd.Start())
	l.in, l.lines = in, bufio.NewScanner(out)
	l.lines.Buffer(nil, 1<<20) // differences are shown with whole books
	t.Cleanup(func() {
		if err := l.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
	})
	return l
}

// Says waits for a line.
func (l *Listener) Says(line string) {
	l.t.Helper()
	if !l.lines.Scan() || l.lines.Text() != line {
		l.t.Fatalf("%q, not %q: %s", l.lines.Text(), line, l.log.String())
	}
}

// Looks has the subscribers of prove/clients/stream.mjs compare their books with REST while
// the market rests.
func (l *Listener) Looks() {
	l.t.Helper()
	if _, err := io.WriteString(l.in, "look\n"); err != nil {
		l.t.Fatalf("%v: %s", err, l.log.String())
	}
	l.Says("looked")
}

// Ends has the program end, and returns the line that it prints at its end.
func (l *Listener) Ends() []byte {
	l.t.Helper()
	l.in.Close()
	ok := l.lines.Scan()
	line := bytes.Clone(l.lines.Bytes())
	if err := l.cmd.Wait(); err != nil || !ok {
		l.t.Fatalf("%v: %s%s", err, line, l.log.String())
	}
	return line
}

// SawEnough ends the subscribers of prove/clients/stream.mjs, which must have compared at least
// compared books with REST, and have connected at least connects times.
func (l *Listener) SawEnough(compared, connects int) {
	l.t.Helper()
	var r struct {
		Compared, Tops, Bests, Depths, Checksums, Trades, Fulls, Candles, Statuses, Connects int
	}
	if line := l.Ends(); json.Unmarshal(line, &r) != nil {
		l.t.Fatalf("%s", line)
	}
	if r.Compared < compared || min(r.Tops, r.Bests, r.Depths, r.Checksums, r.Trades, r.Fulls,
		r.Candles) == 0 || min(r.Connects, r.Statuses) < connects {
		l.t.Errorf("too little was seen: %+v", r)
	}
	l.t.Logf("%+v", r)
}

// ReceivedTrades ends the subscribers of prove/clients/polling.py, each of which must have kept its
// connection, by its own transport, and have received trades.
func (l *Listener) ReceivedTrades() {
	l.t.Helper()
	var received map[string][3]any
	if line := l.Ends(); json.Unmarshal(line, &received) != nil || len(received) != 2 {
		l.t.Fatalf("%s", line)
	}
	for kind, transport := range map[string]string{"polling": "polling", "upgraded": "websocket"} {
		if x := received[kind]; x[0] != 1.0 || x[1].(float64) < 5 || x[2] != transport {
			l.t.Errorf("%s: connected %v times, received %v trades by %v", kind, x[0], x[1], x[2])
		}
	}
}
