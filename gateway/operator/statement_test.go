package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/persistence"
	"exchange/prove/harness"
)

// A partial is a store whose lists end after a number of rows, or fail there.
type partial struct {
	persistence.Store
	trades, deposits, withdrawals int // rows that are there
	err                           error
}

// some gives n rows of a list to fn.
func some[T any](n int, end error, fn func(*T) bool, list func(func(*T) bool) error) error {
	ended := false
	err := list(func(row *T) bool {
		if n--; n < 0 {
			ended = true
			return false
		}
		return fn(row)
	})
	if ended {
		return end
	}
	return err
}

func (p *partial) Trades(ctx context.Context, q persistence.TradeQuery,
	fn func(*persistence.Trade) bool) error {
	return some(p.trades, p.err, fn, func(fn func(*persistence.Trade) bool) error {
		return p.Store.Trades(ctx, q, fn)
	})
}

func (p *partial) Deposits(ctx context.Context, q persistence.DepositQuery,
	fn func(*persistence.Deposit) bool) error {
	return some(p.deposits, p.err,
		fn, func(fn func(*persistence.Deposit) bool) error { return p.Store.Deposits(ctx, q, fn) })
}

func (p *partial) Withdrawals(ctx context.Context, q persistence.WithdrawalQuery,
	fn func(*persistence.Withdrawal) bool) error {
	return some(p.withdrawals, p.err,
		fn, func(fn func(*persistence.Withdrawal) bool) error {
			return p.Store.Withdrawals(ctx, q, fn)
		})
}

// withPartial is withFees on a store that may end early. Bob has also withdrawn 10 and then 20
// USDT.
func withPartial(t *testing.T) (*harness.Exchange, *partial) {
	p := &partial{trades: 100, deposits: 100, withdrawals: 100}
	h := withFees(t)
	h.Stop()
	open := h.Open
	h.Open = func() persistence.Store {
		p.Store = open()
		return p
	}
	h.Start()
	for i, amount := range []string{"10", "20"} {
		id := uint64(i + 1)
		h.Post("bob", "/api/v1/withdraw", "address=somewhere&amount="+amount+"&currency=USDT")
		h.Post("bob", "/api/v1/withdraw-confirm",
			"code="+h.Code(id)+"&withdraw="+string(rune('0'+id)))
		c, err := h.Engine.SetWithdrawalStatus("test", id, event.WithdrawalApproved, "")
		if err != nil || c.Outcome() != actors.Accepted {
			t.Fatalf("withdraw %d: %v", id, err)
		}
		c.Free()
	}
	return h, p
}

var bobs = []string{
	"USDT -20 670 withdraw", "USDT -10 690 withdraw",
	"BTC -0.002 2.994 fee", "BTC 1 2.996 trade", "USDT -100 700 trade",
	"BTC -0.002 1.996 fee", "BTC 1 1.998 trade", "USDT -100 800 trade",
	"BTC -0.002 0.998 fee", "BTC 1 1 trade", "USDT -100 900 trade",
	"USDT 1000 1000 deposit",
}

// If trades are missing from the history, their effect is brought forward, with any number kept
// now. The earlier number may have differed, and trades may be trimmed while they are read.
func TestAStatementOfSomeOfTheTradesIsBroughtForward(t *testing.T) {
	h, p := withPartial(t)
	ask := harness.AsOperator(t, h.Gateway)
	f := func(account string, trades int, want ...string) {
		t.Helper()
		p.trades = trades
		if got := statementOf(t, ask, account); got != strings.Join(want, "\n")+"\n" {
			t.Errorf("%s with %d trades:\n%swant\n%s", account, trades, got,
				strings.Join(want, "\n"))
		}
	}
	f("bob", 3, bobs...)
	f("alice", 3, "USDT -0.1 299.7 fee", "BTC -1 7 trade", "USDT 100 299.8 trade",
		"USDT -0.1 199.8 fee", "BTC -1 8 trade", "USDT 100 199.9 trade", "USDT -0.1 99.9 fee",
		"BTC -1 9 trade", "USDT 100 100 trade", "BTC 10 10 deposit")
	f("alice&currency=BTC", 3, "BTC -1 7 trade", "BTC -1 8 trade", "BTC -1 9 trade",
		"BTC 10 10 deposit")
	f(directory.FeeAccount, 3, "BTC 0.002 0.006 fee income", "USDT 0.1 0.3 fee income",
		"BTC 0.002 0.004 fee income", "USDT 0.1 0.2 fee income", "BTC 0.002 0.002 fee income",
		"USDT 0.1 0.1 fee income")
	harness.Says(t, "no currency",
		ask("GET", "/operator/v1/statement?account=alice&currency=XXX", ""),
		400, harness.Refusal(`there is no currency "XXX"`))
	f("bob", 2, append(slices.Clone(bobs[:8]), "BTC 0.998 0.998 brought forward",
		"USDT 900 900 brought forward")...)
	f("bob", 1, append(slices.Clone(bobs[:5]), "BTC 1.996 1.996 brought forward",
		"USDT 800 800 brought forward")...)
	// Without any trade the times of the withdrawals cannot be derived.
	f("bob", 0, "BTC 2.994 2.994 brought forward", "USDT 670 670 brought forward")
	f(directory.FeeAccount, 1, "BTC 0.002 0.006 fee income", "USDT 0.1 0.3 fee income",
		"BTC 0.004 0.004 brought forward", "USDT 0.2 0.2 brought forward")
}

// An account that trades with itself has each such trade once.
func TestAStatementOfTradesWithOneself(t *testing.T) {
	h := withFees(t)
	h.Post("bob", "/api/v1/order/", harness.Order("sell", "BTC_USDT", "1", "100"))
	h.Post("bob", "/api/v1/order/", harness.Order("buy", "BTC_USDT", "1", "100"))
	want := append([]string{"BTC -0.002 2.992 fee", "USDT -0.1 699.9 fee"}, bobs[2:]...)
	got := statementOf(t, harness.AsOperator(t, h.Gateway), "bob")
	if got != strings.Join(want, "\n")+"\n" {
		t.Errorf("got\n%swant\n%s", got, strings.Join(want, "\n"))
	}
}

// A store that fails in the middle of a statement is not a damaged one.
func TestStatementReportsUnavailableStore(t *testing.T) {
	h, p := withPartial(t)
	ask := harness.AsOperator(t, h.Gateway)
	whole := *p
	ends := func(what, want string, damaged bool) {
		t.Helper()
		a := ask("GET", "/operator/v1/statement?account=bob", "")
		list := strings.Split(strings.TrimSpace(a.Body), "\n")
		type errorLine struct {
			Error   string
			Damaged bool
		}
		var last errorLine
		if err := json.Unmarshal([]byte(list[len(list)-1]), &last); err != nil ||
			last != (errorLine{want, damaged}) || strings.Contains(a.Body, "brought forward") {
			t.Errorf("%s: %v\n%s", what, err, a.Body)
		}
	}
	f := func(what string, trades, deposits, withdrawals int) {
		t.Helper()
		p.trades, p.deposits, p.withdrawals, p.err = trades, deposits, withdrawals,
			errors.New("the store does not answer")
		ends(what, p.err.Error(), false)
		p.trades, p.deposits, p.withdrawals, p.err = whole.trades, whole.deposits,
			whole.withdrawals,
			nil
	}
	f("no trade", 0, 100, 100)
	f("one trade", 1, 100, 100)
	f("two trades", 2, 100, 100)
	f("no deposit", 100, 0, 100)
	f("no withdrawal", 100, 100, 0)
	f("one withdrawal", 100, 100, 1)

	p.deposits = 0
	ends("a deposit that is gone",
		"the history does not add up: every change is there, and 1000 USDT are left that none of "+
			"them explains", true)
	p.deposits, p.withdrawals = 100, 1
	ends("a withdrawal that is gone",
		"the history does not add up: at "+depositTime(t, h)+
			" deposit 2 credits 1000 USDT, and there are 990 after it", true)
}

// depositTime is that of bob's deposit.
func depositTime(t *testing.T, h *harness.Exchange) (at string) {
	t.Helper()
	err := h.Store.Deposits(context.Background(),
		persistence.DepositQuery{Account: 3}, func(d *persistence.Deposit) bool {
			at = time.UnixMicro(d.TimeUs).UTC().Format("2006-01-02T15:04:05.000000Z")
			return true
		})
	if err != nil || at == "" {
		t.Fatalf("%q, %v", at, err)
	}
	return at
}
