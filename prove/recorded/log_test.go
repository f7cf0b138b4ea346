//go:build prove

package recorded

import (
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"exchange/persistence/redistest"
	"exchange/prove/exchangetest"
)

// allLinesAreObjects checks that each line of a JSON log has the members that a log collector
// needs, and returns the messages.
func allLinesAreObjects(t *testing.T, log string) (messages string) {
	t.Helper()
	for line := range strings.Lines(log) {
		var x struct {
			Time       time.Time
			Level, Msg string
		}
		if err := json.Unmarshal([]byte(line), &x); err != nil || x.Time.IsZero() ||
			x.Level == "" || x.Msg == "" || !strings.HasSuffix(line, "\n") {
			t.Errorf("%v: %q", err, line)
		}
		messages += x.Level + " " + x.Msg + "\n"
	}
	return messages
}

// With log.format json each line of a running program has time, level and msg: also lines of
// libraries, about wrong clients and stores, and the last line, which says why the process ended.
func TestEveryLineOfALogInJSONHasTimeLevelAndMessage(t *testing.T) {
	server := redistest.Start(t)
	for _, store := range []string{"pebble:" + t.TempDir(), server.URL()} {
		s := exchangetest.New(t, store)
		s.Env = append(s.Env, "EXCHANGE_LOG_FORMAT=json", "EXCHANGE_LOG_LEVEL=debug")
		s.Start()
		speaksNonsense(t, s.Listen)
		if err := s.Audit(); err != nil {
			t.Error(err)
		}
		if code := s.Terminate(); code != 0 {
			t.Errorf("it ends with %d", code)
		}
		said := allLinesAreObjects(t, s.Log())
		for _, want := range []string{"INFO exchange starts\n", "INFO ready\n", "INFO stopped\n"} {
			if !strings.Contains(said, want) {
				t.Errorf("%q is not in the log:\n%s", want, said)
			}
		}
	}
	s := exchangetest.New(t, server.URL())
	s.Env = append(s.Env, "EXCHANGE_LOG_FORMAT=json", "EXCHANGE_TIMING_STALL_MS=200",
		"EXCHANGE_TIMING_STALL_MAX_MS=5000")
	s.Args = append(s.Args, "--take-over")
	s.Start()
	server.Kill()
	if _, err := s.Call("POST", "/operator/v1/accounts", map[string]string{"name": "bob"},
		nil); err == nil {
		t.Error("an account was made without a store")
	}
	if <-s.Exited(); s.ExitCode() != 75 {
		t.Errorf("without its store it ends with %d", s.ExitCode())
	}
	said := strings.Split(strings.TrimSpace(allLinesAreObjects(t, s.Log())), "\n")
	if last := said[len(said)-1]; !strings.HasPrefix(last, "ERROR ") {
		t.Errorf("the last line is %q", last)
	}
}

// speaksNonsense sends a malformed request.
func speaksNonsense(t *testing.T, address string) {
	t.Helper()
	for _, text := range []string{"\x16\x03\x01\x00\x00", "GET\r\n\r\n", "POST / HTTP/9\r\n\r\n"} {
		c, err := net.Dial("tcp", address)
		succeeds(t, err)
		if _, err := c.Write([]byte(text)); err != nil {
			t.Error(err)
		}
		c.Close()
	}
}
