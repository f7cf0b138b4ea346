//go:build prove && linux

package processes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"exchange/prove/exchangetest"
)

// flipsOfAFile is the number of bit flips in each kind of file in a round, each on its own copy.
const flipsOfAFile = 2

// flipInPebble kills the exchange, and flips bits in each kind of file of its folder, on copies.
func (c *chaos) flipInPebble() {
	c.t.Helper()
	c.tradeOn(c.s)
	c.s.Kill()
	whole, _ := c.onCopy("")
	want := c.asItWas(whole)
	kinds := map[string][]string{}
	for _, name := range c.files() {
		if b, err := os.ReadFile(filepath.Join(c.folder, name)); err == nil && len(b) == 0 {
			continue // its name says all
		}
		kinds[kindOf(name)] = append(kinds[kindOf(name)], name)
	}
	outcomes := map[string]int{}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		for range flipsOfAFile {
			s, what := c.onCopy(kinds[kind][c.random.IntN(len(kinds[kind]))])
			outcomes[kind+": "+c.afterFlip(s, what, want)]++
		}
	}
	c.t.Logf("%v", outcomes)
	if outcomes[kindOf("HEAD.main")+": it is refused"] == 0 {
		c.t.Errorf("no flipped bit was noticed: %v", outcomes)
	}
	c.s.Start()
}

// onCopy prepares an exchange on a copy of the folder, with a flipped bit in the named file, if
// any.
func (c *chaos) onCopy(name string) (s *exchangetest.Server, what string) {
	c.t.Helper()
	folder := c.s.Data("../copy")
	succeeds(c.t, os.RemoveAll(folder), os.CopyFS(folder, os.DirFS(c.folder)))
	if name != "" {
		what = name + ", " + c.flipOneBit(filepath.Join(folder, name))
	}
	s = exchangetest.New(c.t, "pebble:"+folder, "--secret-key-file", c.s.Data("exchange.key"))
	s.Env = append(s.Env, manySnapshots...)
	return s, what
}

// flipInRedis kills the exchange and Redis, and flips bits in the files that Redis starts from: the
// writes since the last rewrite, and the image of that rewrite.
func (c *chaos) flipInRedis() {
	c.t.Helper()
	ctx := c.t.Context()
	succeeds(c.t, c.redis.Client().BgRewriteAOF(ctx).Err())
	exchangetest.Eventually(c.t, "Redis has rewritten its file", func() bool {
		text, err := c.redis.Client().Info(ctx, "persistence").Result()
		return err == nil && strings.Contains(text, "aof_rewrite_in_progress:0") &&
			strings.Contains(text, "aof_rewrite_scheduled:0")
	})
	c.tradeOn(c.s)
	c.s.Kill()
	c.redis.Kill()
	folder, kept := filepath.Join(c.redis.Dir(), "appendonlydir"),
		filepath.Join(c.t.TempDir(), "kept")
	succeeds(c.t, os.CopyFS(kept, os.DirFS(folder)))
	putBack := func() {
		succeeds(c.t, os.RemoveAll(folder), os.CopyFS(folder, os.DirFS(kept)))
	}
	c.redis.Restart()
	want := c.asItWas(c.onRedis())
	c.redis.Stop()
	putBack()
	outcomes := map[string]int{}
	for kind, flips := range map[string]int{"incr.aof": 3 * flipsOfAFile,
		"base.rdb": flipsOfAFile} {
		files, err := filepath.Glob(filepath.Join(kept, "*."+kind))
		if err != nil || len(files) != 1 {
			c.t.Fatalf("Redis has the files %v, %v", files, err)
		}
		for range flips {
			what := c.flipOneBit(filepath.Join(folder, filepath.Base(files[0])))
			outcomes[kind+": "+c.afterFlipInRedis(kind+", "+what, want)]++
			c.redis.Stop()
			putBack()
		}
	}
	c.t.Logf("%v", outcomes)
	if n := outcomes["base.rdb: Redis refuses it"]; n != flipsOfAFile {
		c.t.Errorf("Redis took an image with a flipped bit: %v", outcomes)
	}
	c.redis.Restart()
	c.s.Start()
}

// afterFlipInRedis is afterFlip on a Redis that may refuse its file.
func (c *chaos) afterFlipInRedis(what, want string) string {
	c.t.Helper()
	if err := c.redis.TryRestart(); err != nil {
		return "Redis refuses it"
	}
	return c.afterFlip(c.onRedis(), what, want)
}

// onRedis prepares an exchange with a copy of the data folder. The folder records the end of the
// acknowledged appends, and this exchange as the last owner.
func (c *chaos) onRedis() *exchangetest.Server {
	c.t.Helper()
	s := c.second()
	err := errors.Join(os.CopyFS(s.Data(""), os.DirFS(c.s.Data(""))),
		// this file distinguishes a copy from its original, which does not wait
		os.Remove(s.Data("serve.lock")), os.Link(c.s.Data("serve.lock"), s.Data("serve.lock")))
	succeeds(c.t, err)
	return s
}

// flipOneBit flips a bit of a byte that is not 0, because log files are preallocated. It returns a
// description.
func (c *chaos) flipOneBit(name string) string {
	c.t.Helper()
	b := must[[]byte](c.t)(os.ReadFile(name))
	used := bytes.TrimRight(b, "\x00")
	if len(used) == 0 {
		return "which is empty"
	}
	bit := c.random.IntN(len(used) * 8)
	b[bit/8] ^= 1 << (bit % 8)
	succeeds(c.t, os.WriteFile(name, b, 0o600))
	return fmt.Sprintf("bit %d of %d bytes", bit, len(used))
}

// asItWas starts an exchange on an undamaged copy, and returns its lists.
func (c *chaos) asItWas(s *exchangetest.Server) string {
	c.t.Helper()
	s.Start()
	defer s.Kill()
	all, err := listed(s)
	if err != nil || strings.Count(all, "\n") < 2 {
		c.t.Fatalf("it lists %v: %s", err, all)
	}
	return all
}

// sequence matches a read's sequence, which the record of a sent mail may move.
var sequence = regexp.MustCompile(`"sequence":[0-9]+,?`)

// listed returns all that an operator can list and export: trades, accounts, operators' changes,
// and each account's keys, withdrawals and balance changes.
func listed(s *exchangetest.Server) (string, error) {
	out, errOut, code := s.Command("export", "trades", "--pair", "BTC_USDT")
	if code != 0 {
		return "", errors.New(errOut)
	}
	text := strings.Builder{}
	text.WriteString(out)
	ask := func(path string) (b json.RawMessage, err error) {
		_, err = s.Call("GET", "/operator/v1/"+path, nil, &b)
		fmt.Fprintf(&text, "%s %s\n", path, sequence.ReplaceAll(b, nil))
		return b, err
	}
	b, err := ask("accounts")
	var list struct{ Accounts []struct{ Account string } }
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	if err == nil && len(list.Accounts) == 0 {
		err = errors.New("there are no accounts")
	}
	paths := []string{"actions?limit=1000", "withdraws?limit=1000"}
	for _, a := range list.Accounts {
		paths = append(paths, "account?name="+a.Account, "keys?account="+a.Account,
			"withdraws?limit=1000&account="+a.Account)
	}
	for _, path := range paths {
		if err == nil {
			_, err = ask(path)
		}
	}
	for _, a := range list.Accounts {
		if err != nil {
			return "", err
		}
		out, errOut, code := s.Command("statement", a.Account, "--json")
		if text.WriteString(out); code != 0 {
			err = errors.New(errOut)
		}
	}
	return text.String(), err
}

// afterFlip starts an exchange on a store with a flipped bit, and returns the outcome: the store is
// refused as damaged, or deposits or the audit report the damage, or nothing visible has changed.
func (c *chaos) afterFlip(s *exchangetest.Server, what, want string) string {
	c.t.Helper()
	const refused = "it is refused"
	s.Run()
	if c.endsOrIsReady(s, "a start with "+what+" flipped") {
		if s.ExitCode() != 70 {
			c.t.Errorf("with %s flipped a start ends with %d: %s", what, s.ExitCode(), s.Log())
		}
		return refused
	}
	defer s.Kill()
	damaged, err := c.repeatsDeposits(s)
	if err == nil && damaged {
		return "a deposit is refused"
	}
	if err == nil {
		if err = s.Audit(); err == nil {
			got, err := listed(s)
			if err != nil && (strings.Contains(err.Error(), "damage") ||
				strings.Contains(err.Error(), "fails its checks")) {
				return "a list says so"
			}
			if err != nil || got != want {
				c.t.Errorf("with %s flipped the audit is clean, and %v is listed:\n%s", what, err,
					firstChanged(want, got))
			}
			first := c.s
			c.s = s
			c.compareOthers()
			c.s = first
			return "nothing has changed"
		}
		for _, word := range []string{`"differences":["`, `"damaged":true`} {
			if strings.Contains(err.Error(), word) {
				return "the audit says so"
			}
		}
	}
	if s.Ready() != nil { // it met the damage while it ran
		exchangetest.Eventually(c.t, "an exchange that answers nothing has ended", s.Gone)
		if s.ExitCode() == 70 {
			return "it ends"
		}
	}
	c.t.Errorf("with %s flipped: %v\n%s", what, err, s.Log())
	return err.Error()
}

// firstChanged returns the first different line.
func firstChanged(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d is\n%s\nnot\n%s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, not %d", len(g), len(w))
}

// repeatsDeposits repeats every acknowledged deposit. None is made a second time. damaged reports
// that the exchange could not look one up.
func (c *chaos) repeatsDeposits(s *exchangetest.Server) (damaged bool, err error) {
	c.t.Helper()
	for _, p := range c.others.payments {
		var answer struct {
			Deposit  uint64
			Repeated bool
		}
		_, err := s.Call("POST", "/operator/v1/deposits", map[string]string{"account": p.account,
			"currency": p.currency, "amount": p.amount.String(), "reference": p.reference}, &answer)
		switch {
		case err != nil && strings.Contains(err.Error(), `"damaged":true`):
			damaged = true
		case err != nil:
			return damaged, err
		case !answer.Repeated || answer.Deposit != p.id:
			c.t.Errorf("deposit %s is %d, and asked for again it is %+v", p.reference, p.id, answer)
		}
	}
	return damaged, nil
}
