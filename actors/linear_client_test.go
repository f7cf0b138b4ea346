package actors

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/lineartest"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// A recordedClient sends one operation after the other. The one with account -1 is the operator; it
// also reads books.
type recordedClient struct {
	lineartest.Client
	r      *recording
	number int

	answered int // its private reads; of the recording
}

func (c *recordedClient) act() {
	for sent := 0; sent < operationsOfEach; {
		r := c.r
		r.mu.Lock()
		for r.e.Err() != nil {
			r.up.Wait()
		}
		e, list := r.e, c.draw()
		r.mu.Unlock()
		c.do(e, list...)
		sent += len(list)
	}
}

// draw chooses the next operations; the recording is locked.
func (c *recordedClient) draw() []lineartest.Operation {
	if c.Account < 0 {
		return []lineartest.Operation{c.Operate()}
	}
	return c.Draw()
}

// sign sends an operation with the first key of its account, while all others rest.
func (c *recordedClient) sign(o lineartest.Operation) {
	r := c.r
	r.mu.Lock()
	o.Key = ownKey(o.Account, 0)
	o.Nonce = r.Nonce(o.Key)
	r.mu.Unlock()
	c.do(r.e, o)
}

// An answer is a client's to one operation.
type answer struct {
	result lineartest.Result
	err    error
}

// do sends one operation, or a batch, and records its results, unless patience ends first.
func (c *recordedClient) do(e *Engine, list ...lineartest.Operation) {
	r := c.r
	r.mu.Lock()
	patience := r.patience // before anything is sent
	noted, send := c.begin(e, list)
	r.mu.Unlock()
	answers := make(chan []answer, 1)
	r.sending.Add(1)
	go func() {
		answers <- send()
		r.sending.Add(-1)
	}()
	select {
	case <-patience:
		go func() { // the client does not receive the outcome, the history does
			for i, a := range <-answers {
				if !errors.Is(a.err, committed.ErrTimeout) {
					noted[i].Settle()
				}
			}
		}()
	case all := <-answers:
		for i := range all {
			c.end(noted[i], &all[i])
		}
	}
}

// begin records operations and returns a function that sends them; the recording is locked.
func (c *recordedClient) begin(e *Engine,
	list []lineartest.Operation) (noted []*lineartest.Recorded, send func() []answer) {
	if len(list) > 1 {
		return c.r.history.BeginBatch(c.number, list), c.batch(e, list)
	}
	noted = []*lineartest.Recorded{c.r.history.Begin(c.number, list[0])}
	one := c.request(e, &list[0])
	return noted, func() []answer {
		result, err := one()
		return []answer{{result, err}}
	}
}

// end records the answer to an operation.
func (c *recordedClient) end(noted *lineartest.Recorded, a *answer) {
	var unanswered *committed.HistoryError
	o := &noted.Operation
	switch {
	case a.err == nil:
		noted.End(a.result)
		c.count(o, &a.result, nil)
	case errors.Is(a.err, committed.ErrTimeout):
	case errors.As(a.err, &unanswered) && o.Kind != lineartest.Place: // a read, in a crash
	case errors.Is(a.err, ErrStopping), errors.Is(a.err, ErrNotConfirmed),
		errors.Is(a.err, ErrStalled), unanswered != nil: // no actor has received the order
		noted.Forget()
		c.count(o, &a.result, a.err)
	default:
		c.r.t.Errorf("%+v: %v", *o, a.err)
	}
}

// count counts the parts of answers that the history does not hold.
func (c *recordedClient) count(o *lineartest.Operation, result *lineartest.Result, err error) {
	r := c.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(err, ErrNotConfirmed) {
		r.notConfirmed++
	}
	if err == nil && o.Kind.Needs() == lineartest.MayRead && result.Outcome == lineartest.Done {
		r.answeredReads++
		c.answered++
	}
	for _, row := range result.Orders {
		r.numbers[row.ID] = row.Order
	}
	if o.Kind.Needs() == lineartest.MayRead {
		r.Acknowledge(o, result, 0)
	}
}

// request returns the operation as an engine request, after a gateway's checks; the recording is
// locked.
func (c *recordedClient) request(e *Engine,
	o *lineartest.Operation) func() (lineartest.Result, error) {
	if o.Kind.Needs() == 0 {
		return c.unsigned(e, o)
	}
	r := c.r
	order := lineartest.IDOf(r.Orders, o.Order)
	withdrawal := lineartest.IDOf(r.Withdrawals, o.Withdrawal)
	return func() (lineartest.Result, error) {
		key, refused := admitted(e, o)
		switch {
		case key == nil:
			return lineartest.Result{Outcome: refused}, nil
		case o.Kind.Needs() == lineartest.MayRead:
			return r.readBy(e, key, o, order)
		}
		return r.commanded(e, o, func() (*Command, error) {
			return send(e, key, o, order, withdrawal)
		})
	}
}

// admitted returns the key of an operation; nil: a gateway refuses the operation.
func admitted(e *Engine,
	o *lineartest.Operation) (key *directory.Key, refused lineartest.Outcome) {
	key = e.Key([]byte(keyName(o.Key)))
	switch {
	case key == nil:
		return nil, lineartest.RefusedKey
	case key.Permissions&permissions(o.Kind.Needs()) == 0:
		return nil, lineartest.RefusedPermission
	case key.Account.Frozen():
		return nil, lineartest.RefusedFrozen
	}
	return key, 0
}

// permissions returns a history's permissions as the engine's.
func permissions(of uint8) (p uint8) {
	for from, to := range map[uint8]uint8{lineartest.MayRead: event.PermissionRead,
		lineartest.MayTrade:    event.PermissionTrade,
		lineartest.MayWithdraw: event.PermissionWithdraw} {
		if of&from != 0 {
			p |= to
		}
	}
	return p
}

// unsigned returns an operator's request, or a read of a book.
func (c *recordedClient) unsigned(e *Engine,
	o *lineartest.Operation) func() (lineartest.Result, error) {
	r := c.r
	account := accountName(o.Account)
	done := func(run func() (Admin, error)) func() (lineartest.Result, error) {
		return func() (lineartest.Result, error) {
			_, err := run()
			if isRefused(err) {
				return lineartest.Result{Outcome: lineartest.RefusedState}, nil
			}
			return lineartest.Result{Outcome: lineartest.Done}, err
		}
	}
	withdrawal := lineartest.IDOf(r.Withdrawals, o.Withdrawal)
	move := func(to uint8) func() (lineartest.Result, error) {
		return func() (lineartest.Result, error) {
			return r.commanded(e, o, func() (*Command, error) {
				return e.SetWithdrawalStatus("test", withdrawal, to, "")
			})
		}
	}
	switch o.Kind {
	case lineartest.ApproveWithdrawal:
		return move(event.WithdrawalApproved)
	case lineartest.RefuseWithdrawal:
		return move(event.WithdrawalRefused)
	case lineartest.CreateKey:
		return done(func() (Admin, error) {
			if o.Parallel > 0 {
				return e.CreateParallelKey("test", account, keyName(o.Key), "secret",
					permissions(o.Permissions), nil, o.Parallel)
			}
			return e.CreateKey("test", account, keyName(o.Key), "secret",
				permissions(o.Permissions), nil)
		})
	case lineartest.RevokeKey:
		return done(func() (Admin, error) { return e.RevokeKey("test", keyName(o.Key)) })
	case lineartest.Freeze:
		return done(func() (Admin, error) { return e.Freeze("test", account, o.On) })
	case lineartest.Deposit:
		reference := fmt.Sprint("reference ", len(r.history.Operations()))
		code, amount := testOptions(nil).Currencies[o.Currency].Code, money.Amount(o.Amount)*coin
		return done(func() (Admin, error) {
			return e.Deposit("test", account, code, amount, reference)
		})
	case lineartest.Adjustment:
		reference := wantID(r.t, fmt.Sprint("reference-", len(r.history.Operations())))
		return func() (lineartest.Result, error) {
			return r.commanded(e, o, func() (*Command, error) {
				of := e.Key([]byte(keyName(ownKey(o.Account, 0)))).Account.ID
				return e.Adjust("test", of, uint16(o.Currency+1), money.Amount(o.Amount)*coin,
					"why", reference)
			})
		}
	case lineartest.ReadKeys:
		return func() (lineartest.Result, error) { return readKeys(e, account) }
	}
	return func() (lineartest.Result, error) { return readBook(e, o.Pair) }
}

func isRefused(err error) bool {
	var refused *RequestError
	return errors.As(err, &refused)
}

// send sends a command that is signed.
func send(e *Engine, key *directory.Key, o *lineartest.Operation,
	order, withdrawal uint64) (*Command, error) {
	amount := money.Amount(o.Amount) * coin
	switch o.Kind {
	case lineartest.Place, lineartest.Cancel, lineartest.Amend:
		return e.Do(commandOf(e, key, o, order))
	case lineartest.CancelAll:
		var pair *directory.Pair
		if o.Pair != lineartest.AllPairs {
			pair = e.Pairs()[o.Pair]
		}
		return e.CancelAll(key, o.Nonce, CancelFilter{Pair: pair})
	case lineartest.Withdrawal:
		return e.Do(NewWithdrawal(key, o.Nonce, uint16(o.Currency+1), amount,
			strconv.Itoa(o.Withdrawal)))
	case lineartest.ConfirmWithdrawal:
		code, err := askCode(e, withdrawal)
		if err != nil {
			return nil, err
		}
		return e.Do(NewConfirmation(key, o.Nonce, withdrawal, code))
	}
	return e.Do(NewWithdrawalCancel(key, o.Nonce, withdrawal))
}

// commandOf makes the command for an order, a cancel or an amend.
func commandOf(e *Engine, key *directory.Key, o *lineartest.Operation, order uint64) *Command {
	amount, price := money.Amount(o.Amount)*coin, money.Price(o.Price)*1e8
	named, _ := event.NewClientID(strconv.Itoa(o.Order))
	if o.Kind == lineartest.Place {
		req := &OrderRequest{Pair: e.Pairs()[o.Pair], Side: trading.Sell, Price: price,
			Amount: amount, ClientID: named}
		if o.Buy {
			req.Side = trading.Buy
		}
		if o.Force != lineartest.Rests {
			req.Special = &SpecialRequest{Instructions: trading.Instructions{
				IOC: o.Force == lineartest.IOC, FOK: o.Force == lineartest.FOK}}
		}
		return NewOrder(key, o.Nonce, req)
	}
	if o.Named {
		order = 0
	} else {
		named = event.ClientID{}
	}
	if o.Kind == lineartest.Cancel {
		return NewCancel(key, o.Nonce, order, named)
	}
	return NewAmend(key, o.Nonce,
		&AmendRequest{Order: order, ClientID: named, Price: price, Amount: amount})
}

// commanded returns the result of a command's end.
func (r *recording) commanded(e *Engine, o *lineartest.Operation,
	run func() (*Command, error)) (lineartest.Result, error) {
	c, err := run()
	if isRefused(err) {
		return lineartest.Result{Outcome: lineartest.RefusedState}, nil
	}
	if err != nil {
		return lineartest.Result{}, err
	}
	return r.ended(o, c)
}

// ended returns the result of a command, and frees it.
func (r *recording) ended(o *lineartest.Operation, c *Command) (lineartest.Result, error) {
	defer c.Free()
	if c.Outcome() == Refused {
		return r.refusal(o, c)
	}
	return r.result(o, c), nil
}

func (r *recording) refusal(o *lineartest.Operation,
	c *Command) (result lineartest.Result, err error) {
	switch reason := c.Record().Refusal.Reason; reason {
	case event.RefusedFunds:
		result.Outcome = lineartest.RefusedFunds
	case event.RefusedNotOpen, event.RefusedWithdrawal, event.RefusedNoOrders:
		result.Outcome = lineartest.RefusedState
	case event.RefusedKey:
		result.Outcome = lineartest.RefusedKey
	case event.RefusedFrozen:
		result.Outcome = lineartest.RefusedFrozen
	case event.RefusedNonce:
		result.Outcome, result.LastNonce = lineartest.RefusedNonce, c.LastNonce()
	case event.RefusedClientID:
		result.Outcome = lineartest.RefusedRepeated
		result.ID = c.TakenBy()
	default:
		err = errors.New(refusedFor(reason))
	}
	return result, err
}

// result returns the effect of an accepted command, and shares it with all clients of the account.
func (r *recording) result(o *lineartest.Operation, c *Command) (result lineartest.Result) {
	result.Outcome = lineartest.Done
	r.mu.Lock()
	defer r.mu.Unlock()
	var id uint64
	switch o.Kind {
	case lineartest.Place:
		made := &c.Record().Order
		r.entered(&result, made)
		result.ID, id, r.numbers[made.ID] = made.ID, made.ID, o.Order
	case lineartest.Amend:
		r.entered(&result, &c.Record().Order)
		result.ID = c.Record().Amended.ID
	case lineartest.Cancel:
		result.ID, result.Remains = c.Record().Cancel.ID,
			coins(c.Record().Cancel.Remaining.Balance())
	case lineartest.CancelAll:
		result.Cancelled = slices.Clone(c.CancelledOrders())
	case lineartest.Withdrawal:
		id = c.Record().Withdrawal.ID
	}
	r.Acknowledge(o, &result, id)
	return result
}

// entered returns the effect on an order that was placed or amended.
func (r *recording) entered(result *lineartest.Result, o *event.Order) {
	result.Remains = coins(o.Remaining.Balance())
	for _, t := range o.Trades {
		result.Trades = append(result.Trades,
			lineartest.Trade{ID: t.ID, Maker: r.numbers[t.Maker], Price: int64(t.Price) / 1e8,
				Amount: coins(t.Amount.Balance())})
	}
}

// units returns an amount of money in the history's units.
func units(b money.Balance) int64 {
	d := b.Decimal().Shift(4)
	if !d.IsInteger() {
		panic(fmt.Sprintf("%v is no whole number of units", b.Decimal()))
	}
	return d.IntPart()
}

// coins returns an amount of whole coins.
func coins(b money.Balance) int64 {
	n := units(b)
	if n%lineartest.Unit != 0 {
		panic(fmt.Sprintf("%v is no whole number", b.Decimal()))
	}
	return n / lineartest.Unit
}
