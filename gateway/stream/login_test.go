package stream

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/trading"
	"exchange/gateway/api"
)

// A testGuard accepts clients whose signature is the word "right", or the challenge.
type testGuard struct{ w *world }

func (testGuard) Challenge() string { return "a challenge" }

func (g testGuard) Begin(c *api.Call) {
	c.Reset()
	c.BindAPI(api.New(g.w.engine.Public, g.w.engine))
}

func (g testGuard) Login(c *api.Call, _ netip.Addr, p *Proof) int {
	key := g.w.engine.Key([]byte(p.Key))
	switch {
	case key == nil:
		c.Fail(api.Unauthenticated, "")
	case p.Challenge == "":
		c.Fail(api.NoChallenge, "")
	case p.Sign != "right":
		c.Fail(api.Throttled, "7")
		return 7
	default:
		c.Key = key
	}
	return 0
}

func (testGuard) Read(*api.Call, *directory.Key) int { return 0 }

// ask sends an event, and returns its acknowledgement.
func (l *listener) ask(name string, args ...any) string {
	l.t.Helper()
	l.mu.Lock()
	l.asked++
	id := fmt.Sprint(l.asked)
	l.mu.Unlock()
	b := must(json.Marshal(append([]any{name}, args...)))
	l.say("42" + id + string(b))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wait("an acknowledgement", func() bool { return l.acks[id] != nil || l.over != nil })
	if l.acks[id] == nil {
		l.t.Fatalf("the connection ended: %v", l.over)
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(l.acks[id]), "["), "]")
}

// login logs a client in.
func (l *listener) login(key string, more ...string) string {
	l.t.Helper()
	l.ask("challenge")
	fields := map[string]string{"key": key, "sign": "right"}
	for i := 0; i+1 < len(more); i += 2 {
		fields[more[i]] = more[i+1]
	}
	return l.ask("login", fields)
}

// allRights begins the answer to a key that may do all; the account's name follows.
const allRights = `{"status":200,"body":{"permissions":["read","trade","withdraw"],"account":"trader-`

func (l *listener) in(key string, more ...string) {
	l.t.Helper()
	if got := l.login(key, more...); !strings.HasPrefix(got, allRights) {
		l.t.Fatal(got)
	}
}

// sid waits for the socket's id.
func (l *listener) sid() string {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wait("the id of the socket", func() bool { return l.id != "" })
	return l.id
}

// A follower without commands sends public data, and refers other requests to the leader.
func TestAccountEventsAreRefusedAtFollower(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.stop()
		w.follows = true
		w.start()
		w.findKeys()
		l := w.listen()
		l.subscribe("trades.BTC_USDT")
		const says = `{"status":503,"body":{"detail":"This node is a follower and does not serve ` +
			`this request. Node b leads."},"retry_after":1}`
		for _, name := range []string{"challenge", "login", "logout", "own.subscribe",
			"own.unsubscribe", "order", "order-cancel", "order-batch"} {
			if got := l.ask(name, map[string]string{}); got != says {
				t.Errorf("%s: %s", name, got)
			}
		}
		w.place(0, "BTC_USDT", trading.Sell, 100, 1)
		w.place(1, "BTC_USDT", trading.Buy, 100, 1)
		if a := l.next(); a.name != "trades" {
			t.Error(a)
		}
	})
}

func TestLoginConsumesItsChallenge(t *testing.T) { bubble(t, testLoginConsumesItsChallenge) }

func testLoginConsumesItsChallenge(t *testing.T) {
	w := newWorld(t, nil)
	l := w.listen()
	const none = `{"status":401,"body":{"detail":"There is no challenge for this socket, or it ` +
		`is too old: ask for one."}}`
	fields := map[string]string{"key": "key-trader-0", "sign": "right"}
	if got := l.ask("login", fields); got != none {
		t.Error(got)
	}
	if got := l.ask("challenge"); got != `{"challenge":"a challenge"}` {
		t.Error(got)
	}
	wrong := map[string]string{"key": "key-trader-0", "sign": "wrong"}
	if got := l.ask("login", wrong); got != `{"status":429,"body":{"detail":"Request was `+
		`throttled. Expected available in 7 seconds."},"retry_after":7}` {
		t.Error(got)
	}
	if got := l.ask("login", fields); got != none {
		t.Error("a challenge was accepted twice:", got)
	}
	l.in("key-trader-0")
	l.ask("challenge")
	if got := l.ask("login", fields); got != `{"status":400,"body":{"detail":"This socket is `+
		`logged in already: log out first."}}` {
		t.Error(got)
	}
	if got := l.ask("logout"); got != `{"status":200,"body":{}}` {
		t.Error(got)
	}
	if got := l.ask("logout"); got != `{"status":401,"body":{"detail":"This socket is not `+
		`logged in."}}` {
		t.Error(got)
	}
	l.in("key-trader-1")
}

func TestHostileLoginsAreAnswered(t *testing.T) { bubble(t, testHostileLoginsAreAnswered) }

func testHostileLoginsAreAnswered(t *testing.T) {
	w := newWorld(t, nil)
	l := w.listen()
	for _, args := range [][]any{nil, {nil}, {1}, {"x"}, {[]int{1}}, {map[string]any{"key": 1}},
		{map[string]any{}}, {map[string]any{"key": strings.Repeat("k", 10_000)}}} {
		l.ask("challenge", args...)
		if got := l.ask("login", args...); got != `{"status":401,"body":{"detail":"Incorrect `+
			`authentication credentials."}}` {
			t.Errorf("%v: %s", args, got)
		}
	}
	l.in("key-trader-0")
}

func TestLoginsPerKeyAreBounded(t *testing.T) { bubble(t, testLoginsPerKeyAreBounded) }

func testLoginsPerKeyAreBounded(t *testing.T) {
	w := newWorld(t, nil)
	var all []*listener
	for range loginsPerKey {
		l := w.listen()
		l.in("key-trader-0")
		all = append(all, l)
	}
	l := w.listen()
	const full = `{"status":400,"body":{"detail":"This key is logged in on too many ` +
		`sockets: log out on one first."}}`
	if got := l.login("key-trader-0"); got != full {
		t.Error(got)
	}
	l.in("key-trader-1")
	l.ask("logout")
	// a socket replaces another one, and one that has logged out
	l.in("key-trader-0", "ends", all[0].sid())
	all[0].ended()
	last := w.listen()
	if got := last.login("key-trader-0"); got != full {
		t.Error(got)
	}
	all[1].ask("logout")
	last.in("key-trader-0")
	if n := w.hub.Stats().Logins; n != loginsPerKey {
		t.Errorf("%d logins", n)
	}
}

func TestRevocationEndsLogins(t *testing.T) { bubble(t, testRevocationEndsLogins) }

func testRevocationEndsLogins(t *testing.T) {
	w := newWorld(t, nil)
	w.must(w.engine.CreateKey("test", "trader-0", "second", "secret", event.PermissionRead, nil))
	first, second, other := w.listen(), w.listen(), w.listen()
	first.in("key-trader-0")
	if got := second.login("second"); got !=
		`{"status":200,"body":{"permissions":["read"],"account":"trader-0"}}` {
		t.Fatal(got)
	}
	other.in("key-trader-1")
	w.must(w.engine.RevokeKey("test", "second"))
	second.expect("login.end", `{"detail":"The key is revoked."}`)
	if got := second.login("second"); !strings.Contains(got, `"status":401`) {
		t.Error(got)
	}
	w.must(w.engine.Freeze("test", "trader-0", true))
	first.expect("login.end", `{"detail":"The account is frozen."}`)
	if got := first.login("key-trader-0"); got != `{"status":403,"body":{"detail":"The account is `+
		`frozen."}}` {
		t.Error(got)
	}
	w.must(w.engine.Freeze("test", "trader-0", false))
	first.in("key-trader-0")
	if got := other.ask("logout"); got != `{"status":200,"body":{}}` {
		t.Error(got)
	}
	if n := w.hub.Stats().Logins; n != 1 {
		t.Errorf("%d logins", n)
	}
}

// loginOf returns the only login of a key.
func (w *world) loginOf(key string) *login {
	w.t.Helper()
	w.hub.logins.mu.Lock()
	defer w.hub.logins.mu.Unlock()
	list := w.hub.logins.byKey[w.engine.Key([]byte(key)).Number]
	if len(list) != 1 {
		w.t.Fatalf("%d logins", len(list))
	}
	return list[0]
}

// After the answer to a login that replaces a socket, no command of that socket reaches a wallet,
// even if its packets were accepted before.
func TestLoginReplacesEarlierSocket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		old := w.listen()
		old.in("key-trader-0")
		l := w.loginOf("key-trader-0")
		if f, _ := l.refusal(&api.Operation{Permission: event.PermissionTrade}); f != nil ||
			!l.begin() || !l.begin() {
			t.Fatal("a live login accepts no packet")
		}
		inside, leave := make(chan struct{}), make(chan struct{})
		var sending sync.WaitGroup
		sending.Add(1)
		go func() {
			defer sending.Done()
			if !l.Pass(func() { close(inside); <-leave }) {
				t.Error("a command was dropped without reason")
			}
		}()
		<-inside
		old.conn.Close()
		fresh := w.listen()
		fresh.ask("challenge")
		acked := make(chan string)
		go func() {
			acked <- fresh.ask("login", map[string]string{"key": "key-trader-0", "sign": "right",
				"ends": old.sid()})
		}()
		for !cutting(l) { // the new login waits for the command in flight
			select {
			case got := <-acked:
				t.Fatalf("answered before the command was with its wallet: %s", got)
			default:
				runtime.Gosched()
			}
		}
		close(leave)
		if got := <-acked; !strings.HasPrefix(got, allRights) {
			t.Error(got)
		}
		sending.Wait()
		l.finish()
		if l.Pass(func() { t.Error("a command was sent after the end of its socket") }) {
			t.Error("it was not dropped")
		}
		l.finish()
		synctest.Wait() // for the end of the old socket, which the close began
		if w.loginOf("key-trader-0") == l {
			t.Error("the ended login is kept")
		}
		// and the socket may not return under its id
		if _, f := w.hub.logins.add(&login{key: l.key, client: l.client}); f != api.LoginEnded {
			t.Errorf("%v", f)
		}
	})
}

// cutting reports whether some goroutine waits to cut a login.
func cutting(l *login) bool {
	if l.fence.TryRLock() {
		l.fence.RUnlock()
		return false
	}
	return true
}

func TestLoginReplacingUnknownSocketSucceeds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		l, other := w.listen(), w.listen()
		other.in("key-trader-1")
		l.in("key-trader-0", "ends", other.sid()) // of another key
		if got := other.ask("logout"); got != `{"status":200,"body":{}}` {
			t.Error(got)
		}
	})
}

func TestLoginEndsDefaultSubscription(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.silent = true
		l := w.listen()
		l.sid()
		l.ask("challenge")
		w.place(0, "BTC_USDT", 1, 100, 1)
		l.in("key-trader-0")
		if l.mu.Lock(); len(l.got) > 0 {
			t.Errorf("it still receives %s", l.got[0].name)
		}
		l.mu.Unlock()
	})
}

func (testGuard) Permit(c *api.Call, o *api.Operation) bool {
	f, about := o.Refusal(c.Key)
	if f != nil {
		c.Fail(f, about)
	}
	return f == nil
}

func (testGuard) Report(*api.Call, string) {}
