package lineartest

import (
	"math/rand/v2"
	"slices"
)

// A item is an order, a withdrawal or a key of an account.
type item struct {
	Account, Number int
	id              uint64 // as sent to its account
}

// A Workload is the requests of one history's clients so far, and their answers. A client that
// draws has exclusive access meanwhile.
type Workload struct {
	// Number of the key for parallel use. Its nonces come in any order, like those of several
	// connections: any of some may be sent next.
	parallelKey int
	// Orders then rest. None is amended, and only a batch names one by its client order id.
	plain bool

	Orders, Withdrawals []item       // acknowledged
	Sent                []item       // orders with any outcome
	Closed              map[int]bool // orders seen closed
	Frozen              map[int]bool // accounts, by the last request

	sharedNumbers []item // orders whose number another order may share
	keys          []item // requested beside each client's own
	unconfirmed   []item // withdrawals with nothing further acknowledged
	confirmed     []item // those with nothing acknowledged after the confirmation
	withdrawn     int    // numbers assigned to withdrawals
	pairs         map[int]int
	nonces        map[int]uint64 // greatest of each key
	skippedNonces []uint64       // of the key for parallel use, below the greatest and not sent
}

// maxSkippedNonces is the number of nonces of the key for parallel use that may be sent next.
const maxSkippedNonces = 6

// NewWorkload returns the drawing of a new history.
func NewWorkload(parallelKey int, plain bool) *Workload {
	return &Workload{parallelKey: parallelKey, plain: plain, Closed: map[int]bool{},
		Frozen: map[int]bool{}, pairs: map[int]int{}, nonces: map[int]uint64{}}
}

// Nonce returns the next nonce of a key.
func (d *Workload) Nonce(key int) uint64 {
	d.nonces[key]++
	return d.nonces[key]
}

// IDOf returns the id of an order or a withdrawal; 0: no client received it.
func IDOf(list []item, number int) uint64 {
	for _, k := range list {
		if k.Number == number {
			return k.id
		}
	}
	return 0
}

// Acknowledge records the answer to an operation, and the id that it created.
func (d *Workload) Acknowledge(o *Operation, r *Result, id uint64) {
	for _, row := range r.Orders {
		d.Closed[row.Order] = d.Closed[row.Order] || row.Status != Open
	}
	if r.Outcome != Done {
		return
	}
	made := item{o.Account, o.Order, id}
	switch o.Kind {
	case Place:
		d.Orders, d.pairs[o.Order] = append(d.Orders, made), o.Pair
		d.Closed[o.Order] = d.Closed[o.Order] || r.Remains == 0 || o.Force != Rests
	case Withdrawal:
		made.Number = o.Withdrawal
		d.Withdrawals, d.unconfirmed = append(d.Withdrawals, made), append(d.unconfirmed, made)
	case ConfirmWithdrawal, CancelWithdrawal, ApproveWithdrawal, RefuseWithdrawal:
		of := func(k item) bool { return k.Number == o.Withdrawal }
		d.unconfirmed = slices.DeleteFunc(d.unconfirmed, of)
		d.confirmed = slices.DeleteFunc(d.confirmed, of)
		if o.Kind == ConfirmWithdrawal {
			d.confirmed = append(d.confirmed, item{Account: o.Account, Number: o.Withdrawal})
		}
	}
}

// A Client is a client that chooses its operations.
type Client struct {
	*Workload
	Random       *rand.Rand
	Account, Key int // its own
}

// pick chooses one of the account's newest.
func (c *Client) pick(list []item) (number int, ok bool) {
	for i := len(list) - 1 - c.Random.IntN(4); i >= 0; i-- {
		if list[i].Account == c.Account {
			return list[i].Number, true
		}
	}
	return 0, false
}

// Sign chooses the key and the nonce of an operation: sometimes another key than the client's own,
// or a used nonce.
func (c *Client) Sign(o *Operation) {
	o.Key = c.Key
	if key, ok := c.pick(c.keys); ok && c.Random.IntN(4) == 0 {
		o.Key = key
	}
	greatest := c.nonces[o.Key]
	switch again := c.Random.IntN(20) == 0 && greatest > 0; {
	case o.Key == c.parallelKey && again:
		o.Nonce = greatest - c.Random.Uint64N(min(greatest, maxSkippedNonces))
	case o.Key == c.parallelKey:
		for len(c.skippedNonces) < maxSkippedNonces {
			c.skippedNonces = append(c.skippedNonces, c.Nonce(o.Key))
		}
		at := c.Random.IntN(maxSkippedNonces)
		o.Nonce = c.skippedNonces[at]
		c.skippedNonces = slices.Delete(c.skippedNonces, at, at+1)
	case again:
		o.Nonce = greatest
	default:
		o.Nonce = c.Nonce(o.Key)
	}
}

// Operate chooses an operator's operation; an operator reads books, too.
func (c *Client) Operate() Operation {
	account := c.Random.IntN(FeeAccount)
	o := Operation{Account: account}
	switch n := c.Random.IntN(18); {
	case n > 14 && len(c.confirmed) > 0: // one that may still be approved
		w := c.confirmed[c.Random.IntN(len(c.confirmed))]
		o.Kind, o.Account, o.Withdrawal = ApproveWithdrawal, w.Account, w.Number
	case n < 3 && len(c.Withdrawals) > 0:
		o.Kind = ApproveWithdrawal
		if c.Random.IntN(2) == 0 {
			o.Kind = RefuseWithdrawal
		}
		w := c.Withdrawals[c.Random.IntN(len(c.Withdrawals))]
		o.Account, o.Withdrawal = w.Account, w.Number
	case n < 7:
		o.Kind, o.Currency, o.Amount = Deposit, c.Random.IntN(Currencies), 1+c.Random.Int64N(2)
		if n == 6 {
			o.Kind = Adjustment
		}
	case n < 9:
		c.keys = append(c.keys, item{Account: account, Number: 100 + len(c.keys)})
		o.Kind, o.Key, o.Permissions = CreateKey, 99+len(c.keys),
			uint8(1+c.Random.IntN(int(MayAll)))
	case n < 12 && len(c.keys) > 0:
		k := c.keys[max(0, len(c.keys)-1-c.Random.IntN(3))]
		o.Kind, o.Account, o.Key = RevokeKey, k.Account, k.Number
	case n < 14:
		for frozen, is := range c.Frozen {
			if is {
				account = frozen
			}
		}
		c.Frozen[account] = !c.Frozen[account]
		o.Kind, o.Account, o.On = Freeze, account, c.Frozen[account]
	default:
		o.Kind, o.Pair = ReadBook, c.Random.IntN(Pairs)
	}
	return o
}

// Draw chooses a client's next request for its account: one operation, or sometimes a batch.
func (c *Client) Draw() []Operation {
	if c.Random.IntN(6) > 0 {
		return []Operation{c.DrawOne()}
	}
	list := c.batch()
	c.Sign(&list[0])
	for i := range list {
		list[i].Key, list[i].Nonce = list[0].Key, list[0].Nonce
	}
	return list
}

// DrawOne is Draw without batches.
func (c *Client) DrawOne() Operation {
	o := c.own()
	if o.Kind.Needs() != 0 {
		c.Sign(&o)
	}
	return o
}

func (c *Client) own() Operation {
	o := Operation{Account: c.Account}
	switch n := c.Random.IntN(29); {
	case n < 6, n > 25:
		if k, ok := c.pick(c.Orders); ok {
			o.Kind, o.Order, o.Pair = Cancel, k, c.pairs[k]
			o.Named = !c.plain && c.Random.IntN(3) == 0
			switch {
			case n < 2 || c.forceOf(k) != Rests: // a cancel of it would have no effect
				o.Kind = ReadOrder
			case n > 25 && !c.plain:
				c.amend(&o)
			}
			return o
		}
	case n == 6:
		o.Kind = ReadOpen
		return o
	case n < 9:
		o.Kind = ReadWallet
		return o
	case n == 9:
		o.Kind, o.Pair = ReadBook, c.Random.IntN(Pairs)
		return o
	case n == 10:
		c.withdrawn++
		o.Kind, o.Withdrawal, o.Currency, o.Amount = Withdrawal, c.withdrawn,
			c.Random.IntN(Currencies), 1+c.Random.Int64N(8)
		return o
	case n > 23:
		if w, ok := c.pick(c.unconfirmed); ok {
			o.Kind, o.Withdrawal = ConfirmWithdrawal, w
			return o
		}
	case n < 13:
		if w, ok := c.pick(c.Withdrawals); ok {
			o.Kind, o.Withdrawal = ConfirmWithdrawal, w
			if c.Random.IntN(2) == 0 {
				o.Kind = CancelWithdrawal
			}
			return o
		}
	case n == 13:
		o.Kind, o.Pair = CancelAll, c.Random.IntN(Pairs+1)-1
		return o
	}
	return c.order()
}

// amend turns a cancel into an amend. No order has an amount above that of an amended one, so an
// amend never closes an order.
func (c *Client) amend(o *Operation) {
	o.Kind = Amend
	switch c.Random.IntN(3) {
	case 0:
		o.Amount = amendedAmount
	case 1:
		o.Price, o.Amount = 98+c.Random.Int64N(5), amendedAmount
	default:
		o.Price = 98 + c.Random.Int64N(5)
	}
}

// amendedAmount is above the amount of each new order.
const amendedAmount = 5

// order returns a new order, or one with the client order id of another.
func (c *Client) order() Operation {
	number, again := c.pick(c.sharedNumbers)
	if again = again && c.Random.IntN(8) == 0; !again {
		number = len(c.Sent) + 1
		c.sharedNumbers = append(c.sharedNumbers, item{Account: c.Account, Number: number})
	}
	return c.newOrder(number)
}

// newOrder returns an order with a number.
func (c *Client) newOrder(number int) Operation {
	if number > len(c.Sent) {
		c.Sent = append(c.Sent, item{Account: c.Account, Number: number})
	}
	return Operation{Kind: Place, Account: c.Account, Order: number, Pair: c.Random.IntN(Pairs),
		Buy: c.Random.IntN(2) == 0, Price: 98 + c.Random.Int64N(5),
		Amount: 1 + c.Random.Int64N(amendedAmount-1), Force: c.forceOf(number)}
}

// forceOf returns the treatment of an order's rest: for one in four it is cancelled.
func (c *Client) forceOf(number int) Force {
	switch {
	case c.plain || number%8 > 1:
		return Rests
	case number%8 == 1:
		return FOK
	}
	return IOC
}

// batch chooses a new order, and up to three more operations. Some concern the new order. Some are
// for the other pair.
func (c *Client) batch() []Operation {
	// No other client repeats the number, so the pair of an operation that names it is certain.
	first := c.newOrder(len(c.Sent) + 1)
	list := []Operation{first}
	for range 1 + c.Random.IntN(3) {
		next := Operation{Account: c.Account, Order: first.Order, Pair: first.Pair, Named: true}
		if k, ok := c.pick(c.Orders); ok && c.Random.IntN(3) == 0 {
			next.Order, next.Pair, next.Named = k, c.pairs[k], c.plain || c.Random.IntN(2) == 0
		}
		switch n := c.Random.IntN(5); {
		case n < 2 || c.forceOf(next.Order) != Rests:
			next = c.order()
		case n == 2 || c.plain:
			next.Kind = Cancel
		default:
			c.amend(&next)
		}
		list = append(list, next)
	}
	return list
}
