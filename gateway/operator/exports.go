package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"exchange/actors/committed"
	"exchange/core/money"
	"exchange/core/trading"
)

// Exports: all rows of one kind, for other programs.

// A periodQuery chooses rows with from <= time < to.
type periodQuery struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// A period is one in microseconds.
type period struct{ from, to int64 }

func (p period) has(us int64) bool { return p.from <= us && us < p.to }

// parse parses the times of a query.
func (q *periodQuery) parse() (p period, err error) {
	if p.from, err = timeOf("from", q.From, 0); err != nil {
		return p, err
	}
	p.to, err = timeOf("to", q.To, 1<<62)
	return p, err
}

// timeOf parses a time such as 2026-11-21 or 2026-11-21T08:00:00Z, in microseconds.
func timeOf(name, text string, unset int64) (int64, error) {
	if text == "" {
		return unset, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UnixMicro(), nil
		}
	}
	return 0, &badRequest{fmt.Sprintf(
		"%s: %.80q is no time such as 2026-11-21 or 2026-11-21T08:00:00Z", name, text)}
}

// A rowWriter counts the rows of an export.
type rowWriter struct {
	*lineWriter
	rows int
	gone bool // the client has disconnected
}

// row writes a row, and reports whether the client still reads.
func (w *rowWriter) row(line any) bool {
	w.gone = !w.write(line)
	w.rows++
	return !w.gone
}

// export streams the rows that produce writes. The end is their number.
func (c *call) export(produce func(context.Context, *rowWriter) error) (any, error) {
	c.stream(func(ctx context.Context, o *lineWriter) (any, error) {
		w := &rowWriter{lineWriter: o}
		err := produce(ctx, w)
		return w.rows, err
	})
	return nil, errStreamed
}

// exportPast streams rows of the past, of the query's period.
func (c *call) exportPast(query *periodQuery,
	produce func(ctx context.Context, past *committed.Past, in period, w *rowWriter) error,
) (any, error) {
	in, err := query.parse()
	if err != nil {
		return nil, err
	}
	past, err := c.engine.Past()
	if err != nil {
		return nil, err
	}
	return c.export(func(ctx context.Context, w *rowWriter) error {
		return produce(ctx, past, in, w)
	})
}

// everPair returns the number of the query's pair, also when it is no longer configured; 0: the
// query names none.
func (c *call) everPair(name *string) (uint16, error) {
	if name == nil {
		return 0, nil
	}
	number := c.engine.EverPair([]byte(*name))
	if number == 0 {
		return 0, &badRequest{fmt.Sprintf("there is no pair %.80q", *name)}
	}
	return number, nil
}

type tradeLine struct {
	ID         uint64        `json:"id" doc:"Id of the trade"`
	Time       string        `json:"time"`
	Pair       string        `json:"pair"`
	Type       string        `json:"type" doc:"What the taker did: sell or buy"`
	Price      money.Price   `json:"price"`
	Amount     money.Amount  `json:"amount"`
	TakerOrder uint64        `json:"taker_order" doc:"Order that came second"`
	MakerOrder uint64        `json:"maker_order" doc:"Order that was there first"`
	Taker      string        `json:"taker" doc:"Account of the taker"`
	Maker      string        `json:"maker" doc:"Account of the maker"`
	TakerFee   money.Balance `json:"taker_fee" doc:"Fee of the taker, in what it received"`
	MakerFee   money.Balance `json:"maker_fee" doc:"Fee of the maker, in what it received"`
}

// A TradesQuery chooses trades.
type tradesQuery struct {
	Pair *string `json:"pair" doc:"Only of this pair"`
	periodQuery
}

// exportTrades streams the trades of a pair, oldest first. Without a pair it streams pair after
// pair.
func exportTrades(c *call, q *tradesQuery) (any, error) {
	only, err := c.everPair(q.Pair)
	if err != nil {
		return nil, err
	}
	return c.exportPast(&q.periodQuery, func(ctx context.Context, past *committed.Past, in period,
		w *rowWriter) error {
		for pair := uint16(1); pair <= past.Pairs && !w.gone; pair++ {
			if only != 0 && only != pair {
				continue
			}
			name := c.engine.Market(pair).Name
			if err := past.Trades(ctx, pair, func(t *committed.Trade) bool {
				if !in.has(t.TimeUs) {
					return t.TimeUs < in.to // times of a pair never go back
				}
				return w.row(tradeLine{t.ID, clock(t.TimeUs), name, t.TakerSide.String(),
					t.Price, t.Amount, t.TakerOrder, t.MakerOrder, c.engine.AccountName(t.Taker),
					c.engine.AccountName(t.Maker), t.TakerFee, t.MakerFee})
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// An orderLine is an order of an export. Times of events that have not happened are left out.
type orderLine struct {
	openOrder
	Status       string `json:"status" enum:"open,cancelled,done" doc:"State"`
	Closed       string `json:"closed,omitempty"`
	CancelReason string `json:"cancel_reason,omitempty" doc:"Why the exchange cancelled it"`
}

// exportOrders streams the orders accepted in a period, open and closed ones: account by account,
// each account's newest first.
func exportOrders(c *call, q *periodQuery) (any, error) {
	in, err := q.parse()
	if err != nil {
		return nil, err
	}
	if err := c.ask(new(committed.Barrier)); err != nil { // refused before the first line
		return nil, err
	}
	return c.export(func(ctx context.Context, w *rowWriter) error {
		return c.engine.EveryOrder(ctx, func(o *committed.Order) bool {
			return !in.has(o.TimeUs) || w.row(c.orderLine(o))
		})
	})
}

func (c *call) orderLine(o *committed.Order) orderLine {
	row := orderLine{openOrder: c.openOrder(o), Status: "open"}
	if o.Status == trading.StatusActive {
		return row
	}
	row.Status, row.Waiting, row.Closed = "done", false, clock(o.ClosedUs)
	if o.Status == trading.StatusCancelled {
		row.Status = "cancelled"
		if x, ok := o.Instructed.Open(); ok && x.Cancelled != 0 {
			row.CancelReason = x.Cancelled.String()
		}
	}
	return row
}

type depositLine struct {
	Deposit   uint64       `json:"deposit"`
	Time      string       `json:"time"`
	Account   string       `json:"account"`
	Currency  string       `json:"currency"`
	Amount    money.Amount `json:"amount"`
	Reference string       `json:"reference"`
}

// exportDeposits streams deposits, account by account, each account's newest first.
func exportDeposits(c *call, q *periodQuery) (any, error) {
	return c.exportPast(q, func(ctx context.Context, past *committed.Past, in period,
		w *rowWriter) error {
		for account := uint32(1); account <= past.Accounts && !w.gone; account++ {
			name := c.engine.AccountName(account)
			if err := past.Deposits(ctx, account, func(d *committed.Deposit) bool {
				return !in.has(d.TimeUs) || w.row(depositLine{d.ID, clock(d.TimeUs), name,
					c.engine.CurrencyCode(d.Currency), d.Amount, d.Reference})
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// A withdrawalLine is a withdrawal of an export.
type withdrawalLine struct {
	withdrawalAnswer
	Closed   string `json:"closed,omitempty"`
	ClientID string `json:"client_id,omitempty" doc:"The client's name for it"`
}

// exportWithdrawals streams the withdrawals requested in a period, newest first.
func exportWithdrawals(c *call, q *periodQuery) (any, error) {
	return c.exportPast(q, func(ctx context.Context, past *committed.Past, in period,
		w *rowWriter) error {
		return past.Withdrawals(ctx, func(x *committed.Withdrawal) bool {
			if !in.has(x.TimeUs) {
				return true
			}
			line := withdrawalLine{newWithdrawal(c.engine, x), "", x.ClientID}
			line.Frozen = false // it is the current state, not that of the time
			if x.ClosedUs != 0 {
				line.Closed = clock(x.ClosedUs)
			}
			return w.row(line)
		})
	})
}

type balanceLine struct {
	Sequence uint64 `json:"sequence"`
	Account  string `json:"account"`
	holdingAnswer
}

// BalancesEnd ends an export of balances. The sums are computed separately from the rows, from the
// same state.
type BalancesEnd struct {
	Rows     int         `json:"rows" doc:"Number of the rows"`
	Sequence uint64      `json:"sequence"`
	Totals   []Liability `json:"totals"`
}

type Liability struct {
	Currency string        `json:"currency"`
	Balances money.Balance `json:"balances"`
	Reserved money.Balance `json:"reserved"`
}

// exportBalances streams each account's balances at one sequence, in order of the accounts' ids,
// without balances of 0.
func exportBalances(c *call, _ *nothing) (any, error) {
	patience, cancel := within(totalsPatience)
	defer cancel()
	t, err := c.engine.Balances(patience)
	if errors.Is(err, context.DeadlineExceeded) {
		err = committed.ErrTimeout
	}
	if err != nil {
		return nil, err
	}
	end := BalancesEnd{Sequence: t.Seq, Totals: []Liability{}}
	for i, x := range t.Currencies {
		end.Totals = append(end.Totals,
			Liability{c.engine.CurrencyCode(uint16(i + 1)), x.Balance, x.Reserve})
	}
	c.stream(func(_ context.Context, o *lineWriter) (any, error) {
		for i := range t.Holdings {
			h := &t.Holdings[i]
			if !o.write(balanceLine{t.Seq, c.engine.AccountName(h.Account),
				holdingAnswer{c.engine.CurrencyCode(h.Currency), h.Balance, h.Reserve,
					h.Available()}}) {
				break
			}
			end.Rows++
		}
		return end, nil
	})
	return nil, errStreamed
}
