package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"exchange/actors"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
)

var tradingRoutes = []route{
	{"GET orders", do(listOrders), byEngine, "Open orders",
		"Of one account, newest first, or of all accounts, account by account. " +
			"For the next page send `next` as `before`, and `after` as `after`, " +
			"whichever of them are there."},
	{"POST orders/cancel", do(cancelOrder), byEngine, "Cancel an order", "Of any account."},
	{"POST orders/cancel-all", do(cancelAllOrders), byEngine, "Cancel an account's orders",
		"If only some are known to be cancelled, the answer is 503 and has these " +
			"as `orders`."},
	{"GET switches", do(listSwitches), byEngine, "Dead man's switches", "All that are armed."},
	{"GET pairs", do(listPairs), byEngine, "Pairs",
		"All configured pairs with their rules, in the order of the " +
			"configuration."},
	{"POST pairs/halt", do(halt).answers(HaltAnswer{}, AllAnswer{}), byEngine,
		"Halt a pair, or resume it",
		"A halted pair takes cancels and no orders. With `all` the pairs are " +
			"halted one after the other, and the answer has a list."},
	{"GET fees", do(listFees), byEngine, "Fees",
		"The usual rates, on the first page, and a page of the accounts with " +
			"rates of their own. `next` is there if more may follow: send it as " +
			"`after`."},
	{"POST fees", do(setFees), byEngine, "Set an account's fees in a pair",
		"Either `maker` and `taker`, or `usual`."},
	{"GET maintenance", do(showMaintenance), byEngine, "Is there maintenance?",
		"And since when."},
	{"POST maintenance", do(maintenance), byEngine, "Begin or end maintenance",
		"In maintenance clients' commands are refused. It lasts until it is " +
			"ended, also over restarts."},
}

type haltRequest struct {
	Pair string `json:"pair,omitempty" doc:"Name of the pair; left out with all"`
	All  bool   `json:"all,omitempty" doc:"All pairs, one after the other"`
	On   *bool  `json:"on" need:"yes" doc:"true: halt it. false: resume it"`
}

// A HaltAnswer is the state of a pair after a request to halt or resume it.
type HaltAnswer struct {
	Pair     string `json:"pair"`
	On       bool   `json:"on" doc:"The state after the request"`
	Repeated bool   `json:"repeated,omitempty"`
}

func halt(c *call, q *haltRequest) (any, error) {
	switch {
	case q.All && q.Pair != "":
		return nil, &badRequest{"all: without pair, which names one"}
	case q.All:
		return c.haltAll(*q.On)
	}
	a, err := c.engine.Halt(c.operator, q.Pair, *q.On)
	return &HaltAnswer{Pair: a.Pair, On: a.On, Repeated: a.Repeated}, err
}

// An AllAnswer holds the state of each pair after a request about all of them.
type AllAnswer struct {
	Pairs []HaltAnswer `json:"pairs" doc:"State of each pair"`
}

// haltAll halts or resumes each pair by an action of its own, one after the other.
func (c *call) haltAll(on bool) (any, error) {
	list := []HaltAnswer{}
	for _, p := range c.engine.Pairs() {
		a, err := c.engine.Halt(c.operator, p.Name, on)
		switch {
		case err != nil && len(list) == 0:
			return nil, err
		case err != nil: // not wrapped: some of it is done
			//nolint:errorlint // see above
			return nil, fmt.Errorf("%d pairs are done, and %s is not, or that is not known; "+
				"those after it are not: %v", len(list), p.Name, err)
		}
		list = append(list, HaltAnswer{Pair: a.Pair, On: a.On, Repeated: a.Repeated})
	}
	return &AllAnswer{list}, nil
}

// maintenancePatience bounds the wait for commands in flight.
const maintenancePatience = 10 * time.Second

type maintenanceRequest struct {
	On      *bool  `json:"on" need:"yes" doc:"true: begin. false: end"`
	Message string `json:"message,omitempty" most:"MaxMessage"`
	Cancels bool   `json:"cancels,omitempty" doc:"Clients may cancel in it; only with on true"`
}

// A MaintenanceAnswer is the state after a request to begin or end maintenance.
type maintenanceAnswer struct {
	On       bool   `json:"on" doc:"The state after the request"`
	Message  string `json:"message,omitempty"`
	Cancels  bool   `json:"cancels,omitempty"`
	Repeated bool   `json:"repeated,omitempty"`
}

func maintenance(c *call, q *maintenanceRequest) (*maintenanceAnswer, error) {
	if q.Cancels && !*q.On {
		return nil, &badRequest{"cancels: with on true, for a maintenance in which clients may " +
			"cancel"}
	}
	if err := line("message", q.Message); err != nil {
		return nil, err
	}
	patience, cancel := context.WithTimeout(context.Background(), maintenancePatience)
	defer cancel()
	a, err := c.engine.SetMaintenance(patience, c.operator,
		event.Maintenance{On: *q.On, Message: q.Message, Cancels: q.Cancels})
	return &maintenanceAnswer{On: a.On, Message: a.Message, Cancels: a.AllowCancels,
		Repeated: a.Repeated}, err
}

type cancelRequest struct {
	Order uint64 `json:"order" need:"yes" doc:"Id of the order"`
}

type cancelAnswer struct {
	Order   uint64 `json:"order"`
	Account string `json:"account"`
	Pair    string `json:"pair"`
}

func cancelOrder(c *call, q *cancelRequest) (*cancelAnswer, error) {
	command, err := c.engine.OperatorCancel(c.operator, q.Order)
	if err != nil {
		return nil, err
	}
	defer command.Free()
	if command.Outcome() != actors.Accepted {
		return nil, &badRequest{fmt.Sprintf("order %d is not open any more", q.Order)}
	}
	r := command.Record()
	return &cancelAnswer{Order: r.Cancel.Order,
		Account: c.engine.AccountName(r.Cancel.Account),
		Pair:    c.engine.Market(r.Pair).Name}, nil
}

type cancelAllRequest struct {
	Account string `json:"account,omitempty" need:"yes" doc:"Name of the account"`
	Pair    string `json:"pair,omitempty" doc:"Only orders of this pair; left out or empty: all"`
}

type cancelAllAnswer struct {
	Orders []uint64 `json:"orders" doc:"Ids of the orders that were cancelled"`
}

func cancelAllOrders(c *call, q *cancelAllRequest) (*cancelAllAnswer, error) {
	orders, err := c.engine.OperatorCancelAll(c.ctx, c.operator, q.Account, q.Pair)
	if err != nil && len(orders) > 0 {
		return nil, &partlyCancelled{orders, err}
	}
	return &cancelAllAnswer{append([]uint64{}, orders...)}, err
}

// A partlyCancelled error holds the cancelled orders and the reason why others were not. It does
// not wrap its cause, because the cause does not undo the cancellations.
type partlyCancelled struct {
	orders []uint64
	cause  error
}

func (e *partlyCancelled) Error() string {
	return fmt.Sprintf(
		"%d orders were cancelled; of others that is not known, or they were not: %v",
		len(e.orders), e.cause)
}

type feesRequest struct {
	Account string `json:"account" need:"yes" doc:"Name of the account"`
	Pair    string `json:"pair" need:"yes" doc:"Name of the pair"`
	Maker   Number `json:"maker,omitempty"`
	Taker   Number `json:"taker,omitempty"`
	Usual   bool   `json:"usual,omitempty"`
}

type setFeesAnswer struct {
	Account  string      `json:"account"`
	Pair     string      `json:"pair"`
	Maker    json.Number `json:"maker"`
	Taker    json.Number `json:"taker"`
	Own      bool        `json:"own" doc:"Whether these rates are the account's own"`
	Repeated bool        `json:"repeated"`
}

func setFees(c *call, q *feesRequest) (*setFeesAnswer, error) {
	var own *state.FeeRates
	if q.Usual {
		if q.Maker != "" || q.Taker != "" {
			return nil,
				&badRequest{"usual: without maker and taker, which are rates of the account's own"}
		}
	} else {
		maker, err1 := rate("maker", q.Maker)
		taker, err2 := rate("taker", q.Taker)
		if err := cmp.Or(err1, err2); err != nil {
			return nil, err
		}
		own = &state.FeeRates{Maker: maker, Taker: taker}
	}
	a, err := c.engine.SetFees(c.operator, q.Account, q.Pair, own)
	if err != nil {
		return nil, err
	}
	rates := c.engine.FeesOf(a.AccountID, a.Pair)
	return &setFeesAnswer{Account: a.Account, Pair: a.Pair, Own: own != nil,
		Maker: json.Number(rates.Maker.String()), Taker: json.Number(rates.Taker.String()),
		Repeated: a.Repeated}, nil
}

func rate(name string, text Number) (money.Rate, error) {
	r, err := money.ParseRate(string(text))
	if err != nil {
		return 0,
			&badRequest{name + ": a fraction from 0 to 1 with at most 8 digits, such as 0.001: " +
				err.Error()}
	}
	return r, nil
}
