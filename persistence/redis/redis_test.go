//go:build prove

package redis

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"exchange/core/money"
	"exchange/persistence"
	"exchange/persistence/conformance"
	"exchange/persistence/internal/codec"
	"exchange/persistence/redistest"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

var engines atomic.Int64

func TestConformance(t *testing.T) {
	server := redistest.Start(t)
	fresh := func(t *testing.T) conformance.Backend {
		return backend{server.URL(), fmt.Sprintf("engine-%d", engines.Add(1))}
	}
	conformance.Run(t, fresh)
	conformance.RunCut(t, fresh)
}

// backend is an engine of its own in a shared server.
type backend struct{ url, engine string }

func (b backend) Open(t *testing.T, r persistence.Retention) persistence.Store {
	t.Helper()
	s, err := Open(t.Context(), b.url, Options{Engine: b.engine, Retention: r, Logger: quiet})
	succeeds(t, err)
	return s
}

// DamageBatch rewrites the stream, because its entries cannot be changed.
func (backend) DamageBatch(t *testing.T, s persistence.Store, next uint64) {
	st := s.(*Store)
	all, err := st.history.XRange(t.Context(), st.stream(), "-", "+").Result()
	succeeds(t, err)
	succeeds(t, st.history.Del(t.Context(), st.stream()).Err())
	for _, entry := range all {
		if entry.ID == dec(next)+"-0" {
			b := []byte(entry.Values["b"].(string))
			b[len(b)-1] ^= 0x40
			entry.Values["b"] = b
		}
		succeeds(t, st.history.XAdd(t.Context(), &redis.XAddArgs{Stream: st.stream(), ID: entry.ID,
			Values: entry.Values}).Err())
	}
}

func (backend) LoseBatch(t *testing.T, s persistence.Store, next uint64) {
	st := s.(*Store)
	if n, err := st.history.XDel(t.Context(), st.stream(), dec(next)+"-0").Result(); n != 1 ||
		err != nil {
		t.Fatal(n, err)
	}
}

func (backend) DamageSnapshot(t *testing.T, s persistence.Store) {
	st := s.(*Store)
	texts, err := st.snapshots(t.Context())
	succeeds(t, err)
	img, err := codec.ParseSnapshot(texts[0])
	succeeds(t, err)
	last := dec(uint64(img.Chunks - 1))
	chunk, err := st.history.HGet(t.Context(), st.image(img.ID()), last).Bytes()
	succeeds(t, err)
	chunk[len(chunk)-1] ^= 0x40
	succeeds(t, st.history.HSet(t.Context(), st.image(img.ID()), last, chunk).Err())
}

func mustOpen(t *testing.T, url string, opts Options) (*Store, persistence.Token, uint64) {
	t.Helper()
	s := mustOpenAlone(t, url, opts)
	tok, last, err := s.Acquire(t.Context(), persistence.Claim{Owner: "test"})
	succeeds(t, err)
	return s, tok, last
}

// mustOpenAlone opens a store, without becoming its owner.
func mustOpenAlone(t *testing.T, url string, opts Options) *Store {
	t.Helper()
	if opts.Logger == nil {
		opts.Logger = quiet
	}
	s, err := Open(t.Context(), url, opts)
	succeeds(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// wantError wants an error of one kind whose text has all words.
func wantError(t *testing.T, err, kind error, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("error is %v, want %v", err, kind)
	}
	for _, want := range words {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// wantNoStart wants a start to fail with such an error.
func wantNoStart(t *testing.T, url string, o Options, kind error, words ...string) {
	t.Helper()
	o.Logger = quiet
	_, err := Open(t.Context(), url, o)
	wantError(t, err, kind, words...)
}

func TestEachWrongSettingIsNamed(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client()
	f := func(setting, wrong, right string) {
		t.Helper()
		succeeds(t, admin.ConfigSet(t.Context(), setting, wrong).Err())
		wantNoStart(t, server.URL(), Options{}, persistence.ErrNotDurable,
			fmt.Sprintf("%s is %q and must be %q", setting, wrong, right))
		succeeds(t, admin.ConfigSet(t.Context(), setting, right).Err())
	}
	f("appendfsync", "everysec", "always")
	f("appendfsync", "no", "always")
	f("no-appendfsync-on-rewrite", "yes", "no")
	f("maxmemory-policy", "allkeys-lru", "noeviction")
	f("appendonly", "no", "yes")
	mustOpen(t, server.URL(), Options{})

	// All at once, and accepted: a warning at each start names them all.
	for _, kv := range [][2]string{{"appendfsync", "everysec"},
		{"maxmemory-policy", "volatile-ttl"}} {
		succeeds(t, admin.ConfigSet(t.Context(), kv[0], kv[1]).Err())
	}
	for range 2 {
		var log bytes.Buffer
		s, _, _ := mustOpen(t, server.URL(),
			Options{AcceptDurability: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for _, want := range []string{"level=WARN", "appendfsync", "everysec", "volatile-ttl"} {
			if !strings.Contains(log.String(), want) {
				t.Fatalf("%q does not say %q", log.String(), want)
			}
		}
		s.Close()
	}
}

func TestReplicaIsRefused(t *testing.T) {
	primary := redistest.Start(t)
	replica := redistest.Start(t, "replicaof", strings.ReplaceAll(primary.Addr(), ":", " "))
	wantNoStart(t, replica.URL(), Options{}, persistence.ErrNotDurable, `"slave"`)
}

func TestForbiddenConfigIsNotTakenForDurable(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client()
	succeeds(t, admin.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">secret-word", "~*", "+@all",
		"-config").Err())
	url := "redis://app:secret-word@" + server.Addr() + "/0"
	wantNoStart(t, url, Options{}, persistence.ErrNotDurable, "CONFIG GET is not allowed")
	mustOpen(t, url, Options{AcceptDurability: true})
}

func TestPasswordIsNeverShown(t *testing.T) {
	const secret = "secret-word"
	server := redistest.Start(t, "requirepass", secret)
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	s, _, _ := mustOpen(t, "redis://:"+secret+"@"+server.Addr()+"/3", Options{Logger: logger})
	texts := []string{s.String()}
	if want := "redis://" + server.Addr() + "/3"; s.String() != want {
		t.Fatalf("its name is %q, want %q", s, want)
	}
	server.Kill()
	_, err := s.Watermark(t.Context())
	texts = append(texts, fmt.Sprint(err))
	for _, url := range []string{
		"redis://user:" + secret + "@" + server.Addr() + "/0", // no process listens
		"redis://user:" + secret + "@%zz/0",
		"redis://user:" + secret + "@host:port/0",
		"http://user:" + secret + "@host/",
		"user:" + secret,
	} {
		_, err := Open(t.Context(), url, Options{Logger: logger})
		if err == nil {
			t.Fatalf("%s was opened", url)
		}
		texts = append(texts, err.Error())
	}
	server.Restart()
	_, err = Open(t.Context(), "redis://:wrong-"+secret+"@"+server.Addr()+"/0",
		Options{Logger: logger})
	texts = append(texts, fmt.Sprint(err), log.String())
	for _, text := range texts {
		if strings.Contains(text, secret) {
			t.Fatalf("%q shows the password", text)
		}
	}
}

func TestWalletIsReadableByPlainCommands(t *testing.T) {
	server := redistest.Start(t)
	s, tok, _ := mustOpen(t, server.URL(), Options{})
	w := &persistence.Writes{
		Wallets: []persistence.Wallet{
			{Account: 12, Name: "alice", Seq: 34, Holdings: []persistence.Holding{
				{Currency: "BTC", Balance: money.Amount(150_000_000).Balance(),
					Reserve: money.Amount(25_000_000).Balance()},
				{Currency: "USD", Balance: money.Price(1).Times(1).Balance()},
			}}},
		Nonces: []persistence.Nonce{{Key: "public-key", Nonce: 1700000000123}},
	}
	succeeds(t, s.Apply(t.Context(), tok, 0, 34, w))
	c := server.Client()
	f := func(want string, args ...any) {
		t.Helper()
		if got, err := c.Do(t.Context(), args...).Result(); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%v answers %v, %v; want %s", args, got, err, want)
		}
	}
	f("1.5:0.25", "HGET", "{main}:wallet:alice", "BTC")
	f("0.0000000000000001:0", "HGET", "{main}:wallet:alice", "USD")
	f("12", "HGET", "{main}:wallet:alice", "account")
	f("34", "HGET", "{main}:wallet:alice", "seq")
	f("5", "HLEN", "{main}:wallet:alice") // and its checksum
	f("1700000000123:5.5ff1137c", "HGET", "{main}:nonces", "public-key")
	f("34", "GET", "{main}:wm")
}

// Redis is killed between appends, and while one is in flight. Acknowledged batches stay, and a
// retry of the same bytes settles an unknown one.
func TestKilledRedisLosesNothingAcknowledged(t *testing.T) {
	server := redistest.Start(t)
	s, tok, seq := mustOpen(t, server.URL(), Options{})
	batch := func(seq uint64) []byte {
		return binary.BigEndian.AppendUint64(bytes.Repeat([]byte("x"), 100), seq)
	}
	for round := range 6 {
		for range 30 {
			succeeds(t, s.Append(t.Context(), tok, seq, seq+1, batch(seq)))
			seq++
		}
		// One more, racing with the kill: its outcome is unknown until it is retried.
		done := make(chan error, 1)
		if round%2 == 1 {
			go func() {
				done <- s.Append(context.WithoutCancel(t.Context()), tok, seq, seq+1,
					batch(seq))
			}()
		} else {
			close(done)
		}
		server.Kill()
		if err := <-done; errors.Is(err, persistence.ErrFenced) ||
			errors.Is(err, persistence.ErrGap) {
			t.Fatalf("an unknown outcome was reported as %v", err)
		}
		if err := s.Append(t.Context(), tok, seq, seq+1, batch(seq)); err == nil {
			t.Fatal("a dead Redis acknowledged an append")
		}
		server.Restart()
		retry(t, func() error { return s.Append(t.Context(), tok, seq, seq+1, batch(seq)) })
		seq++
		var end uint64
		retry(t, func() error {
			end = 0
			return s.Read(t.Context(), 0, func(prev, next uint64, b []byte) error {
				if !bytes.Equal(b, batch(prev)) {
					return fmt.Errorf("batch (%d, %d] differs from the written one", prev, next)
				}
				end = next
				return nil
			})
		})
		if end != seq {
			t.Fatalf("round %d: the journal ends at %d, want %d", round, end, seq)
		}
	}
}

// retry calls fn until it succeeds; a pool may hold connections of a server that was killed.
func retry(t *testing.T, fn func() error) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := fn()
		if err == nil {
			return
		}
		if errors.Is(err, persistence.ErrFenced) || errors.Is(err, persistence.ErrGap) ||
			errors.Is(err, persistence.ErrCorrupt) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// Old images are removed, also those of uploads that were never published.
func TestOnlyTwoImagesAreStored(t *testing.T) {
	server := redistest.Start(t)
	s, tok, _ := mustOpen(t, server.URL(), Options{})
	succeeds(t, s.Apply(t.Context(), tok, 0, 100, nil))
	c := server.Client()
	img := codec.NewSnapshot(1, tok.Epoch())
	if _, _, err := s.run(t.Context(), s.projections, chunkScript, "test",
		[]string{s.head(), s.images(), s.image(img.ID())}, string(tok), img.ID(), 0,
		"torn"); err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); seq <= 5; seq++ {
		succeeds(t, s.SaveSnapshot(t.Context(), tok, seq, bytes.NewReader(make([]byte, 300_000))))
	}
	keys, err := c.Keys(t.Context(), "{main}:s:*").Result()
	if err != nil || len(keys) != 2 {
		t.Fatalf("images are %v, %v", keys, err)
	}
	if n := c.SCard(t.Context(), "{main}:s").Val(); n != 2 {
		t.Fatalf("%d images are named", n)
	}
}

// onText calls do when a text is logged.
type onText struct {
	text string
	do   func()
}

func (h onText) Write(b []byte) (int, error) {
	if strings.Contains(string(b), h.text) {
		h.do()
	}
	return len(b), nil
}

func TestStartWaitsForLoadingRedis(t *testing.T) {
	server := newScripted(t)
	url := "redis://" + server.Addr().String()
	server.loading.Store(3)
	mustOpen(t, url, Options{})
	server.loading.Store(1 << 40)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := slog.New(slog.NewTextHandler(onText{"waiting for Redis", cancel}, nil))
	_, err := Open(ctx, url, Options{Logger: log})
	wantError(t, err, context.Canceled, "loads its data")
}

func TestUnreachableRedisIsNamed(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	_, err := Open(t.Context(), server.URL(), Options{Logger: quiet})
	if err == nil || !strings.Contains(err.Error(), server.Addr()) ||
		!strings.Contains(err.Error(), "does not answer") {
		t.Fatalf("error is %v", err)
	}
}

// The watermark is stored twice, and a start refuses two that differ.
func TestDamagedWatermarkIsRefused(t *testing.T) {
	server := redistest.Start(t)
	s, tok, _ := mustOpen(t, server.URL(), Options{})
	succeeds(t, s.Apply(t.Context(), tok, 0, 17, nil))
	if at, err := s.Watermark(t.Context()); at != 17 || err != nil {
		t.Fatal(at, err)
	}
	for _, damaged := range []string{"16", "177", ""} {
		succeeds(t, server.Client().Set(t.Context(), s.watermark(), damaged, 0).Err())
		if at, err := s.Watermark(t.Context()); !errors.Is(err, persistence.ErrCorrupt) {
			t.Errorf("it is %q where it was 17, and counts as %d: %v", damaged, at, err)
		}
	}
}

// The bound of the memory is maxmemory, or without one the machine's.
func TestMemoryAndItsBoundAreReported(t *testing.T) {
	server := redistest.Start(t)
	s := mustOpenAlone(t, server.URL(), Options{})
	ctx := context.Background()
	used, machine, err := s.Memory(ctx)
	if err != nil || used <= 0 || machine <= used {
		t.Fatalf("%d of %d bytes, %v", used, machine, err)
	}
	if n, err := s.Size(ctx); err != nil || n <= 0 {
		t.Errorf("%d bytes, %v", n, err)
	}
	const most = 1 << 30
	succeeds(t, server.Client().ConfigSet(ctx, "maxmemory", strconv.Itoa(most)).Err())
	if _, got, err := s.Memory(ctx); err != nil || got != most {
		t.Errorf("the bound is %d, want %d: %v", got, most, err)
	}
	server.Kill()
	if used, most, err := s.Memory(ctx); err == nil {
		t.Errorf("a dead Redis says %d of %d", used, most)
	}
}

// succeeds wants no errors.
func succeeds(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// A Redis that another version of the program has written is refused, whether it is opened or was
// open when the other program took it, and it is not changed.
func TestRedisOfOtherVersionIsNamed(t *testing.T) {
	server := redistest.Start(t)
	s, tok, _ := mustOpen(t, server.URL(), Options{})
	succeeds(t, s.Append(t.Context(), tok, 0, 1, []byte("a batch")))
	c := server.Client()
	stored := func() map[string]string {
		all := map[string]string{}
		for _, key := range c.Keys(t.Context(), "*").Val() {
			all[key] = c.Dump(t.Context(), key).Val()
		}
		return all
	}
	for noted, found := range map[string]int{"": unnamed, "4": 4, "6": 6} {
		err := c.HDel(t.Context(), s.head(), "version").Err()
		if noted != "" {
			err = c.HSet(t.Context(), s.head(), "version", noted).Err()
		}
		succeeds(t, err)
		before := stored()
		want := fmt.Sprintf("it is of version %d and this program reads version 5", found)
		_, err = Open(t.Context(), server.URL(), Options{Logger: quiet})
		wantError(t, err, persistence.ErrVersion, want)
		_, _, err = s.Acquire(t.Context(), persistence.Claim{Owner: "test"})
		wantError(t, err, persistence.ErrVersion, want)
		if !maps.Equal(before, stored()) {
			t.Errorf("version %q: the Redis was changed", noted)
		}
	}
}
