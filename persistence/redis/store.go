package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
	"exchange/persistence/internal/head"
)

// Options of Open. The zero value keeps everything, for the engine "main", and insists on
// durability.
type Options struct {
	// Engine names the journal in this Redis; "" means "main". It is the hash tag of every key.
	Engine string
	// Retention bounds history; its zero value keeps everything.
	Retention persistence.Retention
	// AcceptDurability opens a Redis that may lose acknowledged writes, with a warning at each
	// start.
	AcceptDurability bool
	// Head names a file beside the exchange with the mark of the acknowledged end. A Redis that
	// ends before that mark is refused. "": no mark is kept.
	Head string
	// Fill opens a store to be filled from a backup: an old mark of Head does not count. The
	// snapshot at the restore's end rewrites the file. A missing file is not created.
	Fill bool
	// MustExist refuses an empty store with ErrAbsent.
	MustExist bool
	// StartNew accepts an empty store despite a mark in Head, and resets the mark.
	StartNew bool
	// Logger receives the store's faults; nil means slog.Default.
	Logger *slog.Logger

	recheck      time.Duration // tests check more often; 0: recheckEvery
	rewriteLeast int64         // tests have small files; 0: the usual one
	trimEntries  int           // tests have short journals; 0: the usual number
}

const (
	dialTimeout = 2 * time.Second
	// journalTimeout bounds one try of an append; a slower answer is unknown, and the append is
	// retried.
	journalTimeout = 2 * time.Second
	// otherTimeout bounds calls for which no order waits.
	otherTimeout = 3 * time.Second
	// recheckEvery is the time between two checks of a Redis in use, because its role or settings
	// may change while it runs. An idle owner's Check comes as often, so two checks are never a
	// second apart.
	recheckEvery = 500 * time.Millisecond
	// startPause is the time between two queries of a start to a Redis that loads its data or
	// writes its first file.
	startPause = 200 * time.Millisecond

	// Connections: one append is in flight at a time, one more checks the token.
	journalConns    = 2
	projectionConns = 3
	historyConns    = 16
)

// The client library writes each failed dial to standard error. It also returns the error, so the
// caller decides whether to log it.
func init() { redis.SetLogger(silent{}) }

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// A Store is one engine's keys in one Redis. Its methods may be called from any goroutine.
//
//tidy:keep Open returns it
type Store struct {
	name      string // without secrets
	engine    string
	retention persistence.Retention
	log       *slog.Logger

	// Three clients, so that a slow list never holds the connection that an append needs.
	journal     *redis.Client
	projections *redis.Client
	history     *redis.Client

	uploads   chan struct{} // one place: one snapshot upload at a time
	beatCount atomic.Uint64 // beats left by this process
	own       atomic.Pointer[ownClaim]

	acknowledged *head.File // end of the acknowledged appends; nil: no mark is kept
	fill         bool       // it is being filled, even if appends were acknowledged before
	accept       bool       // its role and settings may be wrong
	recheck      time.Duration
	born         time.Time
	// when the next check of Redis is due, since born; 0: at once, because Redis is not durable or
	// was not checked yet
	due        atomic.Int64
	hasWaitAOF bool // it has WAITAOF
	proven     atomic.Pointer[baseline]
	// Redis rewrote its append-only file at the newest probe
	rewriting    atomic.Bool
	trimEntries  int
	rewriteLeast int64       // bytes of the file below which it is not rewritten
	refused      atomic.Bool // Redis does not let this user rewrite it, which was logged
}

var _ persistence.Store = (*Store)(nil)

// Open connects to url, "redis://[user:password@]host:port/db" (rediss for TLS, unix for a socket).
// It waits while Redis loads its data, as long as ctx allows, and checks that Redis is durable.
func Open(ctx context.Context, url string, opts Options) (*Store, error) {
	if opts.Engine == "" {
		opts.Engine = "main"
	}
	if err := codec.CheckEngine(opts.Engine); err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	base, err := redis.ParseURL(url)
	if err != nil {
		// The parser's own text repeats the URL, password included.
		return nil,
			errors.New(
				"the Redis URL cannot be read: it must look like " +
					"redis://user:password@host:6379/0, with rediss:// for TLS or unix:// for a " +
					"socket")
	}
	s := &Store{
		name:         name(base),
		engine:       opts.Engine,
		retention:    opts.Retention,
		log:          opts.Logger,
		projections:  client(base, otherTimeout, projectionConns, nil),
		history:      client(base, otherTimeout, historyConns, nil),
		uploads:      make(chan struct{}, 1),
		fill:         opts.Fill,
		accept:       opts.AcceptDurability,
		recheck:      cmp.Or(opts.recheck, recheckEvery),
		rewriteLeast: cmp.Or(opts.rewriteLeast, rewriteLeast),
		trimEntries:  cmp.Or(opts.trimEntries, trimEntries),
		born:         time.Now(),
	}
	s.proven.Store(&baseline{})
	s.own.Store(&ownClaim{})
	s.journal = client(base, journalTimeout, journalConns, s.connected)
	if err := s.start(ctx, &opts); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// name returns the URL without its secrets.
func name(o *redis.Options) string {
	switch {
	case o.Network == "unix":
		return fmt.Sprintf("unix://%s?db=%d", o.Addr, o.DB)
	case o.TLSConfig != nil:
		return fmt.Sprintf("rediss://%s/%d", o.Addr, o.DB)
	}
	return fmt.Sprintf("redis://%s/%d", o.Addr, o.DB)
}

// client makes a client that never retries by itself: callers decide on retries.
func client(base *redis.Options, timeout time.Duration, conns int, connected func(context.Context,
	*redis.Conn) error) *redis.Client {
	return redis.NewClient(&redis.Options{
		Network:   base.Network,
		Addr:      base.Addr,
		Username:  base.Username,
		Password:  base.Password,
		DB:        base.DB,
		TLSConfig: base.TLSConfig,

		Protocol:                 2, // old servers and Valkey alike
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		ContextTimeoutEnabled:    true,
		MaxRetries:               -1,
		DialerRetries:            1,
		DialTimeout:              dialTimeout,
		ReadTimeout:              timeout,
		WriteTimeout:             timeout,
		PoolTimeout:              timeout,
		PoolSize:                 conns,
		MaxActiveConns:           conns,
		PipelinePoolSize:         -1, // only rare requests are pipelined
		OnConnect:                connected,
	})
}

// start waits for Redis and checks it.
func (s *Store) start(ctx context.Context, opts *Options) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := s.supported(ctx); err != nil {
		return err
	}
	if err := s.awaitDurable(ctx); err != nil {
		return err
	}
	s.due.Store(int64(time.Since(s.born) + s.recheck))
	if err := s.openHead(opts); err != nil {
		return err
	}
	return s.checkComplete(ctx, opts)
}

// ready waits until Redis answers. It only waits for one that loads its data.
func (s *Store) ready(ctx context.Context) error {
	return s.await(ctx, func() (again bool, err error) {
		err = s.history.Ping(ctx).Err()
		switch again = redis.HasErrorPrefix(err, "LOADING"); {
		case again:
			err = fmt.Errorf("%s still loads its data: %w", s.name, err)
		case denied(err) != nil:
			err = fmt.Errorf("%s refuses this exchange: %w: %w; check the user, the password and "+
				"the number of the database in the URL", s.name, denied(err), err)
		case err != nil:
			err = fmt.Errorf(
				"%s does not answer: %w; check that Redis runs there and that the user and "+
					"password are right", s.name, err)
		}
		return again, err
	})
}

// denied returns fs.ErrPermission or fs.ErrInvalid if Redis rejects the URL's user or database: a
// retry is useless.
func denied(err error) error {
	for _, prefix := range []string{"NOAUTH", "WRONGPASS", "NOPERM", "DENIED", "AUTH",
		"invalid password"} {
		if redis.HasErrorPrefix(err, prefix) {
			return fs.ErrPermission
		}
	}
	if redis.HasErrorPrefix(err, "DB index") {
		return fs.ErrInvalid
	}
	return nil
}

// awaitDurable waits until Redis's append-only file is in effect, and refuses a Redis with wrong
// settings.
func (s *Store) awaitDurable(ctx context.Context) error {
	if s.accept {
		return s.warn(ctx)
	}
	return s.await(ctx, func() (again bool, err error) {
		var not *notInEffect
		err = s.checkDurability(ctx, s.history)
		return errors.As(err, &not), err
	})
}

// warn logs the faults of a Redis that is accepted despite them.
func (s *Store) warn(ctx context.Context) error {
	wrong, err := s.durability(s.sendProbe(ctx, s.history, ""))
	if not := (*notInEffect)(nil); errors.As(err, &not) {
		wrong, err = append(wrong, not.text), nil
	}
	if len(wrong) > 0 {
		s.log.Warn(
			"this Redis may lose acknowledged writes, which was accepted with "+
				"--accept-redis-durability", "store", s.name, "wrong", strings.Join(wrong, "; "))
	}
	return err
}

// await calls query until it need not wait, as long as ctx allows. It logs the reason to wait once.
func (s *Store) await(ctx context.Context, query func() (again bool, err error)) error {
	var reason error // of the wait so far
	for {
		again, err := query()
		if !again {
			if err != nil && reason != nil && ctx.Err() != nil { // ended during the query
				err = fmt.Errorf("%w: %w", reason, ctx.Err())
			}
			return err
		}
		if reason == nil {
			s.log.Info("waiting for Redis", "store", s.name, "because", err)
		}
		reason = err
		pause := time.NewTimer(startPause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return fmt.Errorf("%w: %w", err, ctx.Err())
		case <-pause.C:
		}
	}
}

// supported refuses a Redis that lacks XTRIM MINID.
func (s *Store) supported(ctx context.Context) error {
	info, err := s.info(ctx, "server")
	if err != nil {
		return err
	}
	major, rest, _ := strings.Cut(info["redis_version"], ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	if errA != nil || errB != nil || a < 6 || a == 6 && b < 2 {
		return fmt.Errorf("%w: %s is Redis %q; version 6.2 or newer is needed, 7 is best",
			persistence.ErrUnsupported, s.name, info["redis_version"])
	}
	s.hasWaitAOF = a > 7 || a == 7 && b >= 2 // Valkey reports Redis 7.2
	return nil
}

// info reads a section of INFO.
func (s *Store) info(ctx context.Context, section string) (map[string]string, error) {
	return s.section(section, s.history.Info(ctx, section))
}

// section reads an answer of INFO.
func (s *Store) section(name string, answer *redis.StringCmd) (map[string]string, error) {
	text, err := answer.Result()
	if err != nil {
		return nil, fmt.Errorf("%s: INFO %s: %w", s.name, name, err)
	}
	values := map[string]string{}
	for line := range strings.Lines(text) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), ":")
		values[k] = v
	}
	return values, nil
}

// String names the store for people, without the password.
func (s *Store) String() string { return s.name }

// Size returns how much memory the server uses, for other databases than this one, too.
func (s *Store) Size(ctx context.Context) (int64, error) {
	used, _, err := s.Memory(ctx)
	return used, err
}

// Memory implements persistence.Bounded: the bound is maxmemory, or without one the memory of the
// server's machine.
func (s *Store) Memory(ctx context.Context) (used, most int64, err error) {
	info, err := s.info(ctx, "memory")
	if err != nil {
		return 0, 0, err
	}
	used, err = strconv.ParseInt(info["used_memory"], 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: INFO memory: used_memory is %q", s.name, info["used_memory"])
	}
	for _, name := range []string{"maxmemory", "total_system_memory"} {
		// a service that is not Redis itself may leave it out
		if most, err = strconv.ParseInt(info[name], 10, 64); err == nil && most > 0 {
			return used, most, nil
		}
	}
	return used, 0, nil
}

// Engine returns the id of the stored engine.
func (s *Store) Engine() string { return s.engine }

// Exclusive returns false: any process that reaches the server can own the engine.
func (s *Store) Exclusive() bool { return false }

// Close frees the connections. Calls in progress fail.
func (s *Store) Close() error {
	var errs []error
	for _, c := range []*redis.Client{s.journal, s.projections, s.history} {
		if err := c.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, s.acknowledged.Close())...)
}

// Keys. All carry the hash tag, so one script may use them all, even on a cluster. docs/storage.md
// explains the head, the stream, the watermark and the wallets.
//
//	sums                hash: key of a list → number of rows, exclusive or of their checksums; wm
//	                    the watermark again
//	s                   set: ids of the images, the one being uploaded included
//	s:SEQ.EPOCH.UNIQUE  hash, one image: chunk number → crc32c and 64 kB
//	nonces              hash: public key → highest nonce, and its checksum
//	trades, trades:PAIR, trades:account:ACCOUNT
//	                    lists: a row for each trade; with :marks a string, 7 bytes for each trade,
//	                    the last for the newest: sides and pair, and a checksum
//	orders:ACCOUNT      sorted set: closed orders by id; with :ids the index of client ids: length
//	                    and bytes of the client id, the order's id and a checksum, all of score 0
//	deposits:ACCOUNT    list
//	references          hash: reference of a deposit → its account and id, and its row again; with
//	                    :witnesses 16 bytes of its SHA-256 → its entry's checksum; never trimmed
//	withdraws, withdraws:ACCOUNT
//	                    sorted sets: closed withdrawals by id
//	candles:PAIR:FRAME  list: the start of the period is the id
//	actions             list: operators' changes by the sequence of the record

func (s *Store) key(rest string) string         { return "{" + s.engine + "}:" + rest }
func (s *Store) head() string                   { return s.key("m") }
func (s *Store) stream() string                 { return s.key("j") }
func (s *Store) watermark() string              { return s.key("wm") }
func (s *Store) sums() string                   { return s.key("sums") }
func (s *Store) images() string                 { return s.key("s") }
func (s *Store) image(id string) string         { return s.key("s:" + id) }
func (s *Store) nonces() string                 { return s.key("nonces") }
func (s *Store) wallet(name string) string      { return s.key("wallet:" + name) }
func (s *Store) allTrades() string              { return s.key("trades") }
func (s *Store) pairTrades(pair uint16) string  { return s.key("trades:" + dec(uint64(pair))) }
func (s *Store) accountTrades(a uint32) string  { return s.key("trades:account:" + dec(uint64(a))) }
func (s *Store) marks(list string) string       { return list + ":marks" }
func (s *Store) orders(account uint32) string   { return s.key("orders:" + dec(uint64(account))) }
func (s *Store) clientIDs(a uint32) string      { return s.orders(a) + clientIDs }
func (s *Store) deposits(account uint32) string { return s.key("deposits:" + dec(uint64(account))) }
func (s *Store) references() string             { return s.key("references") }
func (s *Store) witnesses() string              { return s.key("references:witnesses") }
func (s *Store) actions() string                { return s.key("actions") }

// withdrawals returns the key of an account's list; 0: of all.
func (s *Store) withdrawals(account uint32) string {
	if account == 0 {
		return s.key("withdraws")
	}
	return s.key("withdraws:" + dec(uint64(account)))
}

func (s *Store) candleList(pair uint16, frame uint8) string {
	return s.key("candles:" + dec(uint64(pair)) + ":" + dec(uint64(frame)))
}

func dec(v uint64) string { return strconv.FormatUint(v, 10) }

// fault turns an error of a call into one of the store. A key of a wrong type is damage.
func (s *Store) fault(what string, err error) error {
	if err != nil && strings.Contains(err.Error(), "WRONGTYPE Operation") {
		return fmt.Errorf("%s: %s: %w: a key has another type than the exchange gave it: %w",
			s.name, what, persistence.ErrCorrupt, err)
	}
	return fmt.Errorf("%s: %s: %w", s.name, what, err)
}

// run calls a script and reads its {code, text}.
func (s *Store) run(ctx context.Context, c *redis.Client, script *redis.Script, what string,
	keys []string, args ...any) (int64, string, error) {
	return s.code(what, script.Run(ctx, c, keys, args...))
}

// code reads a script's answer.
func (s *Store) code(what string, cmd *redis.Cmd) (int64, string, error) {
	answer, err := cmd.Slice()
	if err != nil {
		return 0, "", s.fault(what, err)
	}
	if len(answer) >= 2 {
		code, ok := answer[0].(int64)
		text, ok2 := answer[1].(string)
		if ok && ok2 {
			if code == codeFenced {
				return code, text, codec.Fenced(text)
			}
			return code, text, nil
		}
	}
	return 0, "", s.fault(what, fmt.Errorf("the script answered %v", answer))
}

// number reads a stored sequence.
func (s *Store) number(what, text string) (uint64, error) {
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %s is %q, not a number", s.name, persistence.ErrCorrupt, what,
			text)
	}
	return v, nil
}
