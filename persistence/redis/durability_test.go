//go:build prove

package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"exchange/persistence"
	"exchange/persistence/redistest"
)

// set changes a setting of a running Redis.
func set(t *testing.T, c *redis.Client, name, value string) {
	t.Helper()
	succeeds(t, c.ConfigSet(t.Context(), name, value).Err())
}

// refused wants a call to be refused because Redis is not durable enough, with the wrong setting in
// the error.
func refused(t *testing.T, err error, words ...string) {
	t.Helper()
	wantError(t, err, persistence.ErrNotDurable, append(words, "--accept-redis-durability")...)
}

// resumes wants appends and the owner's check to succeed again.
func resumes(t *testing.T, s *Store, tok persistence.Token, seq *uint64) {
	t.Helper()
	retry(t, func() error { return s.Append(t.Context(), tok, *seq, *seq+1, []byte("a batch")) })
	*seq++
	succeeds(t, s.Check(t.Context(), tok))
}

// An administrator changes a setting while the exchange runs.
func TestLaterSettingChangeIsDetected(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client()
	s, tok, seq := mustOpen(t, server.URL(), Options{recheck: time.Nanosecond})
	resumes(t, s, tok, &seq)
	for _, c := range [][3]string{{"appendfsync", "everysec", "always"},
		{"maxmemory-policy", "allkeys-lru", "noeviction"}, {"appendonly", "no", "yes"}} {
		set(t, admin, c[0], c[1])
		want := fmt.Sprintf("%s is %q and must be %q", c[0], c[1], c[2])
		refused(t, s.Check(t.Context(), tok), want)
		refused(t, s.Append(t.Context(), tok, seq, seq+1, []byte("a batch")), want)
		set(t, admin, c[0], c[2])
		resumes(t, s, tok, &seq)
	}
}

// Appends use the result of the owner's check, and do not check each time by themselves.
func TestAppendsStopAfterFailedCheck(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client()
	s, tok, seq := mustOpen(t, server.URL(), Options{})
	set(t, admin, "appendfsync", "everysec")
	appendTo(t, s, tok, seq, seq+1, "no check is due yet ")
	s.due.Store(0)
	refused(t, s.Check(t.Context(), tok), "appendfsync")
	refused(t, s.Append(t.Context(), tok, seq+1, seq+2, []byte("a batch")), "appendfsync")
	set(t, admin, "appendfsync", "always")
	succeeds(t, s.Check(t.Context(), tok))
	if s.due.Load() == 0 {
		t.Fatal("it is checked again at once")
	}
}

// Redis restarts without settings that were only set at run time: nothing is appended on a new
// connection.
func TestRestartedRedisWithOtherSettingsIsRefused(t *testing.T) {
	server := redistest.Start(t, "appendfsync", "everysec")
	admin := server.Client()
	set(t, admin, "appendfsync", "always")
	s, tok, seq := mustOpen(t, server.URL(), Options{})
	resumes(t, s, tok, &seq)
	server.Kill()
	server.Restart()
	var err error
	// the pool may have older connections
	for err == nil || !errors.Is(err, persistence.ErrNotDurable) {
		if err = s.Append(t.Context(), tok, seq, seq+1, []byte("a batch")); err == nil {
			t.Fatal("a Redis that is not durable took an append")
		}
	}
	refused(t, err, `appendfsync is "everysec" and must be "always"`)
	refused(t, s.Check(t.Context(), tok), "appendfsync")
	set(t, admin, "appendfsync", "always")
	resumes(t, s, tok, &seq)
}

// An address moves to a Redis with the same data and other settings, and to one that is a replica.
func TestMovedAddressIsChecked(t *testing.T) {
	server := redistest.Start(t)
	replica := redistest.Start(t, "replicaof", strings.ReplaceAll(server.Addr(), ":", " "))
	careless := redistest.Start(t, "appendfsync", "no", "maxmemory-policy", "volatile-ttl")
	at := newAddress(t, server.Addr())
	s, tok, seq := mustOpen(t, "redis://"+at.String()+"/0", Options{})
	resumes(t, s, tok, &seq)
	f := func(to *redistest.Server, words ...string) {
		t.Helper()
		at.move(to.Addr())
		var err error
		for !errors.Is(err, persistence.ErrNotDurable) {
			if err = s.Append(t.Context(), tok, seq, seq+1, []byte("a batch")); err == nil ||
				errors.Is(err, persistence.ErrFenced) {
				t.Fatal(err)
			}
		}
		refused(t, err, words...)
		at.move(server.Addr())
		resumes(t, s, tok, &seq)
	}
	f(careless, `appendfsync is "no"`, `maxmemory-policy is "volatile-ttl"`)
	f(replica, `its role is "slave" and must be "master"`)
}

// A Redis that was accepted at the start stays accepted.
func TestAcceptedDurabilityIsNotCheckedAgain(t *testing.T) {
	server := redistest.Start(t, "appendfsync", "everysec")
	s, tok, seq := mustOpen(t, server.URL(),
		Options{AcceptDurability: true, recheck: time.Nanosecond})
	set(t, server.Client(), "maxmemory-policy", "allkeys-lru")
	server.Kill()
	server.Restart()
	resumes(t, s, tok, &seq)
}

// If the user may no longer read settings, nothing is proven, as at the start.
func TestUnreadableSettingIsRefused(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client()
	allow := func(right string) {
		t.Helper()
		succeeds(t, admin.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">secret-word", "~*",
			"+@all", right).Err())
	}
	allow("+config")
	s, tok, seq := mustOpen(t, "redis://app:secret-word@"+server.Addr()+"/0",
		Options{recheck: time.Nanosecond})
	resumes(t, s, tok, &seq)
	allow("-config")
	refused(t, s.Check(t.Context(), tok), "CONFIG GET is not allowed")
	refused(t, s.Append(t.Context(), tok, seq, seq+1, []byte("a batch")),
		"CONFIG GET is not allowed")
	allow("+config")
	resumes(t, s, tok, &seq)
}

// An address is one that moves from one server to another.
type address struct {
	net.Listener
	to    atomic.Pointer[string]
	moved atomic.Pointer[context.CancelFunc] // ends the connections to where it was
	life  atomic.Pointer[context.Context]
}

func newAddress(t *testing.T, to string) *address {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	succeeds(t, err)
	a := &address{Listener: l}
	a.move(to)
	t.Cleanup(func() { l.Close(); a.move("") })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go a.relay(conn)
		}
	}()
	return a
}

func (a *address) String() string { return a.Addr().String() }

func (a *address) move(to string) {
	ctx, cancel := context.WithCancel(context.Background())
	a.to.Store(&to)
	a.life.Store(&ctx)
	if before := a.moved.Swap(&cancel); before != nil {
		(*before)()
	}
}

func (a *address) relay(conn net.Conn) {
	defer conn.Close()
	life := *a.life.Load()
	server, err := net.Dial("tcp", *a.to.Load())
	if err != nil {
		return
	}
	defer server.Close()
	defer context.AfterFunc(life, func() { conn.Close(); server.Close() })()
	go io.Copy(conn, server)
	io.Copy(server, conn)
}

// An emptied Redis does not mean another owner: the engine is lost.
func TestEmptiedRedisIsCorruptNotFenced(t *testing.T) {
	server := redistest.Start(t)
	s, tok, seq := mustOpen(t, server.URL(), Options{})
	resumes(t, s, tok, &seq)
	succeeds(t, server.Client().FlushAll(t.Context()).Err())
	for _, err := range []error{s.Append(t.Context(), tok, seq, seq+1, []byte("a batch")),
		s.Check(t.Context(), tok)} {
		if !errors.Is(err, persistence.ErrCorrupt) || errors.Is(err, persistence.ErrFenced) {
			t.Errorf("error is %v, want ErrCorrupt", err)
		}
	}
}
