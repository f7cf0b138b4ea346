package actors

import (
	"context"
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
	"exchange/persistence"
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
	for range operationsOfEach {
		r := c.r
		r.mu.Lock()
		for r.e.Err() != nil {
			r.up.Wait()
		}
		e, o := r.e, c.draw()
		r.mu.Unlock()
		c.do(e, o)
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
	if key, ok := c.pick(r.keys); ok && c.random.IntN(5) == 0 {
		o.Key = key
	}
	if c.random.IntN(20) > 0 || r.nonces[o.Key] == 0 {
		r.nonces[o.Key]++
	}
	o.Nonce = r.nonces[o.Key]
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
	switch n := c.random.IntN(16); {
	case n < 5 && len(r.withdrawals) > 0:
		o.Kind = lineartest.ApproveWithdrawal
		if c.random.IntN(2) == 0 {
			o.Kind = lineartest.RefuseWithdrawal
		}
		w := r.withdrawals[c.random.IntN(len(r.withdrawals))]
		if n < 3 && len(r.confirmed) > 0 { // one that may still be approved
			o.Kind, w = lineartest.ApproveWithdrawal, r.confirmed[len(r.confirmed)-1]
		}
		o.Account, o.Withdrawal = w.account, w.number
	case n < 7:
		o.Kind, o.Currency, o.Amount = lineartest.Deposit, c.random.IntN(lineartest.Currencies),
			1+c.random.Int64N(2)
	case n < 9:
		r.keys = append(r.keys, known{account: account, number: 100 + len(r.keys)})
		o.Kind, o.Key, o.Permissions = lineartest.CreateKey, 99+len(r.keys),
			uint8(1+c.random.IntN(int(lineartest.MayAll)))
	case n < 11 && len(r.keys) > 0:
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
	switch n := c.random.IntN(27); {
	case n < 6, n > 23:
		if k, ok := c.pick(r.orders); ok {
			o.Kind, o.Order, o.Named = lineartest.Cancel, k, c.random.IntN(3) == 0
			switch {
			case n < 2 || forceOf(k) != lineartest.Rests: // a cancel of it would do nothing
				o.Kind = lineartest.ReadOrder
			case n > 23:
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
	case n < 13:
		if w, ok := c.pick(r.withdrawals); ok {
			o.Kind, o.Withdrawal = lineartest.ConfirmWithdrawal, w
			if c.random.IntN(3) == 0 {
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
	number, again := c.pick(r.sent)
	if again = again && c.random.IntN(8) == 0; !again {
		number = len(r.sent) + 1
	}
	o.Kind, o.Order, o.Pair, o.Buy = lineartest.Place, number, c.random.IntN(lineartest.Pairs),
		c.random.IntN(2) == 0
	o.Price, o.Amount = 98+c.random.Int64N(5), 1+c.random.Int64N(amendedAmount-1)
	o.Force = forceOf(number)
	if !again {
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

// do sends one operation and notes its result, unless patience ends before.
func (c *recordedClient) do(e *Engine, o lineartest.Operation) {
	r := c.r
	r.mu.Lock()
	patience := r.patience // before anything is sent
	noted := r.history.Begin(c.number, o)
	send := c.request(e, &o)
	r.mu.Unlock()
	type answer struct {
		result lineartest.Result
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		result, err := send()
		answers <- answer{result, err}
	}()
	var unanswered *committed.HistoryError
	select {
	case <-patience:
		go func() { // the client is not told how it ended, and the history that it did
			if a := <-answers; !errors.Is(a.err, committed.ErrTimeout) {
				noted.Settle()
			}
		}()
	case a := <-answers:
		switch {
		case a.err == nil:
			noted.End(a.result)
			c.count(&o, &a.result, nil)
		case errors.Is(a.err, committed.ErrTimeout):
		case errors.As(a.err, &unanswered) && o.Kind != lineartest.Place: // a read, in a crash
		case errors.Is(a.err, ErrStopping), errors.Is(a.err, ErrNotConfirmed),
			errors.Is(a.err, ErrStalled), unanswered != nil: // no actor has seen the order
			noted.Forget()
			c.count(&o, &a.result, a.err)
		default:
			r.t.Errorf("%+v: %v", o, a.err)
		}
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
		key := e.Key([]byte(keyName(o.Key)))
		switch {
		case key == nil:
			return lineartest.Result{Outcome: lineartest.RefusedKey}, nil
		case key.Permissions&permissions(o.Kind.Needs()) == 0:
			return lineartest.Result{Outcome: lineartest.RefusedPermission}, nil
		case key.Account.Frozen():
			return lineartest.Result{Outcome: lineartest.RefusedFrozen}, nil
		case o.Kind.Needs() == lineartest.MayRead:
			return r.readBy(e, key, o, order)
		}
		return r.commanded(e, o, func() (*Command, error) {
			return send(e, key, o, order, withdrawal)
		})
	}
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
	named, _ := event.NewClientID(strconv.Itoa(o.Order))
	switch o.Kind {
	case lineartest.Place:
		wish := &OrderRequest{Pair: e.Pairs()[o.Pair], Side: trading.Sell,
			Price: money.Price(o.Price) * 1e8, Amount: amount}
		if o.Buy {
			wish.Side = trading.Buy
		}
		wish.ClientID = named
		if o.Force != lineartest.Rests {
			wish.Special = &SpecialRequest{Instructions: trading.Instructions{
				IOC: o.Force == lineartest.IOC, FOK: o.Force == lineartest.FOK}}
		}
		return e.Place(key, o.Nonce, wish)
	case lineartest.Cancel:
		if o.Named {
			return e.cancelNamed(key, o.Nonce, named)
		}
		return e.Cancel(key, o.Nonce, order)
	case lineartest.Amend:
		change := &AmendRequest{Order: order, Price: money.Price(o.Price) * 1e8, Amount: amount}
		if o.Named {
			change.Order, change.ClientID = 0, named
		}
		return e.Amend(key, o.Nonce, change)
	case lineartest.CancelAll:
		var pair *directory.Pair
		if o.Pair != lineartest.AllPairs {
			pair = e.Pairs()[o.Pair]
		}
		return e.CancelAll(key, o.Nonce, CancelFilter{Pair: pair})
	case lineartest.Withdrawal:
		return e.Withdraw(key, o.Nonce, uint16(o.Currency+1), amount, strconv.Itoa(o.Withdrawal))
	case lineartest.ConfirmWithdrawal:
		code, err := askCode(e, withdrawal)
		if err != nil {
			return nil, err
		}
		return e.ConfirmWithdrawal(key, o.Nonce, withdrawal, code)
	}
	return e.CancelWithdrawal(key, o.Nonce, withdrawal)
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
		r.withdrawals = append(r.withdrawals,
			known{o.Account, o.Withdrawal, c.Record().Withdrawal.ID})
	case lineartest.ConfirmWithdrawal:
		r.confirmed = append(r.confirmed, known{account: o.Account, number: o.Withdrawal})
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
	byID, named := &committed.OneOrder{ID: order}, new(committed.NamedOrder)
	open := &committed.OpenOrders{Limit: 1000}
	pending, wallet := &committed.PendingWithdrawals{Limit: 1000}, new(committed.Wallet)
	read := map[lineartest.Kind]committed.Question{lineartest.ReadOrder: byID,
		lineartest.ReadOpen: open, lineartest.ReadWallet: wallet,
		lineartest.ReadPending: pending}[o.Kind]
	if o.Kind == lineartest.ReadOrder && order == 0 { // no client was told its id
		named.ClientID, _ = event.NewClientID(strconv.Itoa(o.Order))
		read = named
	}
	var last *committed.NonceError
	switch err := e.Ask(read, key, o.Nonce); {
	case errors.As(err, &last):
		return lineartest.Result{Outcome: lineartest.RefusedNonce, LastNonce: last.Last}, nil
	case errors.Is(err, committed.ErrKeyRevoked):
		return lineartest.Result{Outcome: lineartest.RefusedKey}, nil
	case err != nil:
		return result, err
	}
	rows := append(open.Orders, named.Orders...)
	if byID.Found {
		rows = append(rows, byID.Order)
	}
	if o.Kind == lineartest.ReadOrder && len(rows) == 0 {
		rows, err = r.inHistory(e, key.Account.ID, o.Order, order, named.Stored)
		if err != nil {
			return result, err
		}
	}
	for _, row := range rows {
		number, err := strconv.Atoi(row.ClientID)
		if err != nil {
			return result, err
		}
		status := lineartest.Open
		switch row.Status {
		case trading.StatusDone:
			status = lineartest.Filled
		case trading.StatusCancelled:
			status = lineartest.Cancelled
		}
		result.Orders = append(result.Orders,
			lineartest.OrderRow{Order: number, ID: row.ID, Status: status,
				Remains: coins(row.Remaining.Balance())})
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
// order id if no answer told the id.
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
