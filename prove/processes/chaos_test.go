//go:build prove && linux

package processes

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/shopspring/decimal"
	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"

	"exchange/persistence/redistest"
	"exchange/prove/exchangetest"
)

// A test run has one round of each sampled kind. EXCHANGE_CHAOS=full runs the counts below of all
// kinds, and a number runs that many rounds of each.
const (
	chaosVariable = "EXCHANGE_CHAOS"
	seedVariable  = "EXCHANGE_CRASH_SEED"
)

// roundsOfOne is the number of rounds of one exchange, before the next one starts on an empty
// store.
const roundsOfOne = 20

// clients is the load test's number of clients: each waits for at most one answer.
const clients = 6

// An injection is one kind of fault, injected while `exchange loadtest` drives the exchange.
type injection struct {
	name, what string // for the table
	full       int    // rounds of the whole campaign
	open       func(c *chaos)
	inject     func(c *chaos)
	sampled    bool // in every test run

	to     func(t *testing.T) *target // nil, or the store for restores
	broken bool                       // and restores are killed before
}

var injections = []injection{
	{name: "kill -9 of the exchange, on Pebble", what: "started again", full: 100, sampled: true,
		open: onPebble, inject: (*chaos).killExchange},
	{name: "kill -9 of the exchange, on Redis", what: "started again", full: 100, open: onRedis,
		inject: (*chaos).killExchange},
	{name: "kill -9 of Redis", what: "started again; the exchange resumes", full: 100,
		sampled: true, open: onRedis, inject: (*chaos).killRedis},
	{name: "kill -9 of both at once", what: "both started again", full: 10, sampled: true,
		open: onRedis, inject: (*chaos).killBoth},
	{name: "SIGTERM of the exchange", what: "ends with code 0 and is started again", full: 10,
		open: onPebble, inject: (*chaos).terminate},
	{name: "SIGSTOP of the exchange", what: "SIGCONT, and it resumes", full: 10, sampled: true,
		open: onPebble, inject: (*chaos).stopExchange},
	{name: "SIGSTOP of Redis", what: "SIGCONT when orders are refused", full: 10, sampled: true,
		open: onRedis, inject: (*chaos).stopRedis},
	{name: "network: every piece late", what: "continues, slower", full: 10, sampled: true,
		open: behindRelay, inject: func(c *chaos) { c.slowly(delay) }},
	{name: "network: little bandwidth", what: "continues, slower", full: 10, open: behindRelay,
		inject: func(c *chaos) { c.slowly(trickle) }},
	{name: "network: connections reset", what: "connects again", full: 10, sampled: true,
		open: behindRelay, inject: (*chaos).resetOften},
	{name: "network: nothing arrives", what: "orders are refused until it is over", full: 10,
		sampled: true, open: behindRelay, inject: func(c *chaos) { c.cutOff(swallow) }},
	{name: "network: only answers are lost", what: "appends are repeated until they are answered",
		full: 10, sampled: true, open: behindRelay,
		inject: func(c *chaos) { c.cutOff(dropAnswers) }},
	{name: "full disk under Pebble", what: "ends or refuses; resumes when there is room", full: 5,
		sampled: true, open: onSmallPebble, inject: (*chaos).fillDisk},
	{name: "a start on a full disk, on Pebble",
		what: "says so and ends with code 75, or finds room; resumes when there is room", full: 5,
		sampled: true, open: onFullPebble, inject: (*chaos).startFull},
	{name: "a bit flipped in each kind of file of Pebble's folder, on copies",
		what: "refused with code 70, or the audit says so, or nothing has changed", full: 3,
		sampled: true, open: onPebbleFolder, inject: (*chaos).flipInPebble},
	{name: "a bit flipped in Redis's append-only file and its base",
		what: "Redis or the exchange refuses it, or deposits or the audit say so, or nothing has " +
			"changed",
		full: 3, sampled: true, open: onRedis, inject: (*chaos).flipInRedis},
	{name: "full disk under Redis", what: "orders are refused; resumes when there is room", full: 5,
		open: onSmallRedis, inject: (*chaos).fillDisk},
	{name: "a second exchange on one Redis, by mistake",
		what: "waits, or is refused on the same data folder; the first serves on", full: 10,
		sampled: true, open: onRedis, inject: (*chaos).mistake},
	{name: "a second exchange on one Redis, with --take-over",
		what: "takes orders; the first ends with code 77, and takes over again with --take-over",
		full: 10, sampled: true, open: onRedis, inject: (*chaos).takeOver},
	{name: "a stopped exchange, overtaken and continued",
		what: "acknowledges nothing more and ends with code 77, and waits when started", full: 10,
		sampled: true, open: onRedis, inject: (*chaos).overtake},
	{name: "kill -9 of the exchange beside a standby",
		what: "the standby takes over; the first is started when that one has stopped", full: 10,
		sampled: true, open: onRedis, inject: (*chaos).killOwner},
	{name: "Redis loses acknowledged records beside a standby",
		what: "no exchange serves the rest: each ends with code 70, also when started again; in " +
			"about half of the rounds " +
			"one is started with the loss accepted, and a standby that was refused stands by " +
			"again; resumes when Redis has all again",
		full: 10, sampled: true, open: onRedis,
		inject: func(c *chaos) { c.loseTail(c.random.IntN(2) == 0, c.random.IntN(2) == 0) }},
	{name: "Redis hangs for 5 s beside a standby",
		what: "the exchange continues, and the standby waits", full: 10, sampled: true,
		open: onRedis, inject: (*chaos).hang},
	{name: "two starts at once", what: "one serves, and the other waits", full: 10, sampled: true,
		open: onRedis, inject: (*chaos).twoStarts},
	{name: "clock an hour forward and back", what: "continues", full: 10, open: withClock,
		inject: (*chaos).jump},
	{name: "Redis out of memory", what: "orders are refused until there is memory", full: 5,
		sampled: true, open: onRedis, inject: (*chaos).outOfMemory},
	{name: "Redis read-only, as a replica", what: "orders are refused until it is a master",
		full: 5, open: onRedis, inject: (*chaos).readOnly},
	{name: "start while Redis's first rewrite runs", what: "waits; Redis is killed meanwhile",
		full: 5, open: onRedis, inject: (*chaos).startBeforeFirstRewrite},
	{name: "start after Redis's first rewrite has failed", what: "waits; Redis is killed meanwhile",
		full: 5, open: onRedis, inject: (*chaos).startAfterFailedRewrite},
	{name: "Redis's file switched off and on",
		what: "orders are refused until a rewrite has ended; then Redis is killed", full: 10,
		sampled: true, open: onRedis, inject: (*chaos).switchOnWhileRunning},
	{name: "Redis synchronised wholly and promoted",
		what: "orders are refused until a rewrite has ended; then Redis is killed", full: 10,
		open: onRedis, inject: (*chaos).resyncWhileStopped},
	{name: "backup under load, kill -9, and restore from Pebble to Pebble", what: backedUp,
		full: 5, open: onPebble, to: toPebble},
	{name: "backup under load, kill -9, and restore from Pebble to Redis", what: backedUp,
		full: 5, sampled: true, open: onPebble, to: toRedis},
	{name: "backup under load, kill -9, and restore from Redis to Pebble", what: backedUp,
		full: 5, sampled: true, open: onRedis, to: toPebble},
	{name: "backup under load, kill -9, and restore from Redis to Redis", what: backedUp,
		full: 5, open: onRedis, to: toRedis},
	{name: "kill -9 of a backup, or of the exchange meanwhile",
		what: "leaves no half file with a backup's name; the same command succeeds",
		full: 10, sampled: true, open: onPebble, inject: (*chaos).killBackup},
	{name: "kill -9 of a restore into Pebble", what: brokenOff,
		full: 5, sampled: true, open: onRedis, to: toPebble, broken: true},
	{name: "kill -9 of a restore into Redis", what: brokenOff,
		full: 5, open: onPebble, to: toRedis, broken: true},
}

// Outcomes of backups and restores.
const (
	backedUp  = "has what was acknowledged before the backup, in a new history, and resumes"
	brokenOff = "what is there by half is never served; the same command says to empty it, and " +
		"then succeeds"
)

// A chaos is an exchange under load, with its store and its disk.
type chaos struct {
	t       *testing.T
	random  *rand.Rand
	s       *exchangetest.Server
	redis   *redistest.Server
	relay   *relay
	office  *world // whose money and keys come and go in every round
	others  *world // accounts of a second exchange that has traded; nil if there was none
	folder  string // of the data, mostly on a disk that can be filled
	mounted bool   // it is a disk; otherwise files are limited
	rate    int    // of the load, in requests a second
}

// A tally is the sum of one kind of injection.
type tally struct {
	injection *injection
	rounds    int
	orders    uint64 // acknowledged, and verified
	cancels   uint64
	trades    uint64
	office    uint64 // deposits, steps of withdrawals, keys, freezes and nonces
	in, out   uint64 // orders without an outcome that are in, and that are not
	took      time.Duration
}

// No acknowledged request is missing, after any injection.
func TestChaos(t *testing.T) {
	var tallies []*tally
	if os.Getenv(seedVariable) == "" {
		// for the page
		t.Setenv(seedVariable, strconv.FormatInt(time.Now().UnixNano(), 10))
	}
	random := newRandom(t)
	for i := range injections {
		in := &injections[i]
		rounds := roundsOf(t, in.full, in.sampled)
		if rounds == 0 {
			continue
		}
		t.Run(strings.ReplaceAll(in.name, " ", "_"), func(t *testing.T) {
			all := &tally{injection: in}
			tallies = append(tallies, all)
			for begin := time.Now(); all.rounds < rounds && !t.Failed(); all.took = time.Since(
				begin) {
				if in.to != nil {
					in.moved(t, random, all)
				} else {
					in.campaign(t, random, min(rounds-all.rounds, roundsOfOne), all)
				}
			}
			t.Logf(
				"%d rounds, acknowledged %d orders, %d cancels, %d trades, %d of money and keys; "+
					"without an outcome %d in and %d not", all.rounds, all.orders, all.cancels,
				all.trades, all.office, all.in, all.out)
		})
	}
	if file := os.Getenv("EXCHANGE_CHAOS_REPORT"); file != "" && !t.Failed() {
		succeeds(t, os.WriteFile(file, reliability(tallies, os.Getenv(seedVariable),
			redistest.Version(t)), 0o644))
	}
}

// roundsOf returns the number of rounds of a kind.
func roundsOf(t *testing.T, full int, sampled bool) int {
	t.Helper()
	mode := os.Getenv(chaosVariable)
	each, err := strconv.Atoi(mode)
	switch {
	case mode == "full":
		return full
	case mode != "" && err != nil:
		t.Fatalf("%s is %q: write full, or a number", chaosVariable, mode)
	case each == 0 && sampled:
		return 1
	}
	return each
}

// campaign runs rounds on one exchange.
func (in *injection) campaign(t *testing.T, random *rand.Rand, rounds int, all *tally) {
	t.Run(fmt.Sprint("from round ", all.rounds+1), func(t *testing.T) {
		c := &chaos{t: t, random: random, rate: 400}
		in.open(c)
		c.s.Start()
		c.office = &world{t: t, s: c.s}
		c.office.openBanker(random)
		c.office.openKeeper(random)
		for range rounds {
			c.round(in, all)
		}
		c.others.tell(all)
		all.office += c.office.done()
	})
}

// round has the load test drive and verify the exchange during an injection.
func (c *chaos) round(in *injection, all *tally) {
	c.t.Helper()
	load, closeOffice := c.startLoad(), c.openOffice()
	load.accepts(20 + c.random.Uint64N(300))
	in.inject(c)
	serves(c.t, c.s)
	load.accepts(20 + c.random.Uint64N(100)) // it has come through, and takes orders
	closeOffice()
	v := load.end()
	c.compareOthers()
	c.office.compare() // and an audit, when the load test has cancelled the rest
	all.rounds++
	all.orders, all.cancels, all.trades = all.orders+v.Orders, all.cancels+v.Cancels,
		all.trades+v.Trades
	all.in, all.out = all.in+v.UnknownIn, all.out+v.UnknownOut
}

// turn is the interval of each office account's requests. At any time of a round one of them is in
// flight or was just acknowledged, and they cause little load.
const turn = 10 * time.Millisecond

// openOffice lets every account of the office act, also without answers, until the office is
// closed.
func (c *chaos) openOffice() (closeOffice func()) {
	w := c.office
	acts := w.office()
	errs := make([]error, len(acts))
	closing := make(chan struct{})
	var wg sync.WaitGroup
	for i, act := range acts {
		wg.Go(func() {
			turns := time.NewTicker(turn)
			defer turns.Stop()
			for goOn := true; errs[i] == nil; {
				select {
				case <-closing:
					return
				case <-turns.C:
				}
				// an account without an answer waits until the exchange is back
				if goOn || w.s.Ready() == nil {
					goOn, errs[i] = act()
				}
			}
		})
	}
	wait := sync.OnceFunc(func() {
		close(closing)
		wg.Wait()
	})
	c.t.Cleanup(wait) // after a failure
	return func() {
		c.t.Helper()
		wait()
		succeeds(c.t, errors.Join(errs...))
	}
}

// A load is a load test that runs until end lets it verify.
type load struct {
	c         *chaos
	cmd       *exec.Cmd
	file      string
	out, errs bytes.Buffer
	done      <-chan struct{}
}

func (c *chaos) startLoad() *load {
	c.t.Helper()
	l := &load{c: c, file: filepath.Join(c.t.TempDir(), "report.json")}
	l.cmd = exec.Command(c.s.Program(), "loadtest", "--address", c.s.Listen, "--accounts",
		strconv.Itoa(clients), "--connections", strconv.Itoa(clients), "--duration", "1h", "--rate",
		strconv.Itoa(c.rate), "--timeout", "5s", "--instructed", "40", "--allow-refused", "100",
		"--seed", strconv.FormatUint(c.random.Uint64(), 10), "--json", l.file)
	l.cmd.Env = append(c.s.Env[:len(c.s.Env):len(c.s.Env)], "EXCHANGE_OPERATOR="+c.s.Operator)
	l.cmd.Stdout, l.cmd.Stderr = &l.out, &l.errs
	l.done = awaited(c.t, l.cmd)
	c.t.Cleanup(func() {
		l.cmd.Process.Kill() //nolint:errcheck // it has ended, but after a failure
		<-l.done
	})
	return l
}

// accepts waits until more orders are accepted.
func (c *chaos) accepts(orders uint64) { (&load{c: c}).accepts(orders) }

// accepts waits until more orders are accepted, while the load test runs.
func (l *load) accepts(orders uint64) {
	l.c.t.Helper()
	from := l.c.accepted()
	exchangetest.Eventually(l.c.t, "orders are accepted", func() bool {
		select {
		case <-l.done:
			l.c.t.Fatalf("the load test ended by itself: %v\n%s%s", l.cmd.ProcessState,
				l.out.String(), l.errs.String())
		default:
		}
		now := l.c.accepted()
		if now < from { // another process counts
			from = 0
		}
		return now-from >= orders
	})
}

// verification is the checked part of a load test's report.
type verification struct {
	Orders     uint64 `json:"orders"`
	Cancels    uint64 `json:"cancels"`
	Trades     uint64 `json:"trades"`
	UnknownIn  uint64 `json:"unknown_in"`
	UnknownOut uint64 `json:"unknown_out"`
	Audit      string `json:"audit"`
	Found      uint64 `json:"found"`
	Incomplete string `json:"incomplete"`
}

// end lets the load test verify, and expects no error.
func (l *load) end() verification {
	t := l.c.t
	t.Helper()
	succeeds(t, l.cmd.Process.Signal(os.Interrupt))
	<-l.done
	var report struct{ Verification *verification }
	b, err := os.ReadFile(l.file)
	if err == nil {
		err = json.Unmarshal(b, &report)
	}
	v := report.Verification
	if err != nil || l.cmd.ProcessState.ExitCode() != 0 || v == nil || v.Audit != "clean" ||
		v.Found > 0 || v.Incomplete != "" || v.Orders == 0 {
		t.Fatalf("the verification ends with %v, %v:\n%s%s", l.cmd.ProcessState, err,
			l.out.String(), l.errs.String())
	}
	return *v
}

// accepted returns the number of orders that the running process has accepted; 0: no answer.
func (c *chaos) accepted() uint64 {
	var sum float64
	for name, value := range c.s.Metrics() {
		if strings.HasPrefix(name, "exchange_orders_accepted_total") {
			sum += value
		}
	}
	return uint64(sum)
}

// The stores and disks of an exchange.

func (c *chaos) serve(store string) {
	c.s = exchangetest.New(c.t, store)
	// so that faults affect them, too
	c.s.Env = append(c.s.Env, manySnapshots...)
	// codes of withdrawals outlive clock jumps
	c.s.Env = append(c.s.Env, "EXCHANGE_TIMING_CODE_VALID_MS=604800000")
}

func onPebble(c *chaos) { c.serve("pebble:" + c.t.TempDir()) }

func onRedis(c *chaos) {
	c.redis = redistest.Start(c.t)
	c.serve(c.redis.URL())
}

func behindRelay(c *chaos) {
	c.redis = redistest.Start(c.t)
	c.relay = newRelay(c.t, c.redis.Addr())
	c.serve(c.relay.url())
}

func onSmallPebble(c *chaos) {
	c.smallDisk()
	// logs are allocated ahead: the disk is full when the allocated part is used up
	c.rate = 4000
	c.serve("pebble:" + filepath.Join(c.folder, "data"))
}

func onSmallRedis(c *chaos) {
	c.smallDisk()
	c.redis = redistest.Start(c.t, "dir", c.folder)
	c.serve(c.redis.URL())
}

// smallBytes is the size of a disk to be filled: a few times Pebble's allocation.
const smallBytes = 512 << 20

// smallDisk is a folder on a disk of its own, to be filled. If none can be mounted, or with
// EXCHANGE_CHAOS_DISK=limit, it is an ordinary folder, and the size of files is limited instead.
func (c *chaos) smallDisk() {
	t := c.t
	t.Helper()
	dir := t.TempDir()
	if os.Getenv("EXCHANGE_CHAOS_DISK") == "limit" {
		c.folder = dir
		return
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o",
		fmt.Sprintf("size=%d,mode=0700", smallBytes), "none", dir).CombinedOutput(); err != nil {
		t.Logf("no disk can be mounted, so files are limited instead: %v: %s", err,
			bytes.TrimSpace(out))
		c.folder = dir
		return
	}
	c.folder, c.mounted = dir, true
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := exec.Command("sh", "-c", "df -k "+dir+"; ls -lsR "+dir).CombinedOutput()
			t.Logf("the disk that was full:\n%s", out)
		}
		if out, err := exec.Command("umount", "--lazy", dir).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// The injections.

func (c *chaos) killExchange() { c.s.Kill(); c.s.Start() }

func (c *chaos) killRedis() { c.redis.Kill(); c.redis.Restart() }

func (c *chaos) killBoth() {
	c.redis.Kill()
	c.s.Kill()
	c.redis.Restart()
	c.s.Start()
}

func (c *chaos) terminate() { stops(c.t, c.s); c.s.Start() }

// stopExchange stops the exchange for longer than the interval in which it must check its store.
func (c *chaos) stopExchange() {
	c.s.Signal(syscall.SIGSTOP)
	<-time.After(time.Duration(c.random.IntN(3000)) * time.Millisecond)
	c.s.Signal(syscall.SIGCONT)
}

func (c *chaos) stopRedis() {
	c.redis.Signal(syscall.SIGSTOP)
	c.refuses()
	c.redis.Signal(syscall.SIGCONT)
}

// refuses waits until the exchange reports that it accepts no orders.
func (c *chaos) refuses() {
	c.t.Helper()
	exchangetest.Eventually(c.t, "the exchange refuses orders", func() bool {
		return c.s.Ready() != nil
	})
}

// slowly slows the network until appends take longer than a stall, every client waits, and the
// exchange reports that it accepts no orders. Some are accepted all the same.
func (c *chaos) slowly(mode int32) {
	const stall = "0.25"
	before := slower(c.s.Metrics(), stall)
	c.relay.set(mode)
	exchangetest.Eventually(c.t, "appends take long, and every client waits", func() bool {
		now := c.s.Metrics()
		return slower(now, stall) >= before+5 && now["exchange_commands_in_flight"] >= clients
	})
	c.refuses()
	c.accepts(10)
	c.relay.set(pass)
}

// resetOften breaks all connections a few times, each time while an append waits for an answer. The
// append has arrived completely, partly or not at all.
func (c *chaos) resetOften() {
	const failures = `exchange_store_failures_total{operation="append"}`
	for range 3 + c.random.IntN(4) {
		c.relay.set([...]int32{dropAnswers, halve, swallow}[c.random.IntN(3)])
		before := 0.0
		exchangetest.Eventually(c.t, "an append waits for its answer", func() bool {
			now := c.s.Metrics()
			before = now[failures]
			return now["exchange_store_append_waiting_seconds"] >= 0.05
		})
		c.relay.set(pass)
		c.relay.reset()
		exchangetest.Eventually(c.t, "the append has failed", func() bool {
			return c.s.Metrics()[failures] > before
		})
		c.accepts(1 + c.random.Uint64N(20))
	}
}

func (c *chaos) cutOff(mode int32) {
	c.relay.set(mode)
	c.refuses()
	for _, path := range []string{"orderbook/BTC_USDT", "exchanges", "pairs"} { // in memory
		if status, body, err := c.s.Client.Get(nil,
			"http://"+c.s.Listen+"/api/v1/"+path); err != nil || status != 200 {
			c.t.Errorf("%s without a store: %d %s %v", path, status, body, err)
		}
	}
	c.relay.set(pass)
	c.relay.reset() // bytes that a connection has lost do not come again
}

// fillDisk fills the disk until the exchange or Redis has noticed.
func (c *chaos) fillDisk() {
	fill := c.limitFiles
	if c.mounted {
		fill = c.ballast
	}
	makeRoom := fill()
	var redisEnded <-chan struct{} // nil: it does not end
	if c.redis != nil {
		redisEnded = c.redis.Ended()
	}
	ended := func(done <-chan struct{}) bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
	exchangetest.Eventually(c.t, "the full disk is met", func() bool {
		return ended(c.s.Exited()) || ended(redisEnded) || c.s.Ready() != nil
	})
	makeRoom()
	exchangetest.Eventually(c.t, "the exchange resumes, or has ended", func() bool {
		if ended(redisEnded) { // perhaps just now: its end can follow the refusal that it gave
			c.redis.Stop()
			c.redis.Restart()
			redisEnded = nil
		}
		return ended(c.s.Exited()) || c.s.Ready() == nil
	})
	if ended(c.s.Exited()) {
		c.s.Start()
	}
}

// ballast fills the disk to its last byte.
func (c *chaos) ballast() (makeRoom func()) {
	file, err := os.Create(filepath.Join(c.folder, "ballast"))
	succeeds(c.t, err)
	block := make([]byte, 64<<10)
	for n := len(block); n > 0; {
		if _, err = file.Write(block[:n]); err != nil {
			n /= 2
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		c.t.Fatal(err)
	}
	return func() {
		succeeds(c.t, file.Close(), os.Remove(file.Name()))
	}
}

// limitFiles prevents further writes to files. Most processes end by it; for the others it is
// lifted.
func (c *chaos) limitFiles() (makeRoom func()) {
	pid := c.s.Pid()
	if c.redis != nil {
		pid = c.redis.Pid()
	}
	var before unix.Rlimit
	succeeds(c.t, unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1,
		Max: unix.RLIM_INFINITY}, &before))
	return func() {
		if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &before,
			nil); err != nil && !errors.Is(err, unix.ESRCH) {
			c.t.Fatal(err)
		}
	}
}

// mistake starts a second exchange while the first serves: as on another host, and on the first
// one's data folder.
func (c *chaos) mistake() {
	second := c.second()
	c.standsBy(second)
	same := c.second()
	for i, a := range same.Args {
		if a == "--data" {
			same.Args[i+1] = filepath.Dir(c.s.Data("serve.lock"))
		}
	}
	same.Refuses(75, "serve.lock", fmt.Sprint("pid ", c.s.Pid()))
	c.accepts(20)
	c.stillStandsBy(second)
	stops(c.t, second)
	c.stillServes(c.s)
}

// standsBy starts an exchange that waits for the owner of the store.
func (c *chaos) standsBy(s *exchangetest.Server) {
	c.t.Helper()
	before := strings.Count(s.Log(), "standby: another exchange owns the store")
	s.Run()
	exchangetest.Eventually(c.t, "the standby says for whom it waits", func() bool {
		return strings.Count(s.Log(), "standby: another exchange owns the store") > before
	})
	c.stillStandsBy(s)
}

// stillStandsBy expects a standby to answer probes, and to refuse orders with a reason.
func (c *chaos) stillStandsBy(s *exchangetest.Server) {
	c.t.Helper()
	if status, err := s.Call("GET", "/operator/v1/accounts", nil, nil); status != 503 ||
		!strings.Contains(err.Error(), "standby") || !strings.Contains(err.Error(), "pid") {
		c.t.Errorf("an operator gets %d, %v", status, err)
	}
	if m := s.Metrics(); m["exchange_standby"] != 1 || m["exchange_ready"] != 0 {
		c.t.Errorf("standby %v, ready %v", m["exchange_standby"], m["exchange_ready"])
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503} {
		if status, body, err := s.Client.Get(nil, "http://"+s.Listen+path); err != nil ||
			status != want {
			c.t.Errorf("a standby answers %s with %d %s, %v", path, status, body, err)
		}
	}
}

// stillServes expects that an exchange has not ended.
func (c *chaos) stillServes(s *exchangetest.Server) {
	c.t.Helper()
	if s.Gone() {
		c.t.Fatalf("the exchange that serves has ended with %d", s.ExitCode())
	}
}

// insists starts an exchange that takes the store from another one.
func (c *chaos) insists(s *exchangetest.Server) {
	c.t.Helper()
	s.Args = append(s.Args, "--take-over")
	s.Start()
	s.Args = s.Args[:len(s.Args)-1]
}

// takeOver starts a second exchange, to which the first must yield, and then the first again.
func (c *chaos) takeOver() {
	first, second := c.s, c.second()
	c.insists(second)
	c.givesWay(first)
	c.tradeOn(second)
	clean(c.t, second)
	c.insists(first)
	c.givesWay(second)
}

// killOwner lets a standby take over from a killed exchange, and give the store back when it stops.
func (c *chaos) killOwner() {
	first, second := c.s, c.second()
	c.standsBy(second)
	first.Kill()
	serves(c.t, second)
	c.tradeOn(second)
	clean(c.t, second)
	c.standsBy(first)
	stops(c.t, second)
	serves(c.t, first)
}

// loseTail lets Redis lose acknowledged records, as a failover to a lagging replica does, while an
// exchange stands by. The owner dies with them, or detects the loss. Then an operator may accept
// the loss, and a complete copy restores Redis.
func (c *chaos) loseTail(alive, accepts bool) {
	first, second := c.s, c.second()
	lagging := redistest.Start(c.t)
	if accepts {
		lagging.CopyOf(c.redis)
		c.tradeOn(first)
	}
	env := second.Env
	// It must not take over before it has checked the store.
	second.Env = append(second.Env, "EXCHANGE_TIMING_OWNER_STALE_MS=60000")
	c.standsBy(second)
	r := c.redis.Client()
	if alive {
		first.Signal(syscall.SIGSTOP)
	} else {
		first.Kill()
	}
	looks := func() string {
		stats := must[string](c.t)(r.Info(c.t.Context(), "commandstats").Result())
		_, after, _ := strings.Cut(stats, "cmdstat_hmget:calls=")
		calls, _, _ := strings.Cut(after, ",")
		return calls
	}
	for range 2 { // one look may have been under way
		before := looks()
		exchangetest.Eventually(c.t, "the standby looks at the store",
			func() bool { return looks() != before })
	}
	whole := redistest.Start(c.t)
	whole.CopyOf(c.redis)
	if accepts {
		c.redis.CopyOf(lagging)
	} else {
		c.cutTail(r)
	}
	lagging.Stop()
	if alive {
		first.Signal(syscall.SIGCONT)
		endsWith(c.t, first, 70, "an exchange whose Redis has lost records")
	}
	endsWith(c.t, second, 70, "a standby of a Redis that has lost records")
	// It also says how to accept the loss, if no snapshot contains lost records.
	second.Refuses(70, "bring back the store that has the rest, or restore a backup")
	first.Refuses(70, "HEAD.redis")
	if second.Env = env; accepts {
		c.acceptsLoss(second)
	}
	c.redis.CopyOf(whole)
	whole.Stop()
	first.Start()
}

// acceptsLoss lets one host resume with Redis's remaining records, and then a host that was refused
// before. The second stands by, without its operator's consent, and takes over.
func (c *chaos) acceptsLoss(refused *exchangetest.Server) {
	c.t.Helper()
	accepting := c.second()
	c.insists(accepting)
	clean(c.t, accepting)
	c.standsBy(refused)
	c.stillServes(accepting)
	stops(c.t, accepting)
	serves(c.t, refused)
	clean(c.t, refused)
	stops(c.t, refused)
}

// cutTail removes the newest batches of the journal.
func (c *chaos) cutTail(r *redis.Client) {
	c.t.Helper()
	const some = 5
	newest, err := r.XRevRangeN(c.t.Context(), "{main}:j", "+", "-", some).Result()
	if err != nil || len(newest) < 3 {
		c.t.Fatalf("the journal has %d batches, %v", len(newest), err)
	}
	last := newest[len(newest)-1]
	seq, _, _ := strings.Cut(last.ID, "-")
	for _, lost := range newest[:len(newest)-1] {
		succeeds(c.t, r.XDel(c.t.Context(), "{main}:j", lost.ID).Err())
	}
	err = r.HSet(c.t.Context(), "{main}:m", "seq", seq, "dig", last.Values["d"]).Err()
	succeeds(c.t, err)
}

// hang stops Redis for longer than an owner may miss its heartbeat.
func (c *chaos) hang() {
	second := c.second()
	c.standsBy(second)
	c.redis.Signal(syscall.SIGSTOP)
	<-time.After(5 * time.Second)
	c.redis.Signal(syscall.SIGCONT)
	exchangetest.Eventually(c.t, "the exchange takes orders again", func() bool {
		c.stillServes(c.s)
		return c.s.Ready() == nil
	})
	c.accepts(20)
	c.stillStandsBy(second)
	stops(c.t, second)
}

// twoStarts starts an exchange on two hosts, on a store without an owner.
func (c *chaos) twoStarts() {
	first, second := c.s, c.second()
	stops(c.t, first)
	second.Run()
	first.Run()
	one, other := first, second
	exchangetest.Eventually(c.t, "one of both serves", func() bool {
		if second.Ready() == nil {
			one, other = second, first
		}
		return one.Ready() == nil
	})
	exchangetest.Eventually(c.t, "the other waits", func() bool {
		log := other.Log() // which is empty until it starts
		return strings.Contains(log[max(0, strings.LastIndex(log, "exchange starts")):],
			"standby: another exchange owns the store")
	})
	c.stillStandsBy(other)
	c.stillServes(one)
	stops(c.t, second)
}

// overtake lets a standby take over and accept orders while the first stands still, and then
// resumes the first. The first must not accept an order that arrived since, and must not overwrite
// the second's writes. Then the first is started again.
func (c *chaos) overtake() {
	first, second := c.s, c.second()
	late := c.other(first)
	first.Signal(syscall.SIGSTOP)
	second.Start() // when it has waited
	client := c.tradeOn(second)
	answer := c.post(late)
	first.Signal(syscall.SIGCONT)
	c.givesWay(first)
	if status := answer(); status == 201 {
		c.t.Error("an exchange that was overtaken has accepted an order")
	}
	c.trade(client, 20)
	clean(c.t, second)
	c.standsBy(first)
	stops(c.t, second)
	serves(c.t, first)
}

// second prepares another exchange on the same Redis, with the same keys.
func (c *chaos) second() *exchangetest.Server {
	s := exchangetest.New(c.t, c.redis.URL(), "--secret-key-file", c.s.Data("exchange.key"))
	s.Env = append(s.Env, manySnapshots...)
	return s
}

// givesWay waits until an exchange has ended because another one owns the store.
func (c *chaos) givesWay(s *exchangetest.Server) {
	c.t.Helper()
	endsWith(c.t, s, 77, "the exchange that was overtaken")
}

// other returns a new account besides those of the load test, and its client.
func (c *chaos) other(s *exchangetest.Server) *trader {
	c.t.Helper()
	if c.others == nil {
		c.others = &world{t: c.t}
	}
	w := c.others
	w.s = s
	t := w.account(fmt.Sprint("other-", len(w.traders)+1), c.random)
	w.traders = append(w.traders, t)
	w.fund(t.name, "BTC", "2")
	w.fund(t.name, "USDT", "200")
	return t
}

// tradeOn has a new client trade on an exchange.
func (c *chaos) tradeOn(s *exchangetest.Server) *trader {
	c.t.Helper()
	t := c.other(s)
	c.trade(t, 20)
	return t
}

// trade lets a client send orders and cancels until more orders are acknowledged.
func (c *chaos) trade(t *trader, orders uint64) {
	c.t.Helper()
	before, _, _ := t.counts()
	exchangetest.Eventually(c.t, "orders of "+t.name+" are accepted", func() bool {
		if goOn, err := t.act(); !goOn || err != nil {
			c.t.Fatalf("account %s is not answered: %v", t.name, err)
		}
		now, _, _ := t.counts()
		return now >= before+orders
	})
}

// post sends an order to an exchange that stands still. The order has arrived at its machine, and
// must not reach the journal. answer returns the status of a later reply; 0: none.
func (c *chaos) post(t *trader) (answer func() int) {
	c.t.Helper()
	o := &sentOrder{clientID: t.name + "-late", side: "buy", price: decimal.New(99, 0),
		amount: decimal.New(1, -2), outcome: refused}
	t.orders[o.clientID] = o
	form := fmt.Sprintf("amount=%s&client_order_id=%s&pair=BTC_USDT&price=%s&type=%s", o.amount,
		o.clientID, o.price, o.side)
	conn := must[net.Conn](c.t)(net.Dial("tcp", t.s.Listen))
	c.t.Cleanup(func() { conn.Close() })
	if _, err := fmt.Fprintf(conn,
		"POST /api/v1/order/ HTTP/1.1\r\nHost: %s\r\nX-KEY: %s\r\nX-NONCE: 1\r\nX-SIGN: "+
			"%s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
		t.s.Listen, t.key, t.secret.Sign(nil, []byte(t.key+form)), len(form), form); err != nil {
		c.t.Fatal(err)
	}
	return func() int {
		resp := fasthttp.AcquireResponse()
		defer fasthttp.ReleaseResponse(resp)
		if resp.Read(bufio.NewReader(conn)) != nil {
			return 0
		}
		return resp.StatusCode()
	}
}

// compareOthers compares the acknowledged requests of second exchanges with the state, when no
// account trades.
func (c *chaos) compareOthers() {
	c.t.Helper()
	if c.others == nil {
		return
	}
	ids := map[uint64]bool{}
	c.others.s = c.s
	for _, t := range c.others.traders {
		t.s = c.s
		if err := c.others.comparePayments(t); err != nil {
			c.t.Fatalf("account %s: %v", t.name, err)
		}
		if err := c.others.compareTrader(t, map[string]decimal.Decimal{}, ids); err != nil {
			c.t.Fatalf("account %s: %v", t.name, err)
		}
	}
}

// tell adds the acknowledged requests to the accounts of second exchanges.
func (w *world) tell(all *tally) {
	if w == nil {
		return
	}
	for _, t := range w.traders {
		orders, cancels, trades := t.counts()
		all.orders, all.cancels, all.trades = all.orders+orders, all.cancels+cancels,
			all.trades+trades
	}
}

// counts returns the numbers of acknowledged requests.
func (t *trader) counts() (orders, cancels, trades uint64) {
	for _, o := range t.orders {
		if o.outcome == acknowledged {
			orders++
			trades += uint64(len(o.trades))
		}
		if o.cancel == acknowledged {
			cancels++
		}
	}
	return orders, cancels, trades
}

func (c *chaos) outOfMemory() {
	c.config("maxmemory", "1mb")
	c.refuses()
	c.config("maxmemory", "0")
}

func (c *chaos) config(name, value string) {
	c.t.Helper()
	succeeds(c.t, c.redis.Client().ConfigSet(c.t.Context(), name, value).Err())
}

func (c *chaos) readOnly() {
	r := c.redis.Client()
	// an address without a server
	succeeds(c.t, r.ReplicaOf(c.t.Context(), "127.0.0.1", "1").Err())
	c.refuses()
	succeeds(c.t, r.ReplicaOf(c.t.Context(), "NO", "ONE").Err())
}
