package redistest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"
)

const (
	ballastKeys  = 100
	ballastBytes = 1 << 20 // of all of them, at least
	// keyDelay is the pause after each key of a process that rewrites the file, in microseconds.
	// With ballastKeys such a rewrite outlives every test.
	keyDelay = 10_000_000
)

// ballast makes the data large enough for a rewrite to take its time, or to be too large.
func (s *Server) ballast(c *redis.Client) {
	s.t.Helper()
	value := make([]byte, 2*ballastBytes/ballastKeys)
	random := rand.NewChaCha8([32]byte{}) // the file is compressed
	for i := range ballastKeys {
		random.Read(value) //nolint:errcheck // it never fails
		s.must(c.Set(s.t.Context(), fmt.Sprint("ballast:", i), value, 0).Err())
	}
}

func (s *Server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// HoldRewrites makes each rewrite of the append-only file that begins from now on last until
// EndRewrites.
func (s *Server) HoldRewrites() {
	s.t.Helper()
	c := s.Client()
	s.ballast(c)
	s.delayKeys(c, keyDelay)
}

func (s *Server) delayKeys(c *redis.Client, micros int) {
	s.t.Helper()
	s.must(c.ConfigSet(s.t.Context(), "rdb-key-save-delay", strconv.Itoa(micros)).Err())
}

// FailRewrites makes each rewrite of the append-only file that begins from now on fail, until
// EndRewrites. A rewrite then writes more than a file may have; Redis's own appends do not.
func (s *Server) FailRewrites() {
	s.t.Helper()
	s.ballast(s.Client())
	s.EndRewrites() // the next appends go into a small file
	s.limitFiles(ballastBytes)
}

func (s *Server) limitFiles(most uint64) {
	s.t.Helper()
	s.must(unix.Prlimit(s.Pid(), unix.RLIMIT_FSIZE,
		&unix.Rlimit{Cur: most, Max: unix.RLIM_INFINITY}, nil))
}

// EndRewrites lets rewrites run as usual, and waits until the last one has ended.
func (s *Server) EndRewrites() {
	s.t.Helper()
	c := s.Client()
	s.limitFiles(unix.RLIM_INFINITY)
	s.delayKeys(c, 0)
	s.killChildren()
	c.BgRewriteAOF(s.t.Context()) // which fails if one is already scheduled
	s.eventually("a rewrite has ended", func() bool {
		info := s.persistence(c)
		running := info["aof_rewrite_in_progress"] == "1" || info["aof_rewrite_scheduled"] == "1"
		if !running && info["aof_last_bgrewrite_status"] != "ok" {
			c.BgRewriteAOF(s.t.Context()) // an ordinary one is not tried again by itself
		}
		return !running && info["aof_last_bgrewrite_status"] == "ok"
	})
}

// AwaitRewrite waits until a rewrite runs.
func (s *Server) AwaitRewrite() {
	s.t.Helper()
	c := s.Client()
	s.eventually("a rewrite runs",
		func() bool { return s.persistence(c)["aof_rewrite_in_progress"] == "1" })
}

// AwaitFailedRewrite waits until a rewrite has failed.
func (s *Server) AwaitFailedRewrite() {
	s.t.Helper()
	c := s.Client()
	s.eventually("a rewrite has failed",
		func() bool { return s.persistence(c)["aof_last_bgrewrite_status"] == "err" })
}

// ResyncWholly makes the server take all data from a copy of its own by a full synchronisation, and
// then a master again. Its later writes are in no file before a rewrite has ended.
func (s *Server) ResyncWholly(copied *Server) {
	s.t.Helper()
	copied.CopyOf(s)
	mine := s.Client()
	for range 3 { // their histories diverge, so a partial one is not enough
		s.must(mine.Incr(s.t.Context(), "parted").Err())
	}
	s.CopyOf(copied)
}

// CopyOf makes the server take all data from another one, and then a master of its own again.
func (s *Server) CopyOf(other *Server) {
	s.t.Helper()
	ctx, c := s.t.Context(), s.Client()
	s.must(c.ReplicaOf(ctx, "127.0.0.1", strconv.Itoa(other.port)).Err())
	s.eventually("the replica has all data", func() bool {
		text, err := c.Info(ctx, "replication").Result()
		return err == nil && strings.Contains(text, "master_link_status:up")
	})
	s.must(c.ReplicaOf(ctx, "NO", "ONE").Err())
}

// killChildren ends the processes that the server has forked.
func (s *Server) killChildren() {
	s.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", s.Pid(), s.Pid()))
	s.must(err)
	for _, text := range strings.Fields(string(b)) {
		pid, err := strconv.Atoi(text)
		s.must(err)
		syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
	}
}

func (s *Server) persistence(c *redis.Client) map[string]string {
	s.t.Helper()
	text, err := c.Info(s.t.Context(), "persistence").Result()
	s.must(err)
	info := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		info[name] = value
	}
	return info
}

// rewriteWithin is more than the minute for which Redis begins no rewrite after three have failed.
const rewriteWithin = 90 * time.Second

func (s *Server) eventually(what string, condition func() bool) {
	s.t.Helper()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for deadline := time.Now().Add(rewriteWithin); !condition(); <-poll.C {
		if time.Now().After(deadline) {
			s.t.Fatalf("not within %v: %s; %s", rewriteWithin, what, tail(s.dir+"/server.log"))
		}
	}
}
