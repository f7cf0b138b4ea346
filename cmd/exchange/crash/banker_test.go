package crash

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shopspring/decimal"

	"exchange/actors/seal"
)

// A banker is one account that withdraws, and the operator who decides on it: one request after the other,
// each remembered with its outcome.
type banker struct {
	*trader
	codes *seal.Sealer // what the mails would say
	asked []*withdrawal
}

// A withdrawal is one that was asked for. Its address names it: the answer may have been lost.
type withdrawal struct {
	address  string
	amount   decimal.Decimal
	outcome  outcome
	id       uint64
	status   int   // newest acknowledged
	possible []int // further ones, of requests without an outcome
}

type withdrawRow struct {
	ID      uint64          `json:"id"`
	Amount  decimal.Decimal `json:"amount"`
	Status  int             `json:"status"`
	Address string          `json:"address"`
}

// openBanker needs a running exchange whose secret key is in its data folder.
func (w *world) openBanker(random *rand.Rand) {
	w.t.Helper()
	codes, err := seal.Load("", w.s.Data("exchange.key"), false)
	if err != nil {
		w.t.Fatal(err)
	}
	w.banker = &banker{trader: w.accountWith("banker", "banker@example.org", []string{"read", "withdraw"}, random), codes: codes}
	w.pay("banker", "BTC", "50")
}

// act sends one request. False: the exchange is gone.
func (b *banker) act() (bool, error) {
	b.nonce++
	if i := len(b.asked) - 1 - b.rand.IntN(5); i >= 0 && i < len(b.asked) && b.rand.IntN(3) > 0 {
		if d := b.asked[i]; d.outcome == acknowledged && d.id != 0 && len(d.possible) == 0 && d.status < 30 {
			return b.move(d)
		}
	}
	return b.ask()
}

func (b *banker) ask() (bool, error) {
	d := &withdrawal{address: fmt.Sprintf("address-%d", len(b.asked)+1), amount: decimal.New(int64(1+b.rand.IntN(100)), -4)}
	b.asked = append(b.asked, d)
	status, body, err := b.send("POST", "/api/v1/withdraw/", fmt.Sprintf("address=%s&amount=%s&currency=BTC", d.address, d.amount), b.nonce)
	switch {
	case err != nil:
		return false, nil
	case status == 201:
		var row withdrawRow
		if err := json.Unmarshal([]byte(body), &row); err != nil || row.Status != 10 || row.Address != d.address || !row.Amount.Equal(d.amount) {
			return false, fmt.Errorf("a withdraw of %v to %s is answered with %s", d.amount, d.address, body)
		}
		d.outcome, d.id, d.status = acknowledged, row.ID, row.Status
	case status == 503 && strings.Contains(body, "outcome_unknown"):
	case status == 503, status == 400 && (strings.Contains(body, "Out of balance") || strings.Contains(body, "pending withdraws")):
		d.outcome = refused
		b.beOff(status)
	default:
		return false, fmt.Errorf("a withdraw is answered with %d %s", status, body)
	}
	return true, nil
}

// move gives a withdraw its next status, as its owner or as the operator.
func (b *banker) move(d *withdrawal) (bool, error) {
	if d.status == 20 && b.rand.IntN(3) > 0 {
		return b.decide(d)
	}
	to, path, form := 50, "/api/v1/withdraw-cancel/", fmt.Sprintf("withdraw=%d", d.id)
	if d.status == 10 && b.rand.IntN(4) > 0 {
		to, path, form = 20, "/api/v1/withdraw-confirm/", fmt.Sprintf("code=%s&withdraw=%d", b.codes.Code(d.id, 1), d.id)
	}
	d.possible = []int{to}
	status, body, err := b.send("POST", path, form, b.nonce)
	switch {
	case err != nil:
		return false, nil
	case status == 200:
		d.status, d.possible = to, nil
	case status == 503 && strings.Contains(body, "outcome_unknown"):
	case status == 503:
		d.possible = nil
		b.beOff(status)
	default:
		return false, fmt.Errorf("withdraw %d to %d: %d %s", d.id, to, status, body)
	}
	return true, nil
}

// decide is the operator's part.
func (b *banker) decide(d *withdrawal) (bool, error) {
	to, path, body := 30, "approve", map[string]any{"withdraw": d.id}
	if b.rand.IntN(3) == 0 {
		to, path, body = 40, "refuse", map[string]any{"withdraw": d.id, "details": "not today"}
	}
	d.possible = []int{to}
	status, err := b.s.Call("POST", "/operator/v1/withdraws/"+path, body, nil)
	switch {
	case status == 200 && err == nil:
		d.status, d.possible = to, nil
	case status == 0:
		return false, nil
	case status != 503:
		return false, fmt.Errorf("withdraw %d to %d: %w", d.id, to, err)
	}
	return true, nil // after a 503 it may be decided or not
}

// compare looks at every withdraw that was ever asked for. It adds what was paid out to paid.
func (b *banker) compare(sums, paid map[string]decimal.Decimal) error {
	rows, err := pages(b.trader, "/api/v1/withdraws/", 200, func(r withdrawRow) uint64 { return r.ID })
	if err != nil {
		return err
	}
	byAddress := map[string]withdrawRow{}
	for _, r := range rows {
		if _, twice := byAddress[r.Address]; twice {
			return fmt.Errorf("the withdraw to %s is there twice", r.Address)
		}
		byAddress[r.Address] = r
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
		d.outcome, d.id, d.status, d.possible = acknowledged, row.ID, row.Status, nil // now it is known
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
			return fmt.Errorf("%v BTC are reserved, pending withdraws hold %v", h.Reserve, reserved)
		}
	}
	return nil
}

func (d *withdrawal) compare(row withdrawRow, there bool) error {
	switch {
	case d.outcome == refused && there:
		return fmt.Errorf("the withdraw to %s was refused and is there: %+v", d.address, row)
	case d.outcome == acknowledged && !there:
		return fmt.Errorf("the withdraw to %s was acknowledged and is not there", d.address)
	case !there:
		return nil
	case !row.Amount.Equal(d.amount) || d.outcome == acknowledged && row.ID != d.id:
		return fmt.Errorf("the withdraw to %s was of %v with id %d, there is %+v", d.address, d.amount, d.id, row)
	}
	if d.outcome == unknown && row.Status == 10 || d.outcome == acknowledged && row.Status == d.status {
		return nil
	}
	for _, status := range d.possible {
		if row.Status == status {
			return nil
		}
	}
	return fmt.Errorf("the withdraw to %s had status %d, possibly %v, there is %+v", d.address, d.status, d.possible, row)
}

// A wrong comparison would never fail.
func TestTheComparisonOfWithdrawsFindsWhatIsWrong(t *testing.T) {
	amount := decimal.New(1, -2)
	d := withdrawal{address: "a", amount: amount, outcome: acknowledged, id: 1, status: 20, possible: []int{30}}
	row := withdrawRow{ID: 1, Amount: amount, Status: 30, Address: "a"}
	if err := d.compare(row, true); err != nil {
		t.Error(err)
	}
	f := func(what string, change func(d *withdrawal, row *withdrawRow, there *bool)) {
		t.Helper()
		d, row, there := d, row, true
		change(&d, &row, &there)
		if d.compare(row, there) == nil {
			t.Errorf("%s is not found", what)
		}
	}
	f("a lost one", func(_ *withdrawal, _ *withdrawRow, there *bool) { *there = false })
	f("a refused one", func(d *withdrawal, _ *withdrawRow, _ *bool) { d.outcome = refused })
	f("another amount", func(_ *withdrawal, r *withdrawRow, _ *bool) { r.Amount = amount.Add(amount) })
	f("a status that nobody asked for", func(_ *withdrawal, r *withdrawRow, _ *bool) { r.Status = 40 })
	f("a status that went back", func(d *withdrawal, r *withdrawRow, _ *bool) { d.possible, r.Status = nil, 10 })
}
