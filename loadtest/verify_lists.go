package loadtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"exchange/core/money"
)

// Page sizes of the lists, which are read back to the newest row before the test.
const (
	orderPage = 2000
	tradePage = 1000
)

// orders returns all orders of the account since the test began.
func (v *verifier) orders(ctx context.Context, r *rest, a *account) (map[uint64]*orderRow, error) {
	rows := map[uint64]*orderRow{}
	err := v.list(ctx, r, a, "/api/v1/orders/own/", orderPage,
		a.newest.order, func(item []byte) (uint64, error) {
			row, err := v.readOrder(item)
			if err != nil {
				return 0, err
			}
			if row.id > a.newest.order {
				rows[row.id] = row
			}
			return row.id, nil
		})
	return rows, err
}

// trades returns all trades of the account since the test began.
func (v *verifier) trades(ctx context.Context, r *rest, a *account) (map[uint64]*tradeRow, error) {
	rows := map[uint64]*tradeRow{}
	err := v.list(ctx, r, a, "/api/v1/exchanges/own/", tradePage,
		a.newest.trade, func(item []byte) (uint64, error) {
			row, err := v.readTrade(item)
			if err != nil {
				return 0, err
			}
			if row.id > a.newest.trade {
				rows[row.id] = row
			}
			return row.id, nil
		})
	return rows, err
}

// list reads a list, newest first, page by page below the last id seen, down to an id.
func (v *verifier) list(ctx context.Context, r *rest, a *account, path string, limit int,
	downTo uint64, read func(item []byte) (uint64, error)) error {
	before := uint64(0)
	for {
		page := fmt.Sprintf("%s?limit=%d", path, limit)
		if before > 0 {
			page = fmt.Sprintf("%s&before=%d", page, before)
		}
		n, last := 0, before
		err := r.get(ctx, a.users[0], page, func(body []byte) error {
			return eachItem(body, func(item []byte) (err error) {
				n++
				last, err = read(item)
				return err
			})
		})
		switch {
		case err != nil:
			return err
		case n < limit || last <= downTo:
			return nil
		case before > 0 && last >= before:
			return fmt.Errorf("%s does not continue below %d", page, before)
		}
		before = last
	}
}

func (v *verifier) readOrder(item []byte) (*orderRow, error) {
	row := &orderRow{}
	var errs [4]error
	var name string
	err := eachField(item, func(field, value []byte) bool {
		switch string(field) {
		case "id":
			row.id = number(value)
		case "pair":
			name = string(value)
			row.pair = v.byName[name]
		case "type":
			row.buy = string(value) == "buy"
		case "status":
			row.status = int(number(value))
		case "price":
			row.price, errs[0] = money.ParsePrice(value)
		case "amount":
			row.amount, errs[1] = money.ParseAmount(value)
		case "amount_filled":
			row.filled, errs[2] = money.ParseAmount(value)
		case "amount_original":
			row.initial, errs[3] = money.ParseAmount(value)
		case "client_order_id":
			row.clientID = string(value)
		}
		return true
	})
	if err = errors.Join(append(errs[:], err)...); err != nil {
		return nil, fmt.Errorf("the order %.200q cannot be understood: %w", item, err)
	}
	if row.pair == nil { // of a pair that is not traded here, so the test has not sent it
		row.pair = &pair{name: name, index: -1}
	}
	return row, nil
}

func (v *verifier) readTrade(item []byte) (*tradeRow, error) {
	row := &tradeRow{}
	var errs [3]error
	err := eachField(item, func(field, value []byte) bool {
		switch string(field) {
		case "id":
			row.id = number(value)
		case "pair":
			if row.pair = v.byName[string(value)]; row.pair == nil {
				row.pair = &pair{name: string(value), index: -1}
			}
		case "my_side":
			row.buy = string(value) == "buy"
		case "price":
			row.price, errs[0] = money.ParsePrice(value)
		case "amount":
			row.amount, errs[1] = money.ParseAmount(value)
		case "fee":
			row.fee, errs[2] = parseBalance(value)
		case "fee_currency":
			row.feeOf = string(value)
		}
		return true
	})
	if err = errors.Join(append(errs[:], err)...); err != nil || row.pair == nil {
		return nil, fmt.Errorf("the trade %.200q cannot be understood: %w", item, err)
	}
	return row, nil
}

// pause returns false if ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
