package actors

import (
	"context"
	"fmt"
	"slices"

	"exchange/core/money"
	"exchange/persistence"
)

// A deposited is what a replayed record says of its deposit.
type deposited struct {
	account uint32
	sum     uint64 // rowSum of its row
}

// A depositAudit compares all deposits up to the audited state: none is ever trimmed, and their ids are
// dense. Each reference leads to one deposit, and each deposit is the one that its reference leads to. So no
// reference has two of them.
type depositAudit struct {
	*rowAudit
	sums   []uint64          // of the rows, by id; 0: no row
	money  []money.Balance   // of the rows, by currency-1
	missed map[uint64]uint32 // deposits that the index has and no row, with their accounts
}

// deposits compares what the store has of them with the state and the replayed records.
func (h *rowAudit) deposits(ctx context.Context) error {
	_, _, last := h.audit.state.LastIDs()
	a := &depositAudit{rowAudit: h, sums: make([]uint64, last+1), money: make([]money.Balance, len(h.audit.state.Currencies())),
		missed: map[uint64]uint32{}}
	err := concurrently(func(yield func(uint32) bool) {
		for _, account := range h.audit.state.Accounts() {
			if !yield(account.ID) {
				return
			}
		}
	}, func(account uint32) error { return a.account(ctx, account) })
	if err != nil {
		return err
	}
	if err := a.references(ctx); err != nil {
		return err
	}
	for id := uint64(1); id <= last; id++ {
		if a.sums[id] == 0 {
			h.missing(a.list(id), id)
		}
	}
	for i, c := range h.audit.state.Currencies() {
		if a.money[i] != c.Deposited {
			h.differ("deposits: of %s there are %v in all, committed are %v", c.Code, a.money[i], c.Deposited)
		}
	}
	return nil
}

// list names the list that a deposit should be in, as far as the replay or the index knows it.
func (a *depositAudit) list(id uint64) string {
	account, known := a.missed[id]
	if r := a.replay(id); r != nil {
		account, known = r.account, true
	}
	if !known {
		return "deposits"
	}
	return "deposits of account " + a.accountName(account)
}

// replay is what the replay knows of a deposit; nil: it began later.
func (a *depositAudit) replay(id uint64) *deposited {
	if id <= a.deposit || id-a.deposit > uint64(len(a.deposited)) {
		return nil
	}
	return &a.deposited[id-a.deposit-1]
}

// account reads the deposits of one account.
func (a *depositAudit) account(ctx context.Context, account uint32) error {
	name := "deposits of account " + a.accountName(account)
	var rows []persistence.Deposit
	read := func(before uint64) error {
		rows = rows[:0]
		q := persistence.DepositQuery{Account: account, Before: before}
		err := a.engine.opts.Store.Deposits(ctx, q, func(d *persistence.Deposit) bool {
			rows = append(rows, *d)
			return len(rows) < depositsAtOnce
		})
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		return nil
	}
	before := uint64(len(a.sums))
	for {
		if err := read(before); err != nil {
			return err
		}
		a.take(name, rows)
		if len(rows) < depositsAtOnce {
			return nil
		}
		before = rows[len(rows)-1].ID
	}
}

// depositsAtOnce is how many rows are read before they are compared.
const depositsAtOnce = 10_000

func (a *depositAudit) take(list string, rows []persistence.Deposit) {
	var wrong []*persistence.Deposit
	a.mu.Lock()
	for i := range rows {
		d := &rows[i]
		sum, r := rowSum(d), a.replay(d.ID)
		if d.ID == 0 || a.sums[d.ID] != 0 || int(d.Currency) > len(a.money) || d.Currency == 0 || r != nil && r.sum != sum {
			wrong = append(wrong, d)
		} else if r != nil {
			a.report.Rows++
		}
		a.sums[d.ID] = sum
		if d.Currency != 0 && int(d.Currency) <= len(a.money) {
			total := &a.money[d.Currency-1]
			*total = total.Add(d.Amount.Balance())
		}
	}
	a.mu.Unlock()
	for _, d := range wrong {
		a.stored(list, d.ID, d)
	}
}

// references compares the index with the rows, in both directions.
func (a *depositAudit) references(ctx context.Context) error {
	const list = "references of deposits"
	found, newest := make([]bool, len(a.sums)), uint64(0)
	err := a.engine.opts.Store.References(ctx, func(d *persistence.Deposit) bool {
		newest = max(newest, d.ID)
		switch {
		case d.ID >= uint64(len(a.sums)): // it was made since
		case d.ID == 0 || a.sums[d.ID] != 0 && a.sums[d.ID] != rowSum(d):
			a.differ("%s: %q leads to %+v, the row of that deposit says otherwise", list, d.Reference, *d)
		default:
			if found[d.ID] = true; a.sums[d.ID] == 0 {
				a.missed[d.ID] = d.Account
			}
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("reading the %s: %w", list, err)
	}
	for id, there := range slices.All(found) {
		if !there && a.sums[id] != 0 {
			a.differ("%s: that of deposit %d is missing", list, id)
		}
	}
	now := NewRead(ReadStatement)
	if err := a.engine.Ask(now, nil, 0); err != nil {
		return err
	}
	defer now.Free()
	if newest > now.LastDeposit {
		a.differ("%s: one leads to deposit %d, the newest is %d", list, newest, now.LastDeposit)
	}
	return nil
}
