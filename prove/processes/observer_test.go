//go:build prove && linux

package processes

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/prove/exchangetest"
)

// observer prepares an observer of the nodes, which must name it.
func (c *cluster) observer(name string) *exchangetest.Server {
	c.t.Helper()
	c.command(c.nodes[0], "cluster", "certify", c.folder, name, "--observer")
	s := exchangetest.NewObserver(c.t, c.folder, name, c.list)
	s.Mails = c.nodes[0].Mails
	return s
}

// users switches all users to one exchange, and operators to another one.
func (w *world) users(s, operators *exchangetest.Server) {
	w.turnTo(s)
	w.s, w.keeper.s = operators, operators
}

// Users of an observer lose nothing acknowledged, while the followed node, the leader and the
// observer itself are killed. It holds no key, no e-mail address and no store.
func TestAnObserverServesThroughTheLossOfItsNodes(t *testing.T) {
	c := newCluster(t, "EXCHANGE_CLUSTER_OBSERVERS=o1,o2")
	w := opened(t, c.leader(nil), 2)
	o := c.observer("o1")
	o.Start()
	w.users(o, w.s)
	node := exchangetest.Listen(t, "node", "../clients/stream.mjs", "http://"+o.Listen, "BTC_USDT")
	w.load(60, func() {})
	w.compare()
	for _, s := range append(c.others(w.s), w.s) { // the one that it follows is among the first
		w.load(60, s.Kill)
		w.users(o, c.leader(s))
		w.compare()
		node.Looks()
		s.Run()
		c.follows(s, w.s)
	}
	w.load(60, o.Kill)
	o.Start()
	w.compare()
	node.Looks()
	stops(t, o)
	o.Start()
	o.AwaitSubscribers(4)
	w.load(400, func() {})
	w.compare()
	node.SawEnough(20, 2*4)
	if k, err := c.view(o); err != nil || k.Role != "observer" || k.Leader != c.name(w.s) {
		t.Error(k, err)
	}
	const words = "this is an observer, which forwards no operators' commands"
	if _, text, code := o.Command("account", "list"); code != 75 || !strings.Contains(text, words) {
		t.Errorf("an operator's command at an observer ends with %d: %s", code, text)
	}

	text := must[[]byte](t)(os.ReadFile(filepath.Join(c.folder, "exchange.key")))
	key := must[[]byte](t)(hex.DecodeString(strings.TrimSpace(string(text))))
	for what, secret := range map[string][]byte{"the server's key": key,
		"an e-mail address": []byte("banker@example.org")} {
		if !inMemory(t, w.s, secret) {
			t.Errorf("the node that leads does not have %s: the search finds nothing", what)
		}
		if inMemory(t, o, secret) {
			t.Errorf("the memory of the observer has %s", what)
		}
	}
	err := filepath.WalkDir(o.Data(""), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != "serve.lock" {
			t.Errorf("an observer's folder has %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// inMemory reports whether a process holds some bytes in writable memory.
func inMemory(t *testing.T, s *exchangetest.Server, secret []byte) bool {
	t.Helper()
	maps := must[*os.File](t)(os.Open(fmt.Sprintf("/proc/%d/maps", s.Pid())))
	defer maps.Close()
	memory := must[*os.File](t)(os.Open(fmt.Sprintf("/proc/%d/mem", s.Pid())))
	defer memory.Close()
	const step = 1 << 20
	b := make([]byte, step+len(secret))
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to int64
		var rights string
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &rights); n != 3 ||
			!strings.HasPrefix(rights, "rw") {
			continue
		}
		for at := from; at < to; at += step {
			n, err := memory.ReadAt(b[:min(int64(len(b)), to-at)], at)
			if err != nil && err != io.EOF {
				break // a part that was given back meanwhile, or that the kernel keeps
			}
			if bytes.Contains(b[:n], secret) {
				return true
			}
		}
	}
	return false
}
