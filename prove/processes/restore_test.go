//go:build prove && linux

package processes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"exchange/persistence/redistest"
	"exchange/prove/exchangetest"
)

// Backups and restores are rounds of the campaign. Each has its own exchange, which is backed up
// under load, killed, and resumes in another store.

// A target is an exchange on an empty store, for a restore, and how to empty the store again.
type target struct {
	*exchangetest.Server
	empty func()
}

func toPebble(t *testing.T) *target {
	dir := filepath.Join(t.TempDir(), "store")
	return &target{exchangetest.New(t, "pebble:"+dir), func() {
		succeeds(t, os.RemoveAll(dir))
	}}
}

func toRedis(t *testing.T) *target {
	r := redistest.Start(t)
	return &target{exchangetest.New(t, r.URL()), func() {
		succeeds(t, r.Client().FlushAll(context.Background()).Err())
	}}
}

// restore returns the command that fills the target from a folder of backups.
func (g *target) restore(backups string) []string {
	return append([]string{"restore", backups}, g.Args[1:]...)
}

// bring gives the target the server's key, which is stored apart from backups.
func (g *target) bring(t *testing.T, from *exchangetest.Server) {
	t.Helper()
	key, err := os.ReadFile(from.Data("exchange.key"))
	if err == nil {
		err = os.MkdirAll(filepath.Dir(g.Data("exchange.key")), 0o700)
	}
	if err == nil {
		err = os.WriteFile(g.Data("exchange.key"), key, 0o600)
	}
	succeeds(t, err)
}

// moved runs one round of a kind that resumes in another store.
func (in *injection) moved(t *testing.T, random *rand.Rand, all *tally) {
	t.Run(fmt.Sprint("round ", all.rounds+1), func(t *testing.T) {
		c := &chaos{t: t, random: random}
		in.open(c)
		c.s.Start()
		w := &world{t: t, s: c.s, backingUp: new(atomic.Bool)}
		w.open(6, random)
		for _, t := range w.traders {
			t.backingUp = w.backingUp
		}
		old := w.asksForCode()
		w.load(100+random.IntN(200), func() {}) // so that there are older snapshots
		w.compare()
		before := w.marks()
		backups := t.TempDir()
		w.load(50+random.IntN(100), func() {
			w.backingUp.Store(true) // everything acknowledged up to here is in the backup
			w.run(0, "", "backup", backups)
			more := w.acks.Load() + int64(random.IntN(100))
			exchangetest.Eventually(t, "orders come after the backup", func() bool {
				return w.acks.Load() >= more
			})
			c.s.Kill()
		})
		w.rollBack(before)
		g := in.to(t)
		g.Env = append(g.Env, manySnapshots...)
		g.bring(t, c.s)
		if in.broken {
			g.breaksOff(t, random, backups)
		} else {
			g.fill(t, backups)
			g.Start()
		}
		if text := g.Log(); !strings.Contains(text, "a new history begins") {
			t.Errorf("the log does not say that a new history begins:\n%s", text)
		}
		w.backingUp.Store(false)
		w.turnTo(g.Server)
		w.compare()
		w.codeHasExpired(old)
		w.load(100+random.IntN(200), func() { g.Kill(); g.Start() })
		w.compare()
		all.rounds++
		w.tell(all)
		all.office += w.done()
	})
}

// fill restores the newest backup.
func (g *target) fill(t *testing.T, backups string) {
	t.Helper()
	out, errOut, code := g.Command(g.restore(backups)...)
	if code != 0 || !strings.Contains(out, "exchange serve") {
		t.Fatalf("the restore ends with %d:\n%s%s", code, out, errOut)
	}
}

// breaksOff kills the restore while it fills the store. Then the store holds the complete backup,
// or cannot be served, and the same command says how to continue, or continues.
func (g *target) breaksOff(t *testing.T, random *rand.Rand, backups string) {
	t.Helper()
	const most = 200
	begin := time.Now()
	g.fill(t, backups)
	takes := time.Since(begin)
	g.empty()
	for half, try := false, 0; !half; try++ {
		if try == most {
			t.Fatalf("none of %d restores was killed with a store that was filled by half", most)
		}
		if !g.killed(t, random, backups, takes) {
			g.empty()
			continue
		}
		out, errOut, code := g.Command(g.restore(backups)...)
		if code == 0 { // the killed one had written nothing
			g.empty()
			continue
		}
		if code != 64 || !strings.Contains(errOut, "empty this one") {
			t.Fatalf("a restore after one that was killed ends with %d:\n%s%s", code, out, errOut)
		}
		half = g.refusesHalf(t)
		g.empty()
	}
	g.fill(t, backups)
	g.Start()
}

// awaited starts a program, and returns a channel that is closed when it has ended.
func awaited(t *testing.T, cmd *exec.Cmd) <-chan struct{} {
	t.Helper()
	succeeds(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		cmd.Wait() //nolint:errcheck // its state is looked at
		close(ended)
	}()
	return ended
}

// killed starts a restore and kills it at a random moment of its usual duration. It returns false
// if the restore was faster.
func (g *target) killed(t *testing.T, random *rand.Rand, backups string, takes time.Duration) bool {
	t.Helper()
	cmd := exec.Command(g.Program(), g.restore(backups)...)
	cmd.Env = g.Env
	ended := awaited(t, cmd)
	select {
	case <-ended:
	case <-time.After(time.Duration(random.Int64N(int64(takes)))):
	}
	cmd.Process.Kill() //nolint:errcheck // it may have ended
	<-ended
	return cmd.ProcessState.ExitCode() != 0
}

// refusesHalf starts an exchange on the remains of a killed restore; false: the store is complete.
func (g *target) refusesHalf(t *testing.T) bool {
	t.Helper()
	before := len(g.Log())
	g.Run()
	whole := false
	exchangetest.Eventually(t, "the exchange ends or serves", func() bool {
		whole = g.Ready() == nil
		return whole || g.Gone()
	})
	if whole {
		if err := g.Audit(); err != nil {
			t.Errorf("a store that is served after a restore that was killed: %v", err)
		}
		var list struct{ Accounts []json.RawMessage }
		if _, err := g.Call("GET", "/operator/v1/accounts", nil, &list); err != nil ||
			len(list.Accounts) < 8 {
			t.Errorf("a store that is served after a restore that was killed has %d accounts, %v",
				len(list.Accounts), err)
		}
		g.Kill()
		return false
	}
	if text := g.Log()[before:]; g.ExitCode() != 70 {
		t.Errorf("a start on half a restore ends with %d:\n%s", g.ExitCode(), text)
	}
	return true
}

// killBackup kills a backup, or its exchange, while it is written. No incomplete file has the name
// of a backup, and the same command succeeds.
func (c *chaos) killBackup() {
	t := c.t
	backups := t.TempDir()
	exchangetest.Eventually(t, "a backup is killed while it is written", func() bool {
		ofExchange := c.random.IntN(2) == 0
		cmd := exec.Command(c.s.Program(), "backup", backups)
		cmd.Env = append(c.s.Env[:len(c.s.Env):len(c.s.Env)], "EXCHANGE_OPERATOR="+c.s.Operator)
		ended := awaited(t, cmd)
		writing := func() bool {
			files, err := filepath.Glob(filepath.Join(backups, ".exchange-unfinished-*"))
			return err == nil && len(files) > 0
		}
		exchangetest.Eventually(t, "the backup is written", func() bool {
			select {
			case <-ended:
				return true
			default:
				return writing()
			}
		})
		if ofExchange {
			c.s.Kill()
			<-ended
			c.s.Start()
		} else {
			cmd.Process.Kill() //nolint:errcheck // it may have ended
			<-ended
		}
		code := cmd.ProcessState.ExitCode()
		if ofExchange && code != 0 && (code != 75 || writing()) {
			t.Errorf(
				"a backup of an exchange that was killed ends with %d, and leaves something: %v",
				code, writing())
		}
		c.wholeBackups(backups)
		left, err := filepath.Glob(filepath.Join(backups, ".exchange-unfinished-*"))
		// so that the next one is found; an exchange removes it an hour later
		for _, file := range left {
			err = errors.Join(err, os.Remove(file))
		}
		succeeds(t, err)
		return code != 0
	})
	out, errOut, code := c.s.Command("backup", backups)
	if code != 0 {
		t.Errorf("a backup after one that was killed ends with %d:\n%s%s", code, out, errOut)
	}
	if c.wholeBackups(backups) == 0 {
		t.Error("there is no backup")
	}
}

// wholeBackups restores each backup of a folder, and returns their number.
func (c *chaos) wholeBackups(folder string) int {
	c.t.Helper()
	files := must[[]string](c.t)(filepath.Glob(filepath.Join(folder, "exchange-*.backup")))
	for _, file := range files {
		g := toPebble(c.t)
		g.bring(c.t, c.s)
		g.fill(c.t, file)
	}
	return len(files)
}

// A mark is the acknowledged state of the office at a moment without a request in flight.
type mark struct {
	statuses []int          // of withdrawals
	last     *sentRequest   // of the banker
	revoked  []bool         // keys
	lastOf   []*sentRequest // of keys
	frozen   bool
}

// marks records the answers to banker and keeper.
func (w *world) marks() *mark {
	m := &mark{last: w.banker.last, frozen: w.keeper.frozen}
	for _, d := range w.banker.asked {
		m.statuses = append(m.statuses, d.status)
	}
	for _, k := range w.keeper.keys {
		m.revoked = append(m.revoked, k.revoked)
		var last *sentRequest
		if k.trader != nil {
			last = k.last
		}
		m.lastOf = append(m.lastOf, last)
	}
	return m
}

// rollBack treats requests acknowledged after the start of the backup as requests without an
// outcome: the backup may contain them or not. For the office these are all after the mark. Earlier
// acknowledged requests must be there.
func (w *world) rollBack(m *mark) {
	for _, t := range w.traders {
		t.rollBack()
	}
	for _, p := range w.payments {
		if p.late && p.outcome == acknowledged {
			p.outcome, p.id = unknown, 0
		}
	}
	w.banker.rollBack(m)
	w.keeper.rollBack(m)
}

func (t *trader) rollBack() {
	t.last = t.early
	for _, o := range t.orders {
		if o.late && o.outcome == acknowledged {
			o.outcome, o.id, o.filled, o.trades = unknown, 0, decimal.Zero, nil
		}
		if o.cancelLate && o.cancel == acknowledged {
			o.cancel = unknown
		}
		o.late, o.cancelLate = false, false
	}
}

func (b *banker) rollBack(m *mark) {
	b.last, b.lost = m.last, map[uint64]string{}
	for i, d := range b.asked {
		if d.outcome != acknowledged {
			continue
		}
		later := []int{20, 30, 40, 50}
		switch {
		case i >= len(m.statuses):
			b.lost[d.id] = b.s.Mails.Code(d.id)
			d.outcome, d.id, d.status, d.possible = unknown, 0, 10, later
		case d.status != m.statuses[i] || len(d.possible) > 0:
			d.status, d.possible = m.statuses[i], later
		}
	}
}

func (k *keeper) rollBack(m *mark) {
	k.frozen, k.freezing = m.frozen, true
	for i, key := range k.keys {
		switch {
		case i >= len(m.revoked):
			if key.outcome == acknowledged {
				key.outcome, key.revoked, key.revoking = unknown, false, true // it may not be there
			}
			if key.trader != nil {
				key.last = nil
			}
			continue
		case key.revoked != m.revoked[i]:
			key.revoked, key.revoking = false, true
		}
		if key.trader != nil {
			key.last = m.lastOf[i]
		}
	}
}

// A codeOf is a withdrawal with a code mailed before the backup.
type codeOf struct {
	*trader
	withdrawal uint64
	code       string
}

// asksForCode lets an account request a withdrawal, and not confirm it.
func (w *world) asksForCode() *codeOf {
	w.t.Helper()
	c := &codeOf{trader: w.accountWith("codes", "codes@example.org", []string{"read", "withdraw"},
		rand.New(rand.NewPCG(1, 2)))}
	w.must("/operator/v1/deposits",
		map[string]string{"account": c.name, "currency": "BTC", "amount": "1",
			"reference": "for codes"}, nil)
	c.nonce++
	status, body, err := c.send("POST", "/api/v1/withdraw/", "address=here&amount=0.5&currency=BTC",
		c.nonce)
	var row withdrawalRow
	if err != nil || status != 201 || json.Unmarshal([]byte(body), &row) != nil {
		w.t.Fatalf("a withdrawal is answered with %d %s, %v", status, body, err)
	}
	c.withdrawal = row.ID
	exchangetest.Eventually(w.t, "the code is mailed", func() bool {
		c.code = w.s.Mails.Code(row.ID)
		return c.code != ""
	})
	return c
}

// codeHasExpired confirms the withdrawal in the history after the restore: not with the earlier
// code, but with the newly mailed one.
func (w *world) codeHasExpired(c *codeOf) {
	w.t.Helper()
	c.s = w.s
	confirm := func(code string, want int, word string) {
		w.t.Helper()
		c.nonce++
		status, body, err := c.send("POST", "/api/v1/withdraw-confirm/",
			fmt.Sprintf("code=%s&withdraw=%d", code, c.withdrawal), c.nonce)
		if err != nil || status != want || !strings.Contains(body, word) {
			w.t.Fatalf(
				"the confirmation of a withdrawal from before the restore is answered with %d %s, "+
					"%v; want %d %s", status, body, err, want, word)
		}
	}
	confirm(c.code, 400, "Code expired")
	var code string
	exchangetest.Eventually(w.t, "another code is mailed", func() bool {
		code = w.s.Mails.Code(c.withdrawal)
		return code != ""
	})
	if code == c.code {
		w.t.Error("the code of a withdrawal is the same after a restore")
	}
	confirm(code, 200, `"status":20`)
}

// Requests acknowledged before the start of a backup are reported if they are not restored, and
// only these.
func TestARollBackTakesBackOnlyWhatCameLater(t *testing.T) {
	begun := new(atomic.Bool)
	client := &trader{backingUp: begun, orders: map[string]*sentOrder{}}
	send := func(name string, nonce uint64) *sentOrder {
		o := &sentOrder{outcome: acknowledged, cancel: acknowledged, cancelSent: true, id: nonce}
		o.late = client.acknowledged(&sentRequest{nonce: nonce})
		o.cancelLate = o.late
		client.orders[name] = o
		return o
	}
	early := send("early", 1)
	begun.Store(true)
	late := send("late", 2)
	client.rollBack()
	if client.last.nonce != 1 {
		t.Errorf("the nonce %d is to be used", client.last.nonce)
	}
	if err := early.compare(orderRow{}, false, nil); err == nil {
		t.Error("an order from before the backup is not missed")
	}
	if err := early.compare(orderRow{ID: 1, Status: 1}, true, nil); err == nil {
		t.Error("a cancel from before the backup is not missed")
	}
	if err := late.compare(orderRow{}, false, nil); err != nil {
		t.Errorf("an order from after the backup is missed: %v", err)
	}
	if err := late.compare(orderRow{ID: 7, Status: 1}, true, nil); err != nil {
		t.Errorf("an order from after the backup must not be there without its cancel: %v", err)
	}
}
