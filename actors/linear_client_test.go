package actors

import (
	"errors"
	"fmt"
	"math/rand/v2"
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
// also looks at books.
type recordedClient struct {
	r       *recording
	number  int
	account int
	key     int // its own
	random  *rand.Rand

	answered int // its private reads; of the recording
}

func (c *recordedClient) act() {
	for sent := 0; sent < operationsOfEach; {
		r := c.r
		r.mu.Lock()
		for r.e.Err() != nil {
			r.up.Wait()
		}
		e, list := r.e, c.drawRequest()
		r.mu.Unlock()
		c.do(e, list...)
		sent += len(list)
	}
}

// draw chooses what to do; the recording is locked.
func (c *recordedClient) draw() lineartest.Operation {
	if c.account < 0 {
		return c.drawOperator()
	}
	o := c.drawOwn()
	if o.Kind.Needs() != 0 {
		c.drawKey(&o)
	}
	return o
}

// drawKey chooses the key and the nonce of an operation: now and then another key than the client's
// own, or a nonce again.
func (c *recordedClient) drawKey(o *lineartest.Operation) {
	r := c.r
	o.Key = c.key
	if key, ok := c.pick(r.keys); ok && c.random.IntN(4) == 0 {
		o.Key = key
	}
	o.Nonce = r.drawNonce(o.Key, c.random)
}

// drawNonce returns the next nonce of a key, and now and then one again. Those of the key for
// parallel use come in any order, as those of several connections do.
func (r *recording) drawNonce(key int, random *rand.Rand) uint64 {
	switch again := random.IntN(20) == 0 && r.nonces[key] > 0; {
	case key == parallelKey && again:
		return r.nonces[key] - random.Uint64N(min(r.nonces[key], overtaking))
	case key == parallelKey:
		for len(r.overtaken) < overtaking {
			r.nonces[key]++
			r.overtaken = append(r.overtaken, r.nonces[key])
		}
		at := random.IntN(overtaking)
		nonce := r.overtaken[at]
		r.overtaken = slices.Delete(r.overtaken, at, at+1)
		return nonce
	case !again:
		r.nonces[key]++
	}
	return r.nonces[key]
}

// sign sends an operation with the first key of its account, while all others rest.
func (c *recordedClient) sign(o lineartest.Operation) {
	r := c.r
	r.mu.Lock()
	o.Key = ownKey(o.Account, 0)
	r.nonces[o.Key]++
	o.Nonce = r.nonces[o.Key]
	r.mu.Unlock()
	c.do(r.e, o)
}

func (c *recordedClient) drawOperator() lineartest.Operation {
	r := c.r
	account := c.random.IntN(len(recordedAccounts))
	o := lineartest.Operation{Account: account}
	switch n := c.random.IntN(18); {
	case n > 14 && len(r.confirmed) > 0: // one that may still be approved
		w := r.confirmed[c.random.IntN(len(r.confirmed))]
		o.Kind, o.Account, o.Withdrawal = lineartest.ApproveWithdrawal, w.account, w.number
	case n < 3 && len(r.withdrawals) > 0:
		o.Kind = lineartest.ApproveWithdrawal
		if c.random.IntN(2) == 0 {
			o.Kind = lineartest.RefuseWithdrawal
		}
		w := r.withdrawals[c.random.IntN(len(r.withdrawals))]
		o.Account, o.Withdrawal = w.account, w.number
	case n < 7:
		o.Kind, o.Currency, o.Amount = lineartest.Deposit, c.random.IntN(lineartest.Currencies),
			1+c.random.Int64N(2)
		if n == 6 {
			o.Kind = lineartest.Adjustment
		}
	case n < 9:
		r.keys = append(r.keys, known{account: account, number: 100 + len(r.keys)})
		o.Kind, o.Key, o.Permissions = lineartest.CreateKey, 99+len(r.keys),
			uint8(1+c.random.IntN(int(lineartest.MayAll)))
	case n < 12 && len(r.keys) > 0:
		k := r.keys[max(0, len(r.keys)-1-c.random.IntN(3))]
		o.Kind, o.Account, o.Key = lineartest.RevokeKey, k.account, k.number
	case n < 14:
		for frozen, is := range r.frozen {
			if is {
				account = frozen
			}
		}
		r.frozen[account] = !r.frozen[account]
		o.Kind, o.Account, o.On = lineartest.Freeze, account, r.frozen[account]
	default:
		o.Kind, o.Pair = lineartest.ReadBook, c.random.IntN(lineartest.Pairs)
	}
	return o
}

func (c *recordedClient) drawOwn() lineartest.Operation {
	r := c.r
	o := lineartest.Operation{Account: c.account}
	switch n := c.random.IntN(29); {
	case n < 6, n > 25:
		if k, ok := c.pick(r.orders); ok {
			o.Kind, o.Order, o.Named = lineartest.Cancel, k, c.random.IntN(3) == 0
			switch {
			case n < 2 || forceOf(k) != lineartest.Rests: // a cancel of it would do nothing
				o.Kind = lineartest.ReadOrder
			case n > 25:
				c.drawAmend(&o)
			}
			o.Pair = r.pairOf[k]
			return o
		}
	case n == 6:
		o.Kind = lineartest.ReadOpen
		return o
	case n < 9:
		o.Kind = lineartest.ReadWallet
		return o
	case n == 9:
		o.Kind, o.Pair = lineartest.ReadBook, c.random.IntN(lineartest.Pairs)
		return o
	case n == 10:
		r.drawCount++
		o.Kind, o.Withdrawal, o.Currency, o.Amount = lineartest.Withdrawal, r.drawCount,
			c.random.IntN(lineartest.Currencies), 1+c.random.Int64N(8)
		return o
	case n > 23:
		if w, ok := c.pick(r.unconfirmed); ok {
			o.Kind, o.Withdrawal = lineartest.ConfirmWithdrawal, w
			return o
		}
	case n < 13:
		if w, ok := c.pick(r.withdrawals); ok {
			o.Kind, o.Withdrawal = lineartest.ConfirmWithdrawal, w
			if c.random.IntN(2) == 0 {
				o.Kind = lineartest.CancelWithdrawal
			}
			return o
		}
	case n == 13:
		o.Kind, o.Pair = lineartest.CancelAll, c.random.IntN(lineartest.Pairs+1)-1
		return o
	}
	return c.drawOrder(o)
}

// drawAmend makes an amend of a cancel. No order has an amount above that of an amended one, so an
// amend never ends an order.
func (c *recordedClient) drawAmend(o *lineartest.Operation) {
	o.Kind = lineartest.Amend
	switch c.random.IntN(3) {
	case 0:
		o.Amount = amendedAmount
	case 1:
		o.Price, o.Amount = 98+c.random.Int64N(5), amendedAmount
	default:
		o.Price = 98 + c.random.Int64N(5)
	}
}

// amendedAmount is above the amount of each new order.
const amendedAmount = 5

// drawOrder returns a new order, or one with the client order id of another.
func (c *recordedClient) drawOrder(o lineartest.Operation) lineartest.Operation {
	r := c.r
	number, again := c.pick(r.again)
	if again = again && c.random.IntN(8) == 0; !again {
		number = len(r.sent) + 1
		r.again = append(r.again, known{account: o.Account, number: number})
	}
	return c.newOrder(o, number, c.random.IntN(lineartest.Pairs))
}

// newOrder returns an order of a number in a pair.
func (c *recordedClient) newOrder(o lineartest.Operation, number, pair int) lineartest.Operation {
	r := c.r
	o.Kind, o.Order, o.Pair, o.Buy = lineartest.Place, number, pair, c.random.IntN(2) == 0
	o.Price, o.Amount = 98+c.random.Int64N(5), 1+c.random.Int64N(amendedAmount-1)
	o.Force = forceOf(number)
	if number > len(r.sent) {
		r.sent = append(r.sent, known{account: o.Account, number: number})
	}
	return o
}

// forceOf returns what becomes of the rest of an order: of one in four it is cancelled.
func forceOf(number int) lineartest.Force {
	switch number % 8 {
	case 0:
		return lineartest.IOC
	case 1:
		return lineartest.FOK
	}
	return lineartest.Rests
}

// pick chooses one of the account's newest.
func (c *recordedClient) pick(known []known) (number int, ok bool) {
	for i := len(known) - 1 - c.random.IntN(4); i >= 0; i-- {
		if known[i].account == c.account {
			return known[i].number, true
		}
	}
	return 0, false
}

// An answer is a client's to one operation.
type answer struct {
	result lineartest.Result
	err    error
}

// do sends one operation, or a batch, and notes its results, unless patience ends before.
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
		go func() { // the client is not told how it ended, and the history that it did
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

// begin notes operations and returns what sends them; the recording is locked.
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

// end notes the answer to an operation.
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
		errors.Is(a.err, ErrStalled), unanswered != nil: // no actor has seen the order
		noted.Forget()
		c.count(o, &a.result, a.err)
	default:
		c.r.t.Errorf("%+v: %v", *o, a.err)
	}
}

// count notes what answers say beside the history.
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
		if row.Status != lineartest.Open {
			r.closed[row.Order] = true
		}
	}
}

// request returns the operation as the engine takes it, behind the checks of a gateway; the
// recording is locked.
func (c *recordedClient) request(e *Engine,
	o *lineartest.Operation) func() (lineartest.Result, error) {
	if o.Kind.Needs() == 0 {
		return c.unsigned(e, o)
	}
	r := c.r
	order, withdrawal := idOf(r.orders, o.Order), idOf(r.withdrawals, o.Withdrawal)
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

// permissions returns a history's permissions as the engine has them.
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

func idOf(list []known, number int) uint64 {
	for _, k := range list {
		if k.number == number {
			return k.id
		}
	}
	return 0
}

// unsigned returns an operator's request, or a look at a book.
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
	withdrawal := idOf(r.withdrawals, o.Withdrawal)
	move := func(to uint8) func() (lineartest.Result, error) {
		return func() (lineartest.Result, error) {
			return r.commanded(e, o, func() (*Command, error) {
				return e.MoveWithdrawal("test", withdrawal, to, "")
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
		wish := &OrderRequest{Pair: e.Pairs()[o.Pair], Side: trading.Sell, Price: price,
			Amount: amount, ClientID: named}
		if o.Buy {
			wish.Side = trading.Buy
		}
		if o.Force != lineartest.Rests {
			wish.Special = &SpecialRequest{Instructions: trading.Instructions{
				IOC: o.Force == lineartest.IOC, FOK: o.Force == lineartest.FOK}}
		}
		return NewOrder(key, o.Nonce, wish)
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

// commanded returns the result that a command's end gives.
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

// result returns the effect of an accepted command, and makes it known to all clients of the
// account.
func (r *recording) result(o *lineartest.Operation, c *Command) (result lineartest.Result) {
	result.Outcome = lineartest.Done
	r.mu.Lock()
	defer r.mu.Unlock()
	switch o.Kind {
	case lineartest.Place:
		made := &c.Record().Order
		r.entered(&result, made)
		result.ID, r.numbers[made.ID] = made.ID, o.Order
		r.orders, r.pairOf[o.Order] = append(r.orders, known{o.Account, o.Order, made.ID}), o.Pair
		if result.Remains == 0 || o.Force != lineartest.Rests {
			r.closed[o.Order] = true
		}
	case lineartest.Amend:
		r.entered(&result, &c.Record().Order)
		result.ID = c.Record().Amended.ID
	case lineartest.Cancel:
		result.ID, result.Remains = c.Record().Cancel.ID,
			coins(c.Record().Cancel.Remaining.Balance())
	case lineartest.CancelAll:
		result.Cancelled = slices.Clone(c.Cancelled())
	case lineartest.Withdrawal:
		w := known{o.Account, o.Withdrawal, c.Record().Withdrawal.ID}
		r.withdrawals, r.unconfirmed = append(r.withdrawals, w), append(r.unconfirmed, w)
	case lineartest.ConfirmWithdrawal, lineartest.CancelWithdrawal, lineartest.ApproveWithdrawal,
		lineartest.RefuseWithdrawal:
		of := func(k known) bool { return k.number == o.Withdrawal }
		r.unconfirmed = slices.DeleteFunc(r.unconfirmed, of)
		r.confirmed = slices.DeleteFunc(r.confirmed, of)
		if o.Kind == lineartest.ConfirmWithdrawal {
			r.confirmed = append(r.confirmed, known{account: o.Account, number: o.Withdrawal})
		}
	}
	return result
}

// entered returns what has become of an order that was placed or amended.
func (r *recording) entered(result *lineartest.Result, o *event.Order) {
	result.Remains = coins(o.Remaining.Balance())
	for _, t := range o.Trades {
		result.Trades = append(result.Trades,
			lineartest.Trade{ID: t.ID, Maker: r.numbers[t.Maker], Price: int64(t.Price) / 1e8,
				Amount: coins(t.Amount.Balance())})
	}
}

// units returns an amount of money as the history has it.
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
