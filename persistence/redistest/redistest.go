package redistest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	startWithin = 20 * time.Second
	pollEvery   = 5 * time.Millisecond
	startTries  = 5 // another process may take the free port first
)

// Durable are the settings of an exchange's Redis that docs/storage.md explains, but for those of
// its memory, and those that are Redis's defaults.
var Durable = []string{
	"appendonly", "yes",
	"appendfsync", "always",
	"no-appendfsync-on-rewrite", "no",
	"auto-aof-rewrite-percentage", "300",
	"auto-aof-rewrite-min-size", "1gb",
	"rdbcompression", "no",
	"maxmemory-policy", "noeviction",
	"save", "",
}

// prompt are settings of replication for tests: a replica is served at once, and needs no file of
// its own.
var prompt = []string{"repl-diskless-sync-delay", "0", "repl-diskless-load", "swapdb"}

// The client library would print each failed dial to a server that is not up yet.
func init() { redis.SetLogger(silent{}) }

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// A Server is one redis-server. Its methods are for the test's goroutine.
type Server struct {
	t      testing.TB
	binary string
	dir    string
	port   int
	args   []string
	cmd    *exec.Cmd
	ended  chan struct{} // closed when cmd and the processes that it forked have ended
}

// Start runs a server until the test ends. settings are names and values that come after Durable,
// and so win. It fails the test when there is no redis-server: a skipped test proves nothing.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatalf(
			"redis-server is not installed, and this test needs it: `apt-get install " +
				"redis-server` on Debian and Ubuntu, `brew install redis` on macOS")
	}
	t.Attr("redis-server", Version(t))
	if len(settings)%2 != 0 {
		t.Fatal("BUG: settings are pairs of name and value")
	}
	s := &Server{t: t, binary: binary, dir: t.TempDir()}
	all := slices.Concat(Durable, prompt, settings)
	for i := 0; i < len(all); i += 2 {
		s.args = append(s.args, "--"+all[i], all[i+1])
	}
	t.Cleanup(s.Stop)
	for try := 1; ; try++ {
		s.port = FreePort(t)
		err := s.run()
		if err == nil {
			return s
		}
		if try == startTries {
			t.Fatal(err)
		}
	}
}

var versionWord = regexp.MustCompile(` v=(\S+) `)

var version = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("redis-server", "--version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("redis-server --version: %w: %s", err, out)
	}
	found := versionWord.FindSubmatch(out)
	if found == nil {
		return "", fmt.Errorf("redis-server --version says %q", out)
	}
	return string(found[1]), nil
})

// Version returns the version of the redis-server under the tests. A Redis's answers about its
// append-only file depend on its version, so the reports of the tests and of the campaign name it.
func Version(t testing.TB) string {
	t.Helper()
	v, err := version()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// URL returns where the server listens, in the store's form.
func (s *Server) URL() string { return fmt.Sprintf("redis://127.0.0.1:%d/0", s.port) }

// Addr returns the server's host and port.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// Dir returns the folder of its data.
func (s *Server) Dir() string { return s.dir }

// Client returns a plain client of the server, closed when the test ends.
func (s *Server) Client() *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr: s.Addr(), Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	s.t.Cleanup(func() { c.Close() })
	return c
}

// Kill ends the server at once, as kill -9 does, with a process that rewrites its log, and waits
// until both have ended.
func (s *Server) Kill() {
	s.t.Helper()
	if s.cmd == nil {
		s.t.Fatal("BUG: the server does not run")
	}
	s.Stop()
}

// Pid returns the number of the running process.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Signal sends the server a signal.
func (s *Server) Signal(signal os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}

// Ended returns closed when the server has ended, also by itself.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// Restart runs a killed server again, on the same port and data, and waits until it answers.
func (s *Server) Restart() {
	s.t.Helper()
	if s.cmd != nil {
		s.t.Fatal("BUG: the server runs already")
	}
	if err := s.run(); err != nil {
		s.t.Fatal(err)
	}
}

// TryRestart returns Restart for a server that may refuse its data.
func (s *Server) TryRestart() error {
	s.t.Helper()
	if s.cmd != nil {
		s.t.Fatal("BUG: the server runs already")
	}
	return s.run()
}

// Stop ends the server; it may be called again.
func (s *Server) Stop() {
	if s.cmd != nil {
		kill(s.cmd.Process)
		<-s.ended
		s.cmd = nil
	}
}

// run starts the process and waits until it answers PING with its data loaded.
func (s *Server) run() error {
	logPath := filepath.Join(s.dir, "server.log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	args := append([]string{"--port", fmt.Sprint(s.port), "--bind", "127.0.0.1", "--dir", s.dir,
		"--daemonize", "no"}, s.args...)
	cmd := exec.Command(s.binary, args...)
	// Not the file itself but a pipe to it: so Wait waits for all processes that hold the pipe. A
	// server forks itself to rewrite its log; such a child may outlive it and write into a folder
	// about to be removed.
	output := struct{ io.Writer }{log}
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = ownGroup()
	if err := cmd.Start(); err != nil {
		log.Close()
		return err
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		log.Close()
		close(ended)
	}()
	s.cmd, s.ended = cmd, ended

	// With a password in the settings the answer is NOAUTH: the server has loaded then, too.
	c := redis.NewClient(&redis.Options{
		Addr: s.Addr(), Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1,
		DialTimeout:              time.Second,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	defer c.Close()
	deadline := time.NewTimer(startWithin)
	defer deadline.Stop()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		err := c.Ping(context.Background()).Err()
		if err == nil || redis.HasErrorPrefix(err, "NOAUTH") {
			return nil
		}
		select {
		case <-ended:
			s.cmd = nil
			return fmt.Errorf("redis-server ended at start: %s", tail(logPath))
		case <-deadline.C:
			s.Stop()
			return errors.Join(fmt.Errorf("redis-server did not answer within %v: %s", startWithin,
				tail(logPath)), err)
		case <-poll.C:
		}
	}
}

// tail returns the end of the server's log.
func tail(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(len(lines)-5, 0):], "\n")
}

// given are the ports that this process has used.
var given sync.Map

// FreePort returns a port of 127.0.0.1 without a listener, never the same twice. The port is below
// those that the system assigns for "any port" (on Linux 32768 and above). Otherwise a foreign
// connection could take it while its server is being started again.
func FreePort(t testing.TB) int {
	t.Helper()
	l := listen(t)
	l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// listen listens at a port as FreePort returns it.
func listen(t testing.TB) net.Listener {
	t.Helper()
	for range 1000 {
		port := 10_000 + rand.IntN(22_000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		if _, had := given.LoadOrStore(port, true); !had {
			return l
		}
		l.Close()
	}
	t.Fatal("no free port was found")
	return nil
}
