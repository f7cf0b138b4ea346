//go:build prove

package processes

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange/prove/exchangetest"
)

// An exchange has stops whose trigger a trade has reached, an order that expires, and an armed
// switch. It is backed up before any of them is done, and restored when all are overdue. Each then
// happens at the start, once.
func TestWhatIsOverdueInARestoredStoreHappensOnce(t *testing.T) {
	o := &overdue{t: t}
	// On a slow machine the first backup may come too late: then it has less that is to be done.
	backups := ""
	for inTime := false; !inTime; o.seconds *= 2 {
		if o.seconds == 0 {
			o.seconds = 5 // the shortest switch
		}
		if o.seconds > 80 {
			t.Fatal("no backup was made in time")
		}
		if o.s != nil {
			o.s.Kill()
		}
		s := exchangetest.New(t, "pebble:"+t.TempDir())
		s.Env = append(s.Env, "EXCHANGE_LIMITS_TRIGGERS_IN_FLIGHT=1", patientWithDisks)
		o.open(s)
		backups = t.TempDir()
		inTime = o.backsUp(backups)
	}
	o.s.Kill()
	o.restore(backups)
	dueAt := o.dueAt
	exchangetest.Eventually(t, "all is overdue", func() bool { return time.Now().After(dueAt) })
	o.s.Start()
	o.sent(o.ann, 400, "order-cancel", "client_order_id=swept") // its switch has come before
	if row := o.rows()["swept"]; row.Status != 2 {
		t.Errorf("a command is answered, and the order of an earlier switch is %+v", row)
	}
	exchangetest.Eventually(t, "the order that is due expires",
		func() bool { return o.rows()["expires"].Reason == "expired" })
	o.clean()
	o.run("pair", "resume", "BTC_USDT")
	exchangetest.Eventually(t, "the stops are triggered", func() bool { return o.waiting() == 1 })
	o.clean()

	want := o.rows()
	for name, row := range want {
		rests := strings.HasPrefix(name, "stop-") || name == "waits" || name == "stays"
		if rests != (row.Status == 1) || rests && row.Reason != "" {
			t.Errorf("%s is %+v", name, row)
		}
	}
	if row := want["waits"]; row.Triggered == nil || *row.Triggered {
		t.Errorf("a stop whose trigger no trade has reached is %+v", row)
	}
	for _, end := range []func(){o.s.Kill, func() { o.s.Terminate() }} {
		end()
		o.s.Start()
		o.clean()
		if got := o.rows(); !maps.EqualFunc(got, want, sameRow) {
			t.Errorf("after another start the orders are %+v, want %+v", got, want)
		}
	}
	if out := o.run("switch", "list", "--json"); strings.Contains(out, "cancel_at") {
		t.Errorf("a switch is armed again: %s", out)
	}
}

// overdue is an exchange with an account whose orders come due.
type overdue struct {
	t       *testing.T
	s       *exchangetest.Server
	ann     *trader
	seconds int       // from now on they are due
	dueAt   time.Time // all of them
}

// reached is how many stops one trade triggers. One is in flight at a time, and each is durable
// before the next.
const reached = 100

// open starts an exchange with all that is to come due. Its trade has triggered the stops, and the
// pair is halted before all have entered the book.
func (o *overdue) open(s *exchangetest.Server) {
	o.t.Helper()
	o.s = s
	s.Start()
	w := &world{t: o.t, s: s}
	for _, name := range []string{"ann", "bob"} {
		w.must("/operator/v1/accounts", map[string]string{"name": name}, nil)
		w.fund(name, "BTC", "10")
		w.fund(name, "USDT", "1000000")
	}
	o.ann = w.keyOf("ann", []string{"read", "trade"})
	bob := w.keyOf("bob", []string{"read", "trade"})
	o.dueAt = time.Now().Add(time.Duration(o.seconds)*time.Second + time.Second)
	for n := 0; n < reached; {
		var batch []string
		for ; len(batch) < 50 && n < reached; n++ {
			batch = append(batch, fmt.Sprintf(`{"do":"place","pair":"BTC_USDT","type":"buy",`+
				`"amount":"0.001","price":"90","trigger_price":"101",`+
				`"client_order_id":"stop-%d"}`, n))
		}
		o.sent(o.ann, 200, "order-batch",
			"orders="+url.QueryEscape("["+strings.Join(batch, ",")+"]"))
	}
	place := func(by *trader, form string) { o.sent(by, 201, "order", form) }
	place(o.ann, "amount=1&client_order_id=waits&pair=BTC_USDT&price=300&trigger_price=200&"+
		"type=buy")
	place(o.ann, "amount=1&client_order_id=stays&pair=BTC_USDT&price=150&type=sell")
	place(o.ann, "amount=1&client_order_id=swept&pair=BTC_USDT&price=150&type=sell")
	place(o.ann, fmt.Sprintf("amount=1&client_order_id=expires&expire_time=%d&pair=BTC_USDT&"+
		"price=150&time_in_force=gtd&type=sell", time.Now().Unix()+int64(o.seconds)))
	o.sent(o.ann, 200, "order-cancel-after",
		fmt.Sprintf("client_order_id_prefix=swept&timeout=%d", o.seconds))
	place(bob, "amount=1&pair=BTC_USDT&price=101&type=sell")
	place(bob, "amount=1&pair=BTC_USDT&price=101&type=buy")
	w.must("/operator/v1/pairs/halt", map[string]any{"pair": "BTC_USDT", "on": true}, nil)
}

// backsUp reports whether a backup was made while everything was still to be done.
func (o *overdue) backsUp(folder string) bool {
	o.t.Helper()
	o.run("backup", folder)
	n, rows := o.waiting(), o.rows()
	o.clean()
	o.t.Logf("with %d seconds, %d orders wait", o.seconds, n)
	return n > 1 && rows["expires"].Status == 1 && rows["swept"].Status == 1
}

// restore restores the newest backup into an empty store, which a server is to serve.
func (o *overdue) restore(backups string) {
	o.t.Helper()
	g := toPebble(o.t)
	g.Env = append(g.Env, patientWithDisks)
	g.bring(o.t, o.s)
	g.fill(o.t, backups)
	o.s, o.ann.s = g.Server, g.Server
}

// run runs a command of the operator, and returns its output.
func (o *overdue) run(args ...string) string {
	o.t.Helper()
	return (&world{t: o.t, s: o.s}).run(0, "", args...)
}

// clean wants the audit by the operator's command to find nothing.
func (o *overdue) clean() {
	o.t.Helper()
	if out := o.run("audit"); !strings.Contains(out, "The books balance") {
		o.t.Fatalf("the audit says\n%s", out)
	}
}

// sent sends a command of a client, and wants a status.
func (o *overdue) sent(by *trader, want int, path, form string) {
	o.t.Helper()
	by.nonce++
	status, body, err := by.send("POST", "/api/v1/"+path+"/", form, by.nonce)
	if err != nil || status != want || strings.Contains(body, `"status":4`) {
		o.t.Fatalf("%s %s: %d %s, %v", path, form, status, body, err)
	}
}

type overdueRow struct {
	orderRow
	Reason    string `json:"cancel_reason"`
	Triggered *bool  `json:"triggered"`
}

// rows returns the account's orders by their client order ids.
func (o *overdue) rows() map[string]overdueRow {
	o.t.Helper()
	var list []overdueRow
	if err := o.ann.get("/api/v1/orders/own/", &list); err != nil {
		o.t.Fatal(err)
	}
	rows := map[string]overdueRow{}
	for _, row := range list {
		rows[row.ClientID] = row
	}
	if len(rows) != len(list) || len(rows) != reached+4 {
		o.t.Fatalf("there are %d orders with %d names: %v", len(list), len(rows),
			slices.Sorted(maps.Keys(rows)))
	}
	return rows
}

// waiting returns how many orders wait for their trigger.
func (o *overdue) waiting() (n int) {
	o.t.Helper()
	for _, row := range o.rows() {
		if row.Triggered != nil && !*row.Triggered {
			n++
		}
	}
	return n
}

func sameRow(a, b overdueRow) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
