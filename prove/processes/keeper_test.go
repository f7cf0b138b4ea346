//go:build prove

package processes

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"exchange/gateway/sign"
	"exchange/prove/exchangetest"
)

// A keeper is one account whose keys the operator creates and revokes, and which is frozen and
// unfrozen. It sends one request after the other, and stores each with its outcome. The account has
// no money: requests of its keys are refused, and use nonces.
type keeper struct {
	s        *exchangetest.Server
	name     string
	rand     *rand.Rand
	keys     []*madeKey
	frozen   bool // as was acknowledged last
	freezing bool // or the opposite: it was asked for, without an outcome
	done     uint64
}

// A madeKey is a requested key. An address of its allow-list identifies it, because the answer may
// have been lost, and the secret with it.
type madeKey struct {
	*trader     // nil: its secret is not known
	public      string
	address     string
	permissions []string
	outcome     outcome
	revoked     bool
	revoking    bool // it was asked for, without an outcome
}

type keyRow struct {
	Key         string
	Permissions []string
	Allow       []string
	Revoked     bool
}

func (w *world) openKeeper(random *rand.Rand) {
	w.t.Helper()
	w.keeper = &keeper{s: w.s, name: "keeper", rand: rand.New(rand.NewPCG(random.Uint64(), 0))}
	w.must("/operator/v1/accounts", map[string]string{"name": w.keeper.name}, nil)
}

// act sends one request. False: the exchange is gone.
func (k *keeper) act() (bool, error) {
	var live, known []*madeKey
	for _, m := range k.keys {
		if m.trader == nil {
			continue
		}
		if known = append(known, m); !m.revoked && !m.revoking {
			live = append(live, m)
		}
	}
	switch n := k.rand.IntN(10); {
	case len(live) == 0, n == 0 && len(live) < 5:
		return k.makeKey()
	case n == 1:
		return k.revoke(live[k.rand.IntN(len(live))])
	case n == 2 && !k.freezing:
		return k.freeze(!k.frozen)
	}
	known = known[max(0, len(known)-8):]
	return k.use(known[k.rand.IntN(len(known))])
}

func (k *keeper) makeKey() (bool, error) {
	n := len(k.keys) + 1
	m := &madeKey{address: fmt.Sprintf("10.%d.%d.%d/32", n>>16, n>>8&255, n&255),
		permissions: []string{"read", "trade"}}
	if k.rand.IntN(2) == 0 {
		m.permissions = append(m.permissions, "withdraw")
	}
	k.keys = append(k.keys, m)
	var answer struct{ Key, Secret string }
	status, err := k.s.Call("POST", "/operator/v1/keys",
		map[string]any{"account": k.name, "permissions": m.permissions,
			"allow": []string{"127.0.0.1/32", m.address}}, &answer)
	if m.outcome, err = outcomeOf(status, err); m.outcome == acknowledged {
		m.public, m.trader = answer.Key,
			&trader{s: k.s, name: k.name, key: answer.Key, secret: sign.New([]byte(answer.Secret))}
		k.done++
	}
	return status != 0, err
}

func (k *keeper) revoke(m *madeKey) (bool, error) {
	return k.operate("/operator/v1/keys/revoke", map[string]any{"key": m.public},
		func() { m.revoked = true }, func() { m.revoking = true })
}

func (k *keeper) freeze(on bool) (bool, error) {
	return k.operate("/operator/v1/accounts/freeze", map[string]any{"account": k.name, "on": on},
		func() { k.frozen = on }, func() { k.freezing = true })
}

// operate sends an operator's request. It calls done if the request is carried out, and open if the
// outcome is unknown.
func (k *keeper) operate(path string, body any, done, open func()) (bool, error) {
	status, err := k.s.Call("POST", path, body, nil)
	outcome, err := outcomeOf(status, err)
	switch outcome {
	case acknowledged:
		done()
		k.done++
	case unknown:
		open()
	}
	return status != 0, err
}

// use sends a request that the key signs, live or not.
func (k *keeper) use(m *madeKey) (bool, error) {
	method, path, form := "POST", "/api/v1/order/", "amount=1&pair=BTC_USDT&price=100&type=buy"
	if k.rand.IntN(3) == 0 {
		method, path, form = "GET", "/api/v1/wallets/", ""
	}
	m.s = k.s
	m.nonce++
	status, body, err := m.send(method, path, form, m.nonce)
	switch {
	case err != nil:
		return false, nil
	case status == 503:
		beOff(status)
	case !k.mayAnswer(m, status, body):
		return false,
			fmt.Errorf("%s %s with %v is answered with %d %s; frozen %v, or being changed %v",
				method, path, m, status, body, k.frozen, k.freezing)
	case status == 400:
		m.last = &sentRequest{path, form, m.nonce}
		k.done++
	}
	return true, nil
}

// mayAnswer reports whether a key's request may be answered so, by the changes of key and freeze
// acknowledged before it was sent.
func (k *keeper) mayAnswer(m *madeKey, status int, body string) bool {
	switch {
	case status == 401 && strings.Contains(body, "Incorrect authentication credentials"):
		return m.revoked || m.revoking
	case m.revoked:
		return false
	case status == 403 && strings.Contains(body, "The account is frozen"):
		return k.frozen || k.freezing
	case status == 200, status == 400 && strings.Contains(body, "Out of balance"):
		return !k.frozen || k.freezing
	}
	return false
}

func (m *madeKey) String() string {
	return fmt.Sprintf("key %s for %s (revoked %v, or being revoked %v)", m.public, m.address,
		m.revoked, m.revoking)
}

// compare checks the freeze and every requested key, and tries each key with a known secret. In the
// end the account is not frozen.
func (k *keeper) compare() error {
	var account struct{ Frozen bool }
	if _, err := insists(k.s, "GET", "/operator/v1/account?name="+k.name, nil,
		&account); err != nil {
		return err
	}
	if account.Frozen != k.frozen && !k.freezing {
		return fmt.Errorf("frozen is %v, and %v was acknowledged", account.Frozen, k.frozen)
	}
	k.frozen, k.freezing = account.Frozen, false
	if err := k.compareKeys(); err != nil {
		return err
	}
	if err := k.tryKeys(); err != nil || !k.frozen {
		return err
	}
	if _, err := insists(k.s, "POST", "/operator/v1/accounts/freeze",
		map[string]any{"account": k.name, "on": false}, nil); err != nil {
		return err
	}
	k.frozen = false
	return k.tryKeys()
}

func (k *keeper) compareKeys() error {
	var list struct{ Keys []keyRow }
	if _, err := insists(k.s, "GET", "/operator/v1/keys?account="+k.name, nil,
		&list); err != nil {
		return err
	}
	// Only the name is left of a revoked key, and its name was received before.
	addresses := map[string]string{}
	for _, m := range k.keys {
		addresses[m.public] = m.address
	}
	byAddress, err := once("key for", list.Keys, func(r keyRow) string {
		if r.Revoked {
			return addresses[r.Key]
		}
		return r.Allow[len(r.Allow)-1]
	})
	if err != nil {
		return err
	}
	for _, m := range k.keys {
		row, there := byAddress[m.address]
		delete(byAddress, m.address)
		if err := m.compare(row, there); err != nil {
			return err
		}
		if !there {
			m.outcome = refused
			continue
		}
		// now it is known
		m.outcome, m.public, m.revoked, m.revoking = acknowledged, row.Key, row.Revoked, false
		if m.trader == nil && !m.revoked {
			if _, err := insists(k.s, "POST", "/operator/v1/keys/revoke",
				map[string]string{"key": m.public}, nil); err != nil {
				return err
			}
			m.revoked = true // no client can use it
		}
	}
	if len(byAddress) > 0 {
		return fmt.Errorf("there are keys that nobody made: %v", byAddress)
	}
	return nil
}

func (m *madeKey) compare(row keyRow, there bool) error {
	switch {
	case m.outcome == refused && there:
		return fmt.Errorf("%v was refused and is there: %+v", m, row)
	case m.outcome == acknowledged && !there:
		return fmt.Errorf("%v was acknowledged and is not there", m)
	case !there:
		return nil
	case !row.Revoked && !slices.Equal(row.Permissions, m.permissions) ||
		row.Revoked && len(row.Permissions)+len(row.Allow) > 0 ||
		m.outcome == acknowledged && row.Key != m.public:
		return fmt.Errorf("%v was to have the permissions %v, there is %+v", m, m.permissions, row)
	case row.Revoked != m.revoked && !m.revoking:
		return fmt.Errorf("of %v there is %+v", m, row)
	}
	return nil
}

// tryKeys signs with each key. A used nonce is refused.
func (k *keeper) tryKeys() error {
	for _, m := range k.keys {
		if m.trader == nil {
			continue
		}
		m.s = k.s
		read := func(nonce func() uint64) (int, string, error) {
			return m.patient(http.MethodGet, "/api/v1/wallets/", "", nonce)
		}
		status, body, err := read(func() uint64 { m.nonce++; return m.nonce })
		if err != nil || !k.mayAnswer(m, status, body) {
			return fmt.Errorf("%v: a read is answered with %d %s (%v); frozen %v", m, status, body,
				err, k.frozen)
		}
		if status != 200 {
			continue
		}
		status, body, err = read(func() uint64 { return m.nonce })
		if err != nil || status != 401 ||
			body != fmt.Sprintf(`{"detail":"Wrong Nonce","code":"nonce","last":%d}`, m.nonce) {
			return fmt.Errorf("%v: the same read is answered with %d %s (%v)", m, status, body, err)
		}
		if err := m.refusesTheLast(); err != nil {
			return fmt.Errorf("%v: %w", m, err)
		}
	}
	return nil
}

// Without this test a broken comparison would never fail.
func TestTheComparisonOfKeysFindsWhatIsWrong(t *testing.T) {
	key := madeKey{public: "a", address: "10.0.0.1/32", permissions: []string{"read"},
		outcome: acknowledged}
	row := keyRow{Key: "a", Permissions: []string{"read"}}
	f := func(what string, right bool, change func(m *madeKey, row *keyRow, there *bool)) {
		t.Helper()
		m, row, there := key, row, true
		change(&m, &row, &there)
		if err := m.compare(row, there); (err == nil) != right {
			t.Errorf("%s: %v", what, err)
		}
	}
	f("the same", true, func(*madeKey, *keyRow, *bool) {})
	f("one without an outcome that is there",
		true, func(m *madeKey, _ *keyRow, _ *bool) { m.outcome, m.public = unknown, "" })
	f("one without an outcome that is not there",
		true, func(m *madeKey, _ *keyRow, there *bool) { m.outcome, *there = unknown, false })
	f("one that may be revoked, and is", true,
		func(m *madeKey, r *keyRow, _ *bool) {
			m.revoking, r.Revoked, r.Permissions = true, true, nil
		})
	f("one that is revoked and has permissions", false,
		func(m *madeKey, r *keyRow, _ *bool) { m.revoked, r.Revoked = true, true })
	f("a lost one", false, func(_ *madeKey, _ *keyRow, there *bool) { *there = false })
	f("a refused one", false, func(m *madeKey, _ *keyRow, _ *bool) { m.outcome = refused })
	f("another key", false, func(_ *madeKey, r *keyRow, _ *bool) { r.Key = "b" })
	f("other permissions", false, func(_ *madeKey, r *keyRow, _ *bool) {
		r.Permissions = []string{"read", "withdraw"}
	})
	f("revoked by nobody", false, func(_ *madeKey, r *keyRow, _ *bool) { r.Revoked = true })
	f("a lost revocation", false, func(m *madeKey, _ *keyRow, _ *bool) { m.revoked = true })
}

func TestAKeysAnswersFollowFromTheAcknowledgedChanges(t *testing.T) {
	const (
		bad    = `401 {"detail":"Incorrect authentication credentials."}`
		barred = `403 {"detail":"The account is frozen."}`
		short  = `400 {"error":"Out of balance - 100 USDT"}`
		list   = `200 []`
		others = `401 {"detail":"Wrong Nonce"}; 201 {"success":true}`
	)
	for _, c := range []struct {
		what  string
		k     keeper
		m     madeKey
		right []string
	}{
		{"live", keeper{}, madeKey{}, []string{list, short}},
		{"revoked", keeper{}, madeKey{revoked: true}, []string{bad}},
		{"being revoked", keeper{}, madeKey{revoking: true}, []string{list, short, bad}},
		{"frozen", keeper{frozen: true}, madeKey{}, []string{barred}},
		{"being frozen", keeper{freezing: true}, madeKey{}, []string{list, short, barred}},
		{"being unfrozen", keeper{frozen: true, freezing: true}, madeKey{},
			[]string{list, short, barred}},
		{"revoked of a frozen account", keeper{frozen: true}, madeKey{revoked: true},
			[]string{bad}},
	} {
		for _, a := range append(strings.Split(others, "; "), bad, barred, short, list) {
			code, body, _ := strings.Cut(a, " ")
			status, _ := strconv.Atoi(code)
			if got := c.k.mayAnswer(&c.m, status, body); got != slices.Contains(c.right, a) {
				t.Errorf("%s: %s: %v", c.what, a, got)
			}
		}
	}
}
