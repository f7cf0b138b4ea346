package audit

import (
	"cmp"
	"context"
	"fmt"

	"exchange/core/money"
	"exchange/persistence"
)

// A depositAudit compares all deposits up to the audited state. No deposit is ever trimmed, and the
// ids are dense. Each reference must lead to one deposit, and each deposit must be the one that its
// reference leads to. So no reference has two deposits. The comparison of a deposit's row with its
// replayed record is that of any list.
//
// The audit takes one range of ids after the other, because a serving exchange has no memory for
// all of them. Each range reads the whole index, which has no order.
type depositAudit struct {
	*rowAudit
	last  uint64 // newest id of the audited state
	after uint64 // id before the range

	sums  []uint64 // rowSum of each row, by id from the start of the range; 0: no row
	found []bool   // as sums: the index leads to the deposit
	// missed holds some deposits of the range that are in the index and have no row, with their
	// accounts.
	missed map[uint64]uint32

	money  []money.Balance // sums of the deposits in all ranges, by currency-1
	newest uint64          // highest id in the index
}

const (
	// depositsAtOnce is the number of ids in one range: 72 MB.
	depositsAtOnce = 8 << 20
	// depositRows is the number of rows that one call of the store reads.
	depositRows = 10_000
)

// deposits compares all deposits, and each currency's sum with the state.
func (h *rowAudit) deposits(ctx context.Context) error {
	a := &depositAudit{rowAudit: h, money: make([]money.Balance, len(h.audit.state.Currencies()))}
	_, _, a.last = h.audit.state.LastIDs()
	atOnce := min(uint64(cmp.Or(h.target.DepositsAtOnce, depositsAtOnce)), a.last)
	a.sums, a.found = make([]uint64, atOnce), make([]bool, atOnce)
	for ; a.after == 0 || a.after < a.last; a.after += max(atOnce, 1) {
		n := min(atOnce, a.last-a.after)
		a.sums, a.found, a.missed = a.sums[:n], a.found[:n], map[uint64]uint32{}
		clear(a.sums)
		clear(a.found)
		if err := a.compare(ctx); err != nil {
			return err
		}
	}
	_, newest, err := h.target.Present.Newest()
	if err != nil {
		return err
	}
	if a.newest > newest {
		h.differ("%s: one leads to deposit %d, the newest is %d", referenceList,
			a.newest, newest)
	}
	for i, c := range h.audit.state.Currencies() {
		if a.money[i] != c.Deposited {
			h.differ("deposits: of %s there are %v in all, committed are %v", c.Code,
				a.money[i], c.Deposited)
		}
	}
	return nil
}

// compare compares the rows and references of one range.
func (a *depositAudit) compare(ctx context.Context) error {
	err := concurrently(func(yield func(uint32) bool) {
		for _, account := range a.audit.state.Accounts() {
			if !yield(account.ID) {
				return
			}
		}
	}, func(account uint32) error { return a.account(ctx, account) })
	if err == nil {
		err = a.references(ctx)
	}
	if err != nil {
		return err
	}
	for i, sum := range a.sums {
		if id := a.after + uint64(i) + 1; sum == 0 {
			a.missing(a.list(id), id)
		} else if !a.found[i] {
			a.differ("%s: that of deposit %d is missing", referenceList, id)
		}
	}
	return nil
}

// list names the list where a deposit is expected, if the index shows the account.
func (a *depositAudit) list(id uint64) string {
	if account, known := a.missed[id]; known {
		return a.ofAccount("deposits")(account)
	}
	return "deposits"
}

// account reads the deposits of one account.
func (a *depositAudit) account(ctx context.Context, account uint32) error {
	name := a.ofAccount("deposits")(account)
	var rows []persistence.Deposit
	for before := a.after + uint64(len(a.sums)) + 1; ; before = rows[len(rows)-1].ID {
		rows = rows[:0]
		q := persistence.DepositQuery{Account: account, Before: before}
		err := a.target.Store.Deposits(ctx, q, func(d *persistence.Deposit) bool {
			if d.ID <= a.after && a.after > 0 {
				return false // the rest belongs to earlier ranges
			}
			rows = append(rows, *d)
			return len(rows) < depositRows
		})
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		a.take(name, rows)
		if len(rows) < depositRows {
			return nil
		}
	}
}

// take notes the rows of one account.
func (a *depositAudit) take(list string, rows []persistence.Deposit) {
	var wrong []*persistence.Deposit
	a.mu.Lock()
	for i := range rows {
		d := &rows[i]
		known := d.Currency != 0 && int(d.Currency) <= len(a.money)
		if d.ID == 0 || a.sums[d.ID-a.after-1] != 0 || !known {
			wrong = append(wrong, d)
		}
		if d.ID != 0 {
			a.sums[d.ID-a.after-1] = rowSum(d)
		}
		if known {
			total := &a.money[d.Currency-1]
			*total = total.Add(d.Amount.Balance())
		}
	}
	a.mu.Unlock()
	for _, d := range wrong {
		a.stored(list, d.ID, d)
	}
}

const referenceList = "references of deposits"

// references compares the index with the rows of the range.
func (a *depositAudit) references(ctx context.Context) error {
	err := a.target.Store.References(ctx, func(d *persistence.Deposit) bool {
		a.newest = max(a.newest, d.ID)
		i := d.ID - a.after - 1 // wraps around if the id is 0 or of an earlier range
		switch {
		case d.ID != 0 && i >= uint64(len(a.sums)): // in another range, or made since
		case d.ID == 0 || a.sums[i] != 0 && a.sums[i] != rowSum(d):
			a.differ("%s: %q leads to %+v, the row of that deposit says otherwise",
				referenceList, d.Reference, *d)
		default:
			a.found[i] = true
			if a.sums[i] == 0 && len(a.missed) < maxDifferences {
				a.missed[d.ID] = d.Account
			}
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("reading the %s: %w", referenceList, err)
	}
	return nil
}
