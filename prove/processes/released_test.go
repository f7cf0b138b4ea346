//go:build prove && linux

package processes

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exchange/gateway/sign"
	"exchange/persistence/redistest"
	"exchange/prove/exchangetest"
)

// testdata/released holds a folder for each version of the program: its stores on Pebble and on
// Redis, each with a backup and with the answers before the program was killed. Each later program
// must continue with them. When a version is released, its program writes them:
//
//	EXCHANGE_TEST_PROGRAM=$PWD/bin/exchange go test -tags=prove ./prove/processes \
//		-run TestReleasedStoresAreServed -write-released 0.1.0
const releasedFolder = "testdata/released"

var writeReleased = flag.String("write-released", "", "write the stores of this version")

// A release is an exchange on a store written by some version of the program.
type release struct {
	Keys    map[string]releasedKey
	Answers []releasedAnswer
}

type releasedKey struct{ Key, Secret string }

// A releasedAnswer is the answer to a GET of an account; of "": to anyone.
type releasedAnswer struct {
	Account, Path string
	Body          json.RawMessage
}

func TestReleasedStoresAreServed(t *testing.T) {
	if *writeReleased != "" {
		for _, store := range []string{"pebble", "redis"} {
			t.Run(store, func(t *testing.T) {
				writeRelease(t, store, filepath.Join(releasedFolder, *writeReleased))
			})
		}
		return
	}
	versions, err := os.ReadDir(releasedFolder)
	if err != nil || len(versions) == 0 {
		t.Fatal("there are no stores", err)
	}
	for _, version := range versions {
		for _, store := range []string{"pebble", "redis"} {
			from := unpacked(t, filepath.Join(releasedFolder, version.Name(), store+".tar.gz"))
			t.Run(version.Name()+" "+store, func(t *testing.T) {
				s, _ := releasedServer(t, store, from)
				readRelease(t, from).served(t, s)
			})
			t.Run(version.Name()+" backup of "+store, func(t *testing.T) {
				g := toPebble(t)
				bringKey(t, g.Server, from)
				g.fill(t, filepath.Join(from, "backups"))
				readRelease(t, from).served(t, g.Server)
			})
		}
	}
}

// releasedServer prepares an exchange on a copy of a store; from "": on an empty one. It returns
// the store's folder.
func releasedServer(t *testing.T, store, from string) (s *exchangetest.Server, folder string) {
	t.Helper()
	if store == "pebble" {
		folder = filepath.Join(t.TempDir(), "store")
		s = exchangetest.New(t, "pebble:"+folder)
	} else {
		r := redistest.Start(t)
		folder, s = filepath.Join(r.Dir(), "appendonlydir"), exchangetest.New(t, r.URL())
		if from != "" {
			r.Kill()
			succeeds(t, os.RemoveAll(folder))
			defer r.Restart()
		}
	}
	if from != "" {
		copyInto(t, folder, filepath.Join(from, "store"))
		bringKey(t, s, from)
	}
	return s, folder
}

// bringKey gives an exchange the server's key, readable only by its user.
func bringKey(t *testing.T, s *exchangetest.Server, from string) {
	t.Helper()
	copyInto(t, s.Data(""), filepath.Join(from, "data"))
	succeeds(t, os.Chmod(s.Data("exchange.key"), 0o600))
}

func copyInto(t *testing.T, to, from string) {
	t.Helper()
	succeeds(t, os.CopyFS(to, os.DirFS(from)))
}

// unpacked unpacks an archive into a folder of its own.
func unpacked(t *testing.T, archive string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-xzf", archive, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v %s", archive, err, out)
	}
	return dir
}

func readRelease(t *testing.T, from string) (r *release) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(from, "answers.json"))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil || len(r.Answers) < 10 {
		t.Fatal(err, r)
	}
	return r
}

// traders returns a trader for each key, by account.
func (r *release) traders(s *exchangetest.Server) map[string]*trader {
	all := map[string]*trader{}
	for name, k := range r.Keys {
		all[name] = &trader{s: s, name: name, key: k.Key, secret: sign.New([]byte(k.Secret)),
			nonce: 1_000_000, orders: map[string]*sentOrder{}}
	}
	return all
}

// served starts this program on the store. It must answer as the old one did, and continue: with
// the existing keys, orders and withdrawals, through a kill, and with clean books.
func (r *release) served(t *testing.T, s *exchangetest.Server) {
	s.Env = append(s.Env, patientWithDisks)
	s.Start()
	w := &releaseUsers{t: t, s: s, users: r.traders(s)}
	for _, want := range r.Answers {
		got, err := w.answer(want.Account, want.Path)
		if err != nil {
			t.Errorf("%s %s: %v", want.Account, want.Path, err)
			continue
		}
		var a, b any
		succeeds(t, json.Unmarshal(want.Body, &a), json.Unmarshal(got, &b))
		if where := lost(a, b); where != "" {
			t.Errorf("%s %s: %s is another one in\n%s\nthan in\n%s", want.Account, want.Path,
				where, got, want.Body)
		}
	}
	clean(t, s)
	w.post("alice", "/api/v1/order-cancel/", "client_order_id=rests", 200)
	if body := w.post("alice", "/api/v1/order/", "amount=1&client_order_id=stays&pair=BTC_USDT&"+
		"price=190&type=sell", 400); !strings.Contains(body, "client_order_id") {
		t.Errorf("an id is free that an open order has: %s", body)
	}
	w.post("bob", "/api/v1/order/", "amount=0.5&pair=BTC_USDT&price=130&type=buy", 201)
	w.post("alice", "/api/v1/order/", "amount=8&pair=BTC_USDT&price=70&type=sell", 201)
	w.post("bob", "/api/v1/order/", "amount=0.2&pair=BTC_USDT&price=70&type=buy", 201)
	exchangetest.Eventually(t, "the stop is triggered", func() bool {
		body, err := w.answer("bob", "/api/v1/orders/own/?client_order_id=stop")
		return err == nil && strings.Contains(string(body), `"triggered":true`)
	})
	w.operate("withdraw", "refuse", "2", "--details", "not today")
	w.operate("deposit", "bob", "USDT", "1", "--reference", "of the next program")
	s.Kill()
	s.Start()
	clean(t, s)
}

// lost returns the path at which a value is missing in another one, which may have further fields;
// "": none.
func lost(want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		got, _ := got.(map[string]any)
		for name, v := range want {
			if name == "sequence" { // it advances
				continue
			}
			other, there := got[name]
			if where := lost(v, other); !there || where != "" {
				return name + " " + where
			}
		}
	case []any:
		got, _ := got.([]any)
		if len(got) != len(want) {
			return fmt.Sprintf("%d elements of", len(want))
		}
		for i, v := range want {
			if where := lost(v, got[i]); where != "" {
				return fmt.Sprintf("element %d %s", i, where)
			}
		}
	default:
		if want != got {
			return fmt.Sprintf("%v", want)
		}
	}
	return ""
}

func TestTheComparisonOfReleasedAnswersFindsWhatIsLost(t *testing.T) {
	for _, c := range []struct{ want, got, where string }{
		{`{"a":[1,{"b":"x"}]}`, `{"a":[1,{"b":"x","c":2}],"d":3}`, ""},
		{`{"a":[1,{"b":"x"}]}`, `{"a":[1,{"b":"y"}]}`, "a element 1 b x"},
		{`{"a":[1,2]}`, `{"a":[1]}`, "a 2 elements of"},
		{`[null]`, `[0]`, "element 0 <nil>"},
		{`{"a":null}`, `{}`, "a "},
		{`{"sequence":1}`, `{"sequence":2}`, ""},
	} {
		var want, got any
		succeeds(t, json.Unmarshal([]byte(c.want), &want), json.Unmarshal([]byte(c.got), &got))
		if where := lost(want, got); where != c.where {
			t.Errorf("%s in %s: %q, want %q", c.want, c.got, where, c.where)
		}
	}
}

// releaseUsers are an exchange's clients, by account, and its operator.
type releaseUsers struct {
	t     *testing.T
	s     *exchangetest.Server
	users map[string]*trader
}

func (w *releaseUsers) post(account, path, form string, status int) string {
	w.t.Helper()
	u := w.users[account]
	u.nonce++
	got, body, err := u.send("POST", path, form, u.nonce)
	if err != nil || got != status {
		w.t.Fatalf("%s %s %s: %d %s %v", account, path, form, got, body, err)
	}
	return body
}

func (w *releaseUsers) operate(args ...string) {
	w.t.Helper()
	does(w.t, w.s, args...)
}

// answer requests a path.
func (w *releaseUsers) answer(account, path string) (body json.RawMessage, err error) {
	switch {
	case strings.HasPrefix(path, "/operator/"):
		_, err = w.s.Call("GET", path, nil, &body)
	case account == "":
		var status int
		status, body, err = w.s.Client.Get(nil, "http://"+w.s.Listen+path)
		if err == nil && status != 200 {
			err = fmt.Errorf("status %d", status)
		}
	default:
		err = w.users[account].get(path, &body)
	}
	return body, err
}

// writeRelease lets the program write data of every kind, and packs it.
func writeRelease(t *testing.T, store, to string) {
	s, folder := releasedServer(t, store, "")
	s.Start()
	r := &release{Keys: map[string]releasedKey{}}
	w := &releaseUsers{t: t, s: s}
	for _, name := range []string{"alice", "bob", "carol"} {
		w.operate("account", "create", name, "--email", name+"@example.org")
		var k releasedKey
		ask := map[string]any{"account": name,
			"permissions": []string{"read", "trade", "withdraw"}}
		if name == "bob" {
			ask["parallel"] = 16
		}
		if _, err := s.Call("POST", "/operator/v1/keys", ask, &k); err != nil {
			t.Fatal(err)
		}
		r.Keys[name] = k
		w.operate("deposit", name, "BTC", "20", "--reference", name+"-1")
		w.operate("deposit", name, "USDT", "5000.5", "--reference", name+"-2")
	}
	w.users = r.traders(s)
	for _, u := range w.users {
		u.nonce = 0
	}
	w.operate("fees", "set", "bob", "BTC_USDT", "--maker", "0.0005", "--taker", "0.001")
	w.trades("")
	if code := s.Terminate(); code != 0 { // with a snapshot
		t.Fatal(code)
	}
	s.Start()
	w.trades("-again") // and a journal after it
	w.withdraws()
	w.operate("account", "freeze", "carol")
	dir := t.TempDir()
	succeeds(t, os.MkdirAll(filepath.Join(dir, "backups"), 0o700))
	w.operate("backup", filepath.Join(dir, "backups"))
	for _, path := range []string{"/api/v1/orderbook/BTC_USDT/?depth=50",
		"/api/v1/exchanges/?pair=BTC_USDT", "/operator/v1/account?name=carol",
		"/operator/v1/keys?account=bob"} {
		r.asks(t, w, "", path)
	}
	for _, name := range []string{"alice", "bob"} {
		for _, path := range []string{"/api/v1/wallets/", "/api/v1/orders/own/?pair=BTC_USDT",
			"/api/v1/orders/own/?pair=BTC_USDT&status=1", "/api/v1/exchanges/own/?pair=BTC_USDT",
			"/api/v1/deposits/", "/api/v1/withdraws/"} {
			r.asks(t, w, name, path)
		}
	}
	r.asks(t, w, "alice", "/api/v1/order/1/")
	s.Kill()
	text, err := json.MarshalIndent(r, "", "\t")
	if err == nil {
		err = errors.Join(os.WriteFile(filepath.Join(dir, "answers.json"), text, 0o600),
			os.MkdirAll(to, 0o755))
	}
	succeeds(t, err)
	copyInto(t, filepath.Join(dir, "store"), folder)
	copyInto(t, filepath.Join(dir, "data"), s.Data(""))
	out, err := exec.Command("tar", "-C", dir, "-czf", filepath.Join(to, store+".tar.gz"),
		"answers.json", "backups", "data", "store").CombinedOutput()
	if err != nil {
		t.Fatal(err, string(out))
	}
}

// asks records an answer.
func (r *release) asks(t *testing.T, w *releaseUsers, account, path string) {
	t.Helper()
	body, err := w.answer(account, path)
	if err != nil || body == nil {
		t.Fatal(account, path, string(body), err)
	}
	r.Answers = append(r.Answers, releasedAnswer{account, path, body})
}

// trades places orders of all kinds, whose client order ids end with id.
func (w *releaseUsers) trades(id string) {
	w.t.Helper()
	order := func(account, side, price, amount, more string) {
		w.t.Helper()
		form := strings.Split("amount="+amount+"&pair=BTC_USDT&price="+price+"&type="+side, "&")
		if more != "" {
			form = append(form, strings.Split(more, "&")...)
		}
		slices.Sort(form)
		w.post(account, "/api/v1/order/", strings.Join(form, "&"), 201)
	}
	order("alice", "sell", "100", "1", "client_order_id=sold"+id)
	order("bob", "buy", "100", "0.25", "")
	order("bob", "buy", "101", "0.5", "client_order_id=bought"+id)
	order("alice", "sell", "110.5", "1", "client_order_id=rests"+id)
	order("alice", "sell", "120", "0.5", "client_order_id=stays"+id+"&post_only=1")
	order("alice", "sell", "125", "2", "display_amount=0.5&client_order_id=iceberg"+id)
	order("bob", "buy", "90", "1", "client_order_id=amended"+id)
	w.post("bob", "/api/v1/order-amend/", "amount=0.8&client_order_id=amended"+id, 200)
	order("bob", "sell", "80", "1", "trigger_price=85&client_order_id=stop"+id)
	order("bob", "sell", "150", "0.5", "oco_price=70&oco_trigger_price=75")
	order("carol", "buy", "89", "3", "time_in_force=gtc")
	order("carol", "buy", "88", "1", "client_order_id=cancelled"+id)
	w.post("carol", "/api/v1/order-cancel/", "client_order_id=cancelled"+id, 200)
	order("carol", "buy", "99", "1", "time_in_force=ioc")
}

// withdraws leaves one paid withdrawal and one that waits for the operator.
func (w *releaseUsers) withdraws() {
	w.t.Helper()
	for id := range uint64(2) {
		w.post("alice", "/api/v1/withdraw/", "address=bc1q&amount=0.5&currency=BTC", 201)
		code := ""
		exchangetest.Eventually(w.t, "the code is mailed", func() bool {
			code = w.s.Mails.Code(id + 1)
			return code != ""
		})
		w.post("alice", "/api/v1/withdraw-confirm/",
			fmt.Sprintf("code=%s&withdraw=%d", code, id+1), 200)
	}
	w.operate("withdraw", "approve", "1")
}
