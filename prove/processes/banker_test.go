//go:build prove

package processes

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"exchange/actors"
	"exchange/gateway/api"
	"exchange/prove/exchangetest"
)

// A payment is one deposit. Its reference identifies it: the answer may have been lost.
type payment struct {
	reference, account, currency string
	amount                       decimal.Decimal
	outcome                      outcome
	id                           uint64
	late                         bool // it was acknowledged when a backup had begun
}

type depositRow struct {
	ID       uint64          `json:"id"`
	Currency string          `json:"currency"`
	Amount   decimal.Decimal `json:"amount"`
}

// fund deposits while nothing is wrong.
func (w *world) fund(account, currency, amount string) {
	w.t.Helper()
	exchangetest.Eventually(w.t, "account "+account+" gets its money", func() bool {
		_, err := w.pay(account, currency, amount)
		got := w.payments[len(w.payments)-1].outcome
		if err != nil || got != acknowledged && got != refused {
			w.t.Fatalf("account %s gets no money: %v", account, err)
		}
		return got == acknowledged // it may be turned away when the machine is busy
	})
}

// pay deposits once. False: the exchange is gone.
func (w *world) pay(account, currency, amount string) (bool, error) {
	p := &payment{reference: fmt.Sprintf("%s-%d", account, len(w.payments)+1), account: account,
		currency: currency, amount: decimal.RequireFromString(amount)}
	w.payments = append(w.payments, p)
	_, status, err := p.send(w.s, (*exchangetest.Server).Call)
	p.outcome, err = outcomeOf(status, err)
	p.late = w.backingUp != nil && w.backingUp.Load()
	return status != 0, err
}

// payIn deposits a little, for every account in turn.
func (w *world) payIn() (bool, error) {
	account := w.banker.name
	if n := len(w.payments) % (len(w.traders) + 1); n > 0 {
		account = w.traders[n-1].name
	}
	return w.pay(account, "USDT", "0.5")
}

// send requests the deposit, or its outcome, by call: a repeat of the reference is safe.
func (p *payment) send(s *exchangetest.Server, call func(s *exchangetest.Server, method,
	path string, body, answer any) (int, error)) (repeated bool, status int, err error) {
	var answer struct {
		Deposit  uint64
		Repeated bool
	}
	status, err = call(s, "POST", "/operator/v1/deposits",
		map[string]string{"account": p.account, "currency": p.currency, "amount": p.amount.String(),
			"reference": p.reference}, &answer)
	if err == nil {
		if p.outcome == acknowledged && answer.Deposit != p.id {
			return false, status, fmt.Errorf("deposit %s is %d, and was acknowledged as %d",
				p.reference, answer.Deposit, p.id)
		}
		p.id = answer.Deposit
	}
	return answer.Repeated, status, err
}

// comparePayments checks every requested deposit of an account, before any is repeated, because a
// repeat of a lost deposit would make it. Before any read uses a higher nonce, it sends the
// account's newest request once more.
func (w *world) comparePayments(t *trader) error {
	if err := t.refusesTheLast(); err != nil {
		return err
	}
	rows, err := pages(t, "/api/v1/deposits/", 1000, func(r depositRow) uint64 { return r.ID })
	if err != nil {
		return err
	}
	byID, err := once("deposit", rows, func(r depositRow) uint64 { return r.ID })
	if err != nil {
		return err
	}
	var newest *payment
	for _, p := range w.payments {
		if p.account != t.name || p.outcome == refused {
			continue
		}
		acked := p.outcome == acknowledged
		if acked {
			newest = p
			// it may be there or not, and is made now if it was not
		} else if acked, _, err = p.send(w.s, insists); err != nil {
			return err
		}
		row, there := byID[p.id]
		delete(byID, p.id)
		if err := p.compare(row, there, acked); err != nil {
			return err
		}
		p.outcome = acknowledged // now it is known
	}
	if len(byID) > 0 {
		return fmt.Errorf("there are deposits that were refused, or that nobody made: %v", byID)
	}
	if newest != nil {
		if repeated, _, err := newest.send(w.s, insists); err != nil || !repeated {
			return fmt.Errorf("deposit %s is made twice (%v)", newest.reference, err)
		}
	}
	return nil
}

// compare compares the state with the answer: the deposit is there if it was acknowledged, and only
// then.
func (p *payment) compare(row depositRow, there, acked bool) error {
	switch {
	case acked && !there:
		return fmt.Errorf("deposit %s was acknowledged as %d, and is missing", p.reference, p.id)
	case !acked && there:
		return fmt.Errorf("deposit %s was not there when it was asked for, and there is %+v",
			p.reference, row)
	case there && (row.Currency != p.currency || !row.Amount.Equal(p.amount)):
		return fmt.Errorf("deposit %s was of %v %s, there is %+v", p.reference, p.amount,
			p.currency, row)
	}
	return nil
}

// turnedAway reports whether an operator's request certainly had no effect, because no actor has
// received it. The outcome of any other 503 is unknown.
func turnedAway(status int, err error) bool {
	for _, reason := range []string{api.Starting.Detail, actors.ErrStopping.Error(),
		actors.ErrStalled.Error(), actors.ErrBusy.Error(), actors.ErrBehind.Error(),
		actors.ErrPaused.Error(), actors.ErrNotConfirmed.Error()} {
		if status == 503 && strings.Contains(err.Error(), fmt.Sprintf(`{"error":%q}`, reason)) {
			return true
		}
	}
	return false
}

// insists repeats an operator's request while it is turned away, for up to readPatience.
func insists(s *exchangetest.Server, method, path string, body, answer any) (status int,
	err error) {
	for deadline := time.Now().Add(readPatience); ; beOff(status) {
		status, err = s.Call(method, path, body, answer)
		if err == nil || !turnedAway(status, err) || time.Now().After(deadline) {
			return status, err
		}
	}
}

// outcomeOf returns the outcome of an operator's request, by its answer. An error means a wrong
// answer.
func outcomeOf(status int, err error) (outcome, error) {
	switch {
	case err == nil:
		return acknowledged, nil
	case turnedAway(status, err):
		beOff(status)
		return refused, nil
	case status == 0, status == 503:
		return unknown, nil
	}
	return unknown, err
}

// office is the work beside the trading: deposits, withdrawals, keys and freezes.
func (w *world) office() []func() (bool, error) {
	return []func() (bool, error){w.payIn, w.banker.act, w.keeper.act}
}

// done counts the acknowledged requests of the office.
func (w *world) done() uint64 {
	n := w.banker.done + w.keeper.done
	for _, p := range w.payments {
		if p.outcome == acknowledged {
			n++
		}
	}
	return n
}

// A banker is one account with withdrawals, and the operator who decides on them. It sends one
// request after the other, and stores each with its outcome.
type banker struct {
	*trader
	asked []*withdrawal
	done  uint64            // steps that were acknowledged
	lost  map[uint64]string // codes of withdrawals that are lost perhaps: others get their ids
}

// A withdrawal is a requested one. Its address identifies it: the answer may have been lost.
type withdrawal struct {
	address  string
	amount   decimal.Decimal
	outcome  outcome
	id       uint64
	status   int    // newest acknowledged
	possible []int  // further withdrawals, of requests without an outcome
	expired  string // the code that was refused as one of an earlier history
}

type withdrawalRow struct {
	ID      uint64          `json:"id"`
	Amount  decimal.Decimal `json:"amount"`
	Status  int             `json:"status"`
	Address string          `json:"address"`
}

// openBanker needs a running exchange.
func (w *world) openBanker(random *rand.Rand) {
	w.t.Helper()
	w.banker = &banker{trader: w.accountWith("banker", "banker@example.org",
		[]string{"read", "withdraw"}, random)}
	w.fund("banker", "BTC", "50")
}

// act sends one request. False: the exchange is gone.
func (b *banker) act() (bool, error) {
	b.nonce++
	if i := len(b.asked) - 1 - b.rand.IntN(5); i >= 0 && i < len(b.asked) && b.rand.IntN(3) > 0 {
		if d := b.asked[i]; d.outcome == acknowledged && d.id != 0 && len(d.possible) == 0 &&
			d.status < 30 {
			return b.move(d)
		}
	}
	return b.ask()
}

func (b *banker) ask() (bool, error) {
	d := &withdrawal{address: fmt.Sprintf("address-%d", len(b.asked)+1),
		amount: decimal.New(int64(1+b.rand.IntN(100)), -4)}
	b.asked = append(b.asked, d)
	form := fmt.Sprintf("address=%s&amount=%s&currency=BTC", d.address, d.amount)
	status, body, err := b.send("POST", "/api/v1/withdraw/", form, b.nonce)
	switch {
	case err != nil:
		return false, nil
	case status == 201:
		var row withdrawalRow
		if err := json.Unmarshal([]byte(body), &row); err != nil || row.Status != 10 ||
			row.Address != d.address || !row.Amount.Equal(d.amount) {
			return false, fmt.Errorf("a withdrawal of %v to %s is answered with %s", d.amount,
				d.address, body)
		}
		d.outcome, d.id, d.status, d.expired = acknowledged, row.ID, row.Status, b.lost[row.ID]
		b.done++
		b.last = &sentRequest{"/api/v1/withdraw/", form, b.nonce}
	case status == 503 && strings.Contains(body, "outcome_unknown"):
	case status == 503, status == 400 &&
		(strings.Contains(body, "Out of balance") || strings.Contains(body, "pending withdrawals")):
		d.outcome = refused
		beOff(status)
	default:
		return false, fmt.Errorf("a withdrawal is answered with %d %s", status, body)
	}
	return true, nil
}

// move gives a withdrawal its next status, as its owner or as the operator.
func (b *banker) move(d *withdrawal) (bool, error) {
	if d.status == 20 && b.rand.IntN(3) > 0 || d.status == 10 && b.rand.IntN(8) == 0 {
		return b.decide(d)
	}
	to, path, form := 50, "/api/v1/withdraw-cancel/", fmt.Sprintf("withdraw=%d", d.id)
	code := b.s.Mails.Code(d.id)
	if d.status == 10 && code != "" && code != d.expired && b.rand.IntN(4) > 0 {
		to, path, form = 20, "/api/v1/withdraw-confirm/",
			fmt.Sprintf("code=%s&withdraw=%d", code, d.id)
	}
	d.possible = []int{to}
	status, body, err := b.send("POST", path, form, b.nonce)
	switch {
	case err != nil:
		return false, nil
	case status == 200:
		d.status, d.possible = to, nil
		b.done++
		b.last = &sentRequest{path, form, b.nonce}
	case status == 503 && strings.Contains(body, "outcome_unknown"):
	case status == 400 && to == 20 && strings.Contains(body, "Code expired"): // a new one is mailed
		d.possible, d.expired = nil, code
	case status == 503:
		d.possible = nil
		beOff(status)
	default:
		return false, fmt.Errorf("withdraw %d to %d: %d %s", d.id, to, status, body)
	}
	return true, nil
}

// decide acts as the operator. A new withdrawal can only be refused.
func (b *banker) decide(d *withdrawal) (bool, error) {
	to, path, body := 30, "approve", map[string]any{"withdraw": d.id}
	if d.status == 10 || b.rand.IntN(3) == 0 {
		to, path, body = 40, "refuse", map[string]any{"withdraw": d.id, "details": "not today"}
	}
	d.possible = []int{to}
	status, err := b.s.Call("POST", "/operator/v1/withdraws/"+path, body, nil)
	outcome, err := outcomeOf(status, err)
	if err != nil {
		return false, fmt.Errorf("withdraw %d to %d: %w", d.id, to, err)
	}
	switch outcome {
	case acknowledged:
		d.status, d.possible = to, nil
		b.done++
	case refused:
		d.possible = nil
	}
	return status != 0, nil
}

// compare checks every requested withdrawal, and adds the paid sums to paid.
func (b *banker) compare(sums, paid map[string]decimal.Decimal) error {
	rows, err := pages(b.trader, "/api/v1/withdraws/",
		200, func(r withdrawalRow) uint64 { return r.ID })
	if err != nil {
		return err
	}
	byAddress, err := once("withdraw to", rows, func(r withdrawalRow) string { return r.Address })
	if err != nil {
		return err
	}
	reserved := decimal.Zero
	for _, d := range b.asked {
		row, there := byAddress[d.address]
		delete(byAddress, d.address)
		if err := d.compare(row, there); err != nil {
			return err
		}
		if !there {
			d.outcome = refused
			continue
		}
		// now it is known
		d.outcome, d.id, d.status, d.possible = acknowledged, row.ID, row.Status, nil
		switch {
		case row.Status < 30:
			reserved = reserved.Add(row.Amount)
		case row.Status == 30:
			paid["BTC"] = paid["BTC"].Add(row.Amount)
		}
	}
	if len(byAddress) > 0 {
		return fmt.Errorf("there are withdraws that nobody asked for: %v", byAddress)
	}
	var wallet []walletRow
	if err := b.get("/api/v1/wallets/", &wallet); err != nil {
		return err
	}
	for _, h := range wallet {
		sums[h.Currency] = sums[h.Currency].Add(h.Balance)
		if h.Currency == "BTC" && !h.Reserve.Equal(reserved) {
			return fmt.Errorf("%v BTC are reserved, withdrawals hold %v", h.Reserve, reserved)
		}
	}
	return nil
}

func (d *withdrawal) compare(row withdrawalRow, there bool) error {
	switch {
	case d.outcome == refused && there:
		return fmt.Errorf("the withdrawal to %s was refused and is there: %+v", d.address, row)
	case d.outcome == acknowledged && !there:
		return fmt.Errorf("the withdrawal to %s was acknowledged and is not there", d.address)
	case !there:
		return nil
	case !row.Amount.Equal(d.amount) || d.outcome == acknowledged && row.ID != d.id:
		return fmt.Errorf("the withdrawal to %s was of %v with id %d, there is %+v", d.address,
			d.amount, d.id, row)
	}
	if d.outcome == unknown && row.Status == 10 ||
		d.outcome == acknowledged && row.Status == d.status {
		return nil
	}
	for _, status := range d.possible {
		if row.Status == status {
			return nil
		}
	}
	return fmt.Errorf("the withdrawal to %s had status %d, possibly %v, there is %+v", d.address,
		d.status, d.possible, row)
}

// Without this test a broken comparison would never fail.
func TestTheComparisonOfWithdrawalsFindsWhatIsWrong(t *testing.T) {
	amount := decimal.New(1, -2)
	d := withdrawal{address: "a", amount: amount, outcome: acknowledged, id: 1, status: 20,
		possible: []int{30}}
	row := withdrawalRow{ID: 1, Amount: amount, Status: 30, Address: "a"}
	if err := d.compare(row, true); err != nil {
		t.Error(err)
	}
	f := func(what string, change func(d *withdrawal, row *withdrawalRow, there *bool)) {
		t.Helper()
		d, row, there := d, row, true
		change(&d, &row, &there)
		if d.compare(row, there) == nil {
			t.Errorf("%s is not found", what)
		}
	}
	f("a lost one", func(_ *withdrawal, _ *withdrawalRow, there *bool) { *there = false })
	f("a refused one", func(d *withdrawal, _ *withdrawalRow, _ *bool) { d.outcome = refused })
	f("another amount", func(_ *withdrawal, r *withdrawalRow, _ *bool) {
		r.Amount = amount.Add(amount)
	})
	f("a status that nobody asked for", func(_ *withdrawal, r *withdrawalRow, _ *bool) {
		r.Status = 40
	})
	f("a status that went back", func(d *withdrawal, r *withdrawalRow, _ *bool) {
		d.possible, r.Status = nil, 10
	})
}

func TestTheComparisonOfDepositsFindsWhatIsWrong(t *testing.T) {
	p := payment{reference: "a-1", account: "a", currency: "BTC", amount: decimal.New(1, -2), id: 1}
	row := depositRow{ID: 1, Currency: "BTC", Amount: p.amount}
	f := func(row depositRow, there, acked, right bool) {
		t.Helper()
		if err := p.compare(row, there, acked); (err == nil) != right {
			t.Errorf("%+v, there %v, acknowledged %v: %v", row, there, acked, err)
		}
	}
	f(row, true, true, true)
	f(depositRow{}, false, false, true)
	f(depositRow{}, false, true, false)
	f(row, true, false, false)
	f(depositRow{ID: 1, Currency: "USDT", Amount: p.amount}, true, true, false)
	f(depositRow{ID: 1, Currency: "BTC", Amount: p.amount.Add(p.amount)}, true, true, false)
}
