//go:build prove

package redis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"exchange/persistence"
)

// A scripted server is a Redis with a test's answers.
type scripted struct {
	net.Listener
	is      atomic.Pointer[answers]
	loading atomic.Int64 // number of first commands answered with LOADING
}

// answers are those of a scripted server that differ from the usual ones, in wire form, by query.
// "": no answer.
type answers struct {
	persistence   string // lines of INFO
	beat, waitaof string
}

const (
	quietFile     = "aof_rewrite_in_progress:0\r\n" + soundFile
	rewritingFile = "aof_rewrite_in_progress:1\r\n" + soundFile
	soundFile     = "aof_enabled:1\r\naof_rewrite_scheduled:0\r\n" +
		"aof_last_bgrewrite_status:ok\r\naof_last_write_status:ok\r\n"
	written = "*2\r\n:1\r\n$0\r\n\r\n"
)

func newScripted(t *testing.T) *scripted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	succeeds(t, err)
	t.Cleanup(func() { l.Close() })
	s := &scripted{Listener: l}
	s.is.Store(&answers{persistence: quietFile, beat: written, waitaof: "*2\r\n:1\r\n:0\r\n"})
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

func (s *scripted) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	number := func(kind byte) (n int, err error) {
		line, err := in.ReadString('\n')
		if err != nil || line == "" || line[0] != kind {
			return 0, errors.Join(err, io.ErrUnexpectedEOF)
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	for {
		n, err := number('*')
		if err != nil {
			return
		}
		words := make([]string, n)
		for i := range words {
			size, err := number('$')
			if err != nil {
				return
			}
			b := make([]byte, size+2)
			if _, err := io.ReadFull(in, b); err != nil {
				return
			}
			words[i] = string(b[:size])
		}
		answer := s.answer(words)
		if answer == "" {
			continue
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

func (s *scripted) answer(words []string) string {
	if s.loading.Add(-1) >= 0 {
		return "-LOADING Redis is loading the dataset in memory\r\n"
	}
	is := s.is.Load()
	switch strings.ToUpper(words[0]) {
	case "PING":
		return "+PONG\r\n"
	case "INFO":
		return bulk(map[string]string{"server": "redis_version:7.4.1\r\nrun_id:a\r\n",
			"replication":  "role:master\r\nmaster_replid:b\r\n",
			"commandstats": "cmdstat_config|set:calls=1,usec=1\r\n",
			"stats":        "total_commands_processed:9\r\n",
			"persistence":  is.persistence}[words[1]])
	case "CONFIG":
		for _, want := range settings {
			if want.name == words[2] {
				return "*2\r\n" + bulk(want.name) + bulk(want.value)
			}
		}
	case "HMGET":
		return fmt.Sprintf("*%d\r\n", len(words)-2) + strings.Repeat("$-1\r\n", len(words)-2)
	case "EVALSHA":
		if words[1] == acquireScript.Hash() {
			return "*4\r\n:1\r\n" + bulk("1:token") + bulk("0") + bulk("")
		}
		return written // an append, or a beat without a proof
	case "EVAL":
		return is.beat
	case "WAITAOF":
		return is.waitaof
	}
	return "-ERR unknown command\r\n"
}

// WAITAOF's answer counts only after a write of the owner's, and only for an enabled file. Where it
// proves nothing, INFO decides.
func TestWaitaofProvesFile(t *testing.T) {
	fenced, refusedBeat := "*2\r\n:-1\r\n"+bulk("another"),
		"-READONLY You can't write against a read only replica.\r\n"
	yes, no := "*2\r\n:1\r\n:0\r\n", "*2\r\n:0\r\n:0\r\n"
	off := strings.Replace(quietFile, "aof_enabled:1", "aof_enabled:0", 1)
	failing := strings.Replace(quietFile, "aof_last_write_status:ok", "aof_last_write_status:err",
		1)
	for name, x := range map[string]struct {
		is   answers
		want error  // nil: appends continue
		why  string // text of the error
	}{
		"proven, during a rewrite": {is: answers{rewritingFile, written, yes}},
		"proven, in peace":         {is: answers{quietFile, written, yes}},
		"not proven, during a rewrite": {answers{rewritingFile, written, no},
			persistence.ErrNotInEffect, "WAITAOF"},
		"not proven, in peace": {answers{quietFile, written, no},
			persistence.ErrNotInEffect, "WAITAOF"},
		"proven by replicas alone": {
			answers{rewritingFile, written, "*2\r\n:0\r\n:7\r\n"}, persistence.ErrNotInEffect,
			"WAITAOF"},
		"proven, of a file that is off": {answers{off, written, yes},
			persistence.ErrNotInEffect, "switched off"},
		"proven, of a file that fails": {answers{failing, written, yes},
			persistence.ErrNotInEffect, "last write"},
		"an error, during a rewrite": {
			answers{rewritingFile, written, "-ERR unknown command 'WAITAOF'\r\n"},
			persistence.ErrNotInEffect, "a rewrite of it"},
		"an error, in peace": {
			is: answers{quietFile, written, "-ERR unknown command 'WAITAOF'\r\n"}},
		"nil, during a rewrite": {answers{rewritingFile, written, "*-1\r\n"},
			persistence.ErrNotInEffect, "a rewrite of it"},
		"another shape, during a rewrite": {answers{rewritingFile, written, ":1\r\n"},
			persistence.ErrNotInEffect, "a rewrite of it"},
		"three numbers, during a rewrite": {
			answers{rewritingFile, written, "*3\r\n:1\r\n:1\r\n:1\r\n"}, persistence.ErrNotInEffect,
			"a rewrite of it"},
		"texts, during a rewrite": {
			answers{rewritingFile, written, "*2\r\n$1\r\nx\r\n$1\r\ny\r\n"},
			persistence.ErrNotInEffect, "a rewrite of it"},
		"no answer": {answers{quietFile, written, ""},
			os.ErrDeadlineExceeded, ""},
		"the beat is refused, during one": {answers{rewritingFile, refusedBeat, yes},
			persistence.ErrNotInEffect, "a rewrite of it"},
		"the beat is refused, in peace": {answers{quietFile, refusedBeat, yes}, nil,
			"READONLY"},
		"the owner is fenced": {answers{quietFile, fenced, yes},
			persistence.ErrFenced, "another"},
		"the beat has no answer of a script's": {answers{rewritingFile, ":1\r\n", yes},
			persistence.ErrNotInEffect, "a rewrite of it"},
	} {
		t.Run(name, func(t *testing.T) {
			server := newScripted(t)
			s, tok, _ := mustOpen(t, "redis://"+server.Addr().String(),
				Options{recheck: time.Nanosecond})
			s.proven.Store(&baseline{}) // or an ordinary rewrite is recognised
			server.is.Store(&x.is)
			within := time.Minute
			if x.is.waitaof == "" {
				within = 2 * time.Second // all but that is answered in time
			}
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			err := s.Check(ctx, tok)
			if x.want == nil && x.why == "" && err != nil {
				t.Fatal(err)
			}
			if x.want != nil && !errors.Is(err, x.want) {
				t.Fatalf("error is %v, want %v", err, x.want)
			}
			if s.Rewriting() != (x.is.persistence == rewritingFile) {
				t.Errorf("rewriting: %t", s.Rewriting())
			}
			// the remaining answer is the owner's
			confirmed := errors.Is(err, persistence.ErrConfirmed)
			if confirmed != (x.want == persistence.ErrNotInEffect && x.is.beat == written) {
				t.Errorf("the owner is confirmed: %v, by %v", confirmed, err)
			}
			if x.why != "" && (err == nil || !strings.Contains(err.Error(), x.why)) {
				t.Fatalf("error is %v, which does not say %q", err, x.why)
			}
		})
	}
}

// A process that does not own the engine writes nothing: neither a start nor a standby's probe.
func TestStartWritesNothingIntoForeignStore(t *testing.T) {
	server := newScripted(t)
	is := *server.is.Load()
	is.beat = "-ERR no beat is to be left\r\n"
	server.is.Store(&is)
	s := mustOpenAlone(t, "redis://"+server.Addr().String(), Options{})
	succeeds(t, s.checkDurability(t.Context(), s.journal))
	if s.beatCount.Load() != 0 {
		t.Error("it has left a beat")
	}
}
