package gateway

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"exchange/actors"
)

// The scenarios are the specification of the exchange in examples: scripts of what users send and see,
// with the whole output compared. Each file is one exchange from its first start on. Times are shown as T.
//
//	open NAME...                                      accounts with a key each
//	deposit NAME AMOUNT CURRENCY [reference=R]
//	place NAME buy|sell amount=A price=P [pair=X] [id=CLIENT_ORDER_ID]
//	cancel NAME ORDER
//	book [pair=X] [query=Q]     balances NAME     orders NAME [query=Q]     order NAME ID
//	trades [query=Q]            own-trades NAME [query=Q]
//	restart | crash             an orderly stop, or none, and a start on the same store
//	limits NAME=VALUE...        restart with other limits
//
// Run with -rewrite to write the output down anew, and read the difference.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		var change func(*actors.Options)
		h := newHarness(t, func(o *actors.Options) {
			if change != nil {
				change(o)
			}
		})
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s := script{h: h, d: d}
			switch d.Cmd {
			case "open":
				for _, a := range d.CmdArgs {
					h.account(a.Key)
				}
				return "ok"
			case "limits":
				change = s.limits()
				h.stop()
				h.start()
				return "ok"
			case "restart", "crash":
				if d.Cmd == "crash" {
					h.crash()
				} else {
					h.stop()
				}
				h.start()
				return "ok"
			}
			out := s.run()
			if err := h.engine.VerifyAtRest(); err != nil {
				t.Fatalf("%s: after %s: %v", d.Pos, d.Cmd, err)
			}
			return out
		})
	})
}

type script struct {
	h *harness
	d *datadriven.TestData
}

func (s script) arg(i int) string {
	if i >= len(s.d.CmdArgs) {
		s.d.Fatalf(s.h.t.(*testing.T), "argument %d is missing", i+1)
	}
	return s.d.CmdArgs[i].Key
}

func (s script) option(name, unset string) string {
	for _, a := range s.d.CmdArgs {
		if a.Key == name {
			return strings.Join(a.Vals, ",")
		}
	}
	return unset
}

func (s script) query() string {
	if q := s.option("query", ""); q != "" {
		return "?" + q
	}
	return ""
}

func (s script) limits() func(*actors.Options) {
	args := s.d.CmdArgs
	return func(o *actors.Options) {
		for _, a := range args {
			var n int
			fmt.Sscan(a.Vals[0], &n) //nolint:errcheck // a bad number leaves 0, and the script fails
			switch a.Key {
			case "max_fills":
				o.Limits.MaxFills = n
			case "open_orders_per_account":
				o.Limits.OpenOrdersPerAccount = n
			case "open_orders_per_book":
				o.Limits.OpenOrdersPerBook = n
			}
		}
	}
}

func (s script) run() string {
	h := s.h
	switch s.d.Cmd {
	case "deposit":
		a, err := h.deposit(s.arg(0), s.arg(1), s.arg(2), s.option("reference", s.d.Pos))
		switch {
		case err != nil:
			return "error: " + err.Error()
		case a.Repeated:
			return fmt.Sprintf("deposit %d, repeated", a.Deposit)
		}
		return fmt.Sprintf("deposit %d", a.Deposit)
	case "place":
		form := "amount=" + s.option("amount", "1")
		if id := s.option("id", ""); id != "" {
			form += "&client_order_id=" + id
		}
		form += "&pair=" + s.option("pair", "BTC_USDT") + "&price=" + s.option("price", "1") + "&type=" + s.arg(1)
		return show(h.post(s.arg(0), "/api/v1/order/", form))
	case "cancel":
		return show(h.post(s.arg(0), "/api/v1/order-cancel/", "order="+s.arg(1)))
	case "book":
		a := h.do("GET", "/api/v1/orderbook/"+s.option("pair", "BTC_USDT")+"/"+s.query(), "", "")
		out := strings.NewReplacer(`{"sell":[`, "sell: ", `],"buy":[`, "\nbuy:  ", `]}`, "", `},{`, "}\n      {").Replace(show(a))
		return out + "\nX-Update-Id: " + string(a.header.Peek("X-Update-Id"))
	case "balances":
		return show(h.get(s.arg(0), "/api/v1/wallets/"+s.query()))
	case "orders":
		return show(h.get(s.arg(0), "/api/v1/orders/own/"+s.query()))
	case "order":
		return show(h.get(s.arg(0), "/api/v1/order/"+s.arg(1)+"/"))
	case "trades":
		return show(h.do("GET", "/api/v1/exchanges/"+s.query(), "", ""))
	case "own-trades":
		return show(h.get(s.arg(0), "/api/v1/exchanges/own/"+s.query()))
	}
	s.d.Fatalf(h.t.(*testing.T), "unknown command %s", s.d.Cmd)
	return ""
}

var times = regexp.MustCompile(`"(date|timestamp)":[0-9.]+`)

func show(a answer) string {
	return fmt.Sprintf("%d %s", a.status, times.ReplaceAllString(pretty(a.body), `"$1":T`))
}
