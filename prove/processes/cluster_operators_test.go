//go:build prove

package processes

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"exchange/actors/node"
	"exchange/prove/exchangetest"
)

// Each operator's command works at a follower, with the leader's answer.
func TestOperatorsUseAnyNode(t *testing.T) {
	c := newCluster(t)
	led := c.leader(nil)
	s := c.others(led)[0]
	c.follows(s, led)
	follower := c.name(s)
	w := opened(t, led, 2)
	w.load(30, func() {})

	key := c.command(s, "key", "create", "t0", "--permissions", "read", "--json")
	public := regexp.MustCompile(`"key": ?"([0-9a-f]+)"`).FindStringSubmatch(key)
	if public == nil {
		t.Fatal(key)
	}
	for _, args := range []string{"account create mallory", "account freeze mallory",
		"account unfreeze mallory", "deposit mallory USDT 12 --reference once",
		"deposit mallory USDT 12 --reference once", "key revoke " + public[1],
		"pair halt BTC_USDT", "pair resume BTC_USDT", "order cancel-all --account mallory",
		"fees set mallory BTC_USDT --maker 0.001 --taker 0.002", "fees reset mallory BTC_USDT",
		"maintenance on", "maintenance off", "audit", "backup " + filepath.Join(t.TempDir(), "b")} {
		c.command(s, append(strings.Fields(args), "--as", "carol")...)
	}
	changing := regexp.MustCompile(`(?m)sequence +\d+`)
	for _, args := range []string{"account list", "account show mallory", "account show t0",
		"key list t0", "withdraw list", "order list t0", "switch list", "actions",
		"statement t0", "statement mallory --json", "export trades --pair BTC_USDT",
		"account show t1 --json", "pair list --json", "fees list --json", "order list --json",
		"account list --frozen --totals --json", "maintenance status --json"} {
		own, its := c.command(s, strings.Fields(args)...), c.command(led, strings.Fields(args)...)
		if changing.ReplaceAllString(own, "") != changing.ReplaceAllString(its, "") {
			t.Errorf("%s: node %s answers\n%s\nand the one that leads\n%s", args, follower, own,
				its)
		}
	}
	for _, args := range []string{"account show nobody", "deposit mallory USDT -1",
		"order cancel 99999999", "withdraw approve 7", "pair halt BTC_EUR", "audit --archive /x",
		"cluster transfer " + c.name(led), "cluster remove " + c.name(led)} {
		_, own, code := s.Command(strings.Fields(args)...)
		_, its, want := led.Command(strings.Fields(args)...)
		if own != its || code != want || code == 0 {
			t.Errorf("%s ends with %d %s, and at the node that leads with %d %s", args, code, own,
				want, its)
		}
	}
	log := c.command(led, "actions")
	if !regexp.MustCompile(`(?m)carol from 127\.0\.0\.1 through node ` + follower + ` .*mallory`).
		MatchString(log) {
		t.Error(log)
	}
	for what, leads := range map[string]string{"cluster status": c.name(led),
		"cluster hash": ""} {
		out := c.command(s, strings.Fields(what)...)
		if !strings.Contains(out, follower) || !strings.Contains(out, leads) {
			t.Errorf("%s: %s", what, out)
		}
	}
	c.command(s, "cluster", "transfer", follower)
	exchangetest.Eventually(t, "the node leads", func() bool {
		return c.status(s, "/leaderz") == 200
	})
	w.turnTo(s)
	w.compare()
}

// The leader accepts only its own token.
func TestOperatorsNeedTheTokenOfTheLeader(t *testing.T) {
	c := prepareCluster(t, nil)
	const other = "another-token-of-the-tests-0123456789"
	for _, s := range c.nodes[1:] {
		s.Env = append(slices.Clip(s.Env), "EXCHANGE_OPERATOR_TOKEN="+other)
	}
	c.runs()
	led := c.leader(nil)
	var stranger *exchangetest.Server // has another token than the node that leads
	for _, s := range c.nodes {
		if (s == c.nodes[0]) != (led == c.nodes[0]) {
			stranger = s
		}
	}
	exchangetest.Eventually(t, "the node sees the leader", func() bool {
		_, text, _ := stranger.Command("cluster", "status")
		out, more, code := stranger.Command("account", "create", "mallory")
		if code == 0 {
			t.Fatal("the token is taken:", out)
		}
		return code == 64 && text == "" && strings.Contains(more, fmt.Sprintf("node %s refuses "+
			"the operator's token that node %s has forwarded: give all nodes the same token",
			c.name(led), c.name(stranger)))
	})
	if out := c.command(led, "account", "list"); strings.Contains(out, "mallory") {
		t.Error(out)
	}
	for _, s := range c.nodes {
		if log := s.Log(); strings.Contains(log, other) || strings.Contains(log, s.Token()) {
			t.Error("a token is in a log")
		}
	}
}

// The leader is killed while commands are in flight to it through another node. Acknowledged
// commands are done, refused ones are not, and unknown ones are done at most once.
func TestCommandsInFlightToADeadNodeAreUnknown(t *testing.T) {
	c := newCluster(t)
	led := c.leader(nil)
	s := c.others(led)[0]
	c.follows(s, led)
	c.command(s, "account", "create", "ann")
	p := &payers{s: s, acked: make(chan struct{}), over: make(chan struct{})}
	var all sync.WaitGroup
	for i := range node.OperatorsAtOnce {
		all.Go(func() { p.pay(t, fmt.Sprint("client-", i)) })
	}
	wait := func(n int) {
		for range n {
			<-p.acked
		}
	}
	wait(50)
	led.Kill()
	wait(50)
	close(p.over)
	all.Wait()
	t.Logf("%d were acknowledged, %d are unknown, %d were refused", p.done.Load(),
		len(p.unknown), p.refused.Load())
	paid := p.done.Load()
	for _, reference := range p.unknown {
		exchangetest.Eventually(t, "deposit "+reference+" is done", func() bool {
			_, err := p.deposit(reference)
			return err == nil
		})
		paid++
	}
	next := c.leader(led)
	out := c.command(next, "account", "show", "ann", "--json")
	if want := fmt.Sprintf(`"balance":%d,`, paid); !strings.Contains(out, want) {
		t.Errorf("%s has no %s", out, want)
	}
	clean(t, next)
}

// payers pay into an account through one node.
type payers struct {
	s             *exchangetest.Server
	acked, over   chan struct{}
	done, refused atomic.Int64

	mu      sync.Mutex
	unknown []string // references; guarded by mu
}

// pay makes one deposit after the other, until the end. A refused one is repeated.
func (p *payers) pay(t *testing.T, client string) {
	for i := 0; ; {
		reference := fmt.Sprint(client, "-", i)
		repeated, err := p.deposit(reference)
		switch {
		case err == nil && repeated:
			t.Errorf("deposit %s is done, and was only refused", reference)
		case err == nil:
			i++
			p.done.Add(1)
			select {
			case p.acked <- struct{}{}:
			case <-p.over:
			}
		case strings.Contains(err.Error(), "outcome unknown"):
			i++
			p.mu.Lock()
			p.unknown = append(p.unknown, reference)
			p.mu.Unlock()
		default:
			p.refused.Add(1)
		}
		select {
		case <-p.over:
			return
		default:
		}
	}
}

func (p *payers) deposit(reference string) (repeated bool, err error) {
	var a struct{ Repeated bool }
	_, err = p.s.Call("POST", "/operator/v1/deposits", map[string]string{"account": "ann",
		"currency": "USDT", "amount": "1", "reference": reference}, &a)
	return a.Repeated, err
}
