package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/lineartest"
	"exchange/core/event"
	"exchange/core/trading"
	"exchange/persistence"
)

// Reads of recorded clients.

func readBook(e *Engine, pair int) (result lineartest.Result, err error) {
	result.Outcome = lineartest.Done
	v, err := e.View(committed.ViewLevels, e.Pairs()[pair], 0, committed.ShownLevels,
		committed.ShownLevels)
	if err != nil {
		return result, err
	}
	result.UpdateID = v.UpdateID
	for side, levels := range [][]trading.Level{v.Depth.BuyLevels, v.Depth.SellLevels} {
		for _, l := range levels {
			amount, err := strconv.ParseInt(l.Amount.String(), 10, 64)
			if err != nil {
				return result, err
			}
			result.Levels[side] = append(result.Levels[side],
				lineartest.Level{Price: int64(l.Price) / 1e8, Amount: amount})
		}
	}
	return result, nil
}

func readKeys(e *Engine, account string) (result lineartest.Result, err error) {
	result.Outcome = lineartest.Done
	of := &committed.Account{Name: account}
	if err := e.Ask(of, nil, 0); err != nil {
		return result, err
	}
	result.Frozen = of.Info.Frozen
	read := &committed.Keys{Account: of.Info.ID}
	if err := e.Ask(read, nil, 0); err != nil {
		return result, err
	}
	for _, k := range read.List {
		var row lineartest.KeyRow
		if _, err := fmt.Sscanf(k.Key, "key-%d", &row.Key); err != nil {
			return result, err
		}
		for _, p := range []uint8{lineartest.MayRead, lineartest.MayTrade, lineartest.MayWithdraw} {
			if k.Permissions&permissions(p) != 0 {
				row.Permissions |= p
			}
		}
		row.Revoked = k.Revoked
		result.Keys = append(result.Keys, row)
	}
	slices.SortFunc(result.Keys, func(a, b lineartest.KeyRow) int { return a.Key - b.Key })
	return result, nil
}

// readBy does the private reads.
func (r *recording) readBy(e *Engine, key *directory.Key, o *lineartest.Operation,
	order uint64) (result lineartest.Result, err error) {
	result.Outcome = lineartest.Done
	byID, named := &committed.OneOrder{ID: order}, &committed.OpenOrders{Limit: 1000}
	open := &committed.OpenOrders{Limit: 1000}
	pending, wallet := &committed.PendingWithdrawals{Limit: 1000}, new(committed.Wallet)
	read := map[lineartest.Kind]committed.Question{lineartest.ReadOrder: byID,
		lineartest.ReadOpen: open, lineartest.ReadWallet: wallet,
		lineartest.ReadPending: pending}[o.Kind]
	if o.Kind == lineartest.ReadOrder && order == 0 { // no client received its id
		named.ClientID, _ = event.NewClientID(strconv.Itoa(o.Order))
		read = named
	}
	var last *committed.NonceError
	switch err := e.Ask(read, key, o.Nonce); {
	case errors.As(err, &last):
		return lineartest.Result{Outcome: lineartest.RefusedNonce, LastNonce: last.Last}, nil
	case errors.Is(err, committed.ErrKeyRevoked):
		return lineartest.Result{Outcome: lineartest.RefusedKey}, nil
	case errors.Is(err, committed.ErrFrozen):
		return lineartest.Result{Outcome: lineartest.RefusedFrozen}, nil
	case err != nil:
		return result, err
	}
	rows := append(open.Orders, named.Orders...)
	if byID.Found {
		rows = append(rows, byID.Order)
	}
	if o.Kind == lineartest.ReadOrder && len(rows) == 0 {
		rows, err = r.inHistory(e, key.Account.ID, o.Order, order, named.Seq)
		if err != nil {
			return result, err
		}
	}
	if result.Orders, err = orderRows(rows); err != nil {
		return result, err
	}
	for _, w := range pending.List {
		number, err := strconv.Atoi(w.Address)
		if err != nil {
			return result, err
		}
		result.Pending = append(result.Pending,
			lineartest.Pending{Withdrawal: number, Confirmed: w.Status == event.WithdrawalVerified})
	}
	for _, h := range wallet.Holdings {
		result.Funds[h.Currency-1] = lineartest.Funds{Balance: units(h.Balance),
			Reserve: units(h.Reserve)}
	}
	return result, nil
}

// inHistory looks up an order that is not in memory, as a handler does: by its id, or by its client
// order id if no answer contained the id.
func (r *recording) inHistory(e *Engine, account uint32, number int, order,
	upTo uint64) (rows []persistence.Order, err error) {
	r.reading.RLock()
	defer r.reading.RUnlock()
	if e.Err() != nil {
		return nil, committed.ErrTimeout
	}
	ctx := context.Background()
	if order == 0 && upTo == 0 {
		return nil, nil // nothing was projected
	}
	if order == 0 {
		q := persistence.OrderQuery{Account: account, ClientID: strconv.Itoa(number), MaxSeq: upTo}
		err = committed.History(e.Door).Orders(ctx, q, func(row *persistence.Order) bool {
			rows = append(rows, *row)
			return true
		})
		return rows, err
	}
	row, err := committed.History(e.Door).Order(ctx, account, order)
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, nil
	}
	return []persistence.Order{row}, err
}
