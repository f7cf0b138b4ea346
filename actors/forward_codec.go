package actors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
	"exchange/core/wire"
)

// What a node that follows and the node that leads say to each other. Numbers are varints, texts
// have their length before them. The greeting has the digest of the market part, and its answer the
// seed of the challenges that logins sign. The node that follows begins:
//
//	commands number, key, nonce, gated, commands        -> outcomes
//	take     number, key, nonce, client order id or ""  -> taken
//	fence    number, key                                -> outcomes, of no command
//	lost     key, session
//	signed   number, key, nonce, gated, takes back, commands that are waited for, what was signed
//	                                                    -> outcomes
//
// An observer sends no commands but those that begin and end sessions. It passes on what a client
// has signed, and the node that leads makes the commands; behind a take there is what was signed,
// too.
//
// The commands of one message travel together, as those of Engine.DoAll. gated commands came
// through a gate, so they have no nonce, and those of one account go to its wallet in the order in
// which they come.
const (
	forwardVersion = 4

	forwardCommands = 2
	forwardTake     = 3
	forwardLost     = 4
	forwardFence    = 5
	forwardSigned   = 6

	forwardOutcomes = 102
	forwardTaken    = 103
)

// errForward refuses a message that the other node cannot have meant.
var errForward = errors.New("a message between nodes makes no sense")

// forwardable are the errors of commands and reads that travel as their place; 0: there is none.
var forwardable = [...]error{nil, ErrStopping, ErrStalled, ErrBusy, ErrAccountBusy, ErrBehind,
	ErrPaused, ErrMaintenance, ErrNoMail, ErrNotConfirmed, committed.ErrTimeout,
	committed.ErrKeyRevoked, committed.ErrNonce, ErrNotRead, ErrNotLoggedIn}

const (
	forwardNonce    = 12  // place of ErrNonce; the last nonce of the key follows
	forwardAnswered = 254 // its fields follow
	forwardOther    = 255 // of a history that did not answer; its text follows
)

func appendClientID(b []byte, id event.ClientID) []byte {
	at := len(b)
	b = id.Append(append(b, 0))
	b[at] = byte(len(b) - at - 1)
	return b
}

func appendFlag(b []byte, flag bool) []byte {
	if flag {
		return append(b, 1)
	}
	return append(b, 0)
}

// appendError writes why a request has no answer; nil: it has one.
func appendError(b []byte, err error) []byte {
	var nonce *committed.NonceError
	if errors.As(err, &nonce) {
		return binary.AppendUvarint(append(b, forwardNonce), nonce.Last)
	}
	if a, ok := errors.AsType[*Answered](err); ok {
		b = wire.AppendUints(append(b, forwardAnswered), uint64(a.Status), uint64(a.Wait))
		return wire.AppendText(appendFlag(b, a.Unproven), string(a.Body))
	}
	for place, known := range forwardable {
		if err == known { //nolint:errorlint // a wrapped one has more to say
			return append(b, byte(place))
		}
	}
	return wire.AppendText(append(b, forwardOther), err.Error())
}

// A forwardParser reads a message.
type forwardParser struct{ wire.Reader }

func parseForward(message []byte) *forwardParser { return &forwardParser{wire.Read(message)} }

func (p *forwardParser) fail() { p.Fail("a value that none can have") }

// done returns an error unless all of the message has been read, and makes sense.
func (p *forwardParser) done() error {
	if !p.End() {
		return errForward
	}
	return nil
}

func (p *forwardParser) price() money.Price {
	return money.Price(p.UpTo(uint64(money.MaxPrice)))
}

func (p *forwardParser) amount() money.Amount {
	return money.Amount(p.UpTo(uint64(money.MaxAmount)))
}

func (p *forwardParser) clientID() (id event.ClientID) {
	b := p.Bytes(event.MaxClientID)
	if len(b) == 0 {
		return id
	}
	id, err := event.NewClientID(b)
	if err != nil {
		p.fail()
	}
	return id
}

// side reads a side, or with none allowed also 0.
func (p *forwardParser) side(none bool) trading.Side {
	s := trading.Side(p.Byte())
	if s != trading.Buy && s != trading.Sell && (s != 0 || !none) {
		p.fail()
		return trading.Buy
	}
	return s
}

// error reads what appendError has written.
func (p *forwardParser) error() error {
	switch place := p.Byte(); {
	case place == forwardNonce:
		return &committed.NonceError{Last: p.Uint()}
	case int(place) < len(forwardable):
		return forwardable[place]
	case place == forwardAnswered:
		a := &Answered{Status: int(p.UpTo(599)), Wait: int(p.UpTo(math.MaxInt32)),
			Unproven: p.Flag()}
		a.Body = []byte(p.Text(forwardBody))
		return a
	case place == forwardOther:
		return committed.NoHistory(errors.New(p.Text(forwardText)))
	}
	p.fail()
	return nil
}

// forwardText bounds a text in bytes: an address, the reason of a refusal, an error.
const forwardText = 1 << 12

// appendCommand writes a client's command, but for its key and nonce.
func appendCommand(b []byte, c *Command) []byte {
	o := &c.order
	kind := c.kind
	if kind == event.KindWithdrawal && !c.withdrawal.clientID.IsZero() {
		kind = event.KindNamedWithdrawal
	}
	b = append(b, byte(kind))
	switch kind {
	case event.KindOrder:
		b = appendPair(b, c.pair)
		b = append(b, byte(o.side))
		b = binary.AppendUvarint(b, uint64(o.price))
		b = binary.AppendUvarint(b, uint64(o.amount))
		b = appendClientID(b, o.clientID)
		b = appendSpecial(b, c.special)
	case event.KindCancel:
		b = appendClientID(binary.AppendUvarint(b, o.id), o.clientID)
	case kindCancelAll:
		b = appendFilter(b, c)
	case event.KindAmended:
		a := &c.amend.AmendRequest
		b = appendClientID(binary.AppendUvarint(b, o.id), o.clientID)
		b = binary.AppendUvarint(b, uint64(a.Amount))
		b = binary.AppendUvarint(b, uint64(a.Price))
		b = binary.AppendUvarint(b, uint64(a.Display))
		b = binary.AppendUvarint(b, uint64(a.Trigger))
		b = binary.AppendUvarint(b, uint64(a.ExpireUs))
		b = appendFlag(appendFlag(b, a.PostOnly), a.Slide)
	case event.KindSettings:
		b = binary.AppendUvarint(b, uint64(c.setting))
	case event.KindSwitch:
		s := &c.switching
		b = binary.AppendUvarint(appendFilter(b, c), uint64(s.seconds))
		b = binary.AppendUvarint(binary.AppendUvarint(b, s.session), uint64(s.change))
		b = binary.AppendUvarint(b, s.instead)
	case event.KindWithdrawal, event.KindNamedWithdrawal:
		w := &c.withdrawal
		b = binary.AppendUvarint(b, uint64(w.currency))
		b = wire.AppendText(binary.AppendUvarint(b, uint64(w.amount)), w.address)
		if kind == event.KindNamedWithdrawal {
			b = appendClientID(b, w.clientID)
		}
	case event.KindWithdrawalMoved:
		w := &c.withdrawal
		b = wire.AppendText(append(binary.AppendUvarint(b, w.id), w.to), w.code)
	default:
		panic(fmt.Sprintf("BUG: a command of kind %d is no client's", c.kind))
	}
	return b
}

// appendPair writes the number of a pair; nil: 0.
func appendPair(b []byte, p *directory.Pair) []byte {
	if p == nil {
		return append(b, 0)
	}
	return binary.AppendUvarint(b, uint64(p.Number))
}

// appendFilter writes which orders a command is about.
func appendFilter(b []byte, c *Command) []byte {
	return appendClientID(append(appendPair(b, c.pair), byte(c.order.side)), c.order.clientID)
}

func appendSpecial(b []byte, s *SpecialRequest) []byte {
	if s == nil {
		return append(b, 0)
	}
	var flags byte
	for i, flag := range [...]bool{true, s.Market, s.IOC, s.FOK, s.PostOnly, s.SelfTradeGiven,
		s.Derived} {
		if flag {
			flags |= 1 << i
		}
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, uint64(s.ExpireUs))
	b = binary.AppendUvarint(b, uint64(s.Asked))
	b = binary.AppendUvarint(b, uint64(s.Display))
	b = binary.AppendUvarint(b, uint64(s.Quote))
	b = binary.AppendUvarint(b, uint64(s.SelfTrade))
	b = binary.AppendUvarint(b, uint64(s.OCO.Trigger))
	b = binary.AppendUvarint(b, uint64(s.OCO.Price))
	b = binary.AppendUvarint(b, uint64(s.Trigger.Price))
	return binary.AppendUvarint(b, uint64(s.Trigger.When))
}

// command reads what appendCommand has written. An error is in the parser; then there may be no
// command.
func (p *forwardParser) command(of *directory.Catalogue, key *directory.Key,
	nonce uint64) *Command {
	switch kind := event.Kind(p.Byte()); kind {
	case event.KindOrder:
		w := OrderRequest{Pair: p.pair(of, false), Side: p.side(false), Price: p.price(),
			Amount: p.amount(), ClientID: p.clientID(), Special: p.special()}
		if !p.Bad() && isPossible(&w) {
			return NewOrder(key, nonce, &w)
		}
	case event.KindCancel:
		id := p.Uint()
		return NewCancel(key, nonce, id, p.clientID())
	case kindCancelAll:
		return NewCancelAll(key, nonce, p.filter(of))
	case event.KindAmended:
		return NewAmend(key, nonce, &AmendRequest{Order: p.Uint(), ClientID: p.clientID(),
			Amount: p.amount(), Price: p.price(), Display: p.amount(), Trigger: p.price(),
			ExpireUs: p.Int63(), PostOnly: p.Flag(), Slide: p.Flag()})
	case event.KindSettings:
		return NewSettings(key, nonce, p.selfTrade())
	case event.KindSwitch:
		c := NewSwitch(key, nonce, 0, p.filter(of))
		c.switching.seconds = uint32(p.UpTo(event.MaxSwitchSeconds))
		c.switching.session = p.Uint()
		c.switching.change = sessionChange(p.UpTo(uint64(sessionLeaves)))
		c.switching.instead = p.Uint()
		return c
	case event.KindWithdrawal, event.KindNamedWithdrawal:
		currency := p.currency(of)
		amount := p.amount()
		if amount == 0 {
			p.fail()
		}
		c := NewWithdrawal(key, nonce, currency, amount, p.Text(forwardText))
		if kind == event.KindNamedWithdrawal {
			if c.Named(p.clientID()); c.withdrawal.clientID.IsZero() {
				p.fail()
			}
		}
		return c
	case event.KindWithdrawalMoved:
		id, to := p.Uint(), p.Byte()
		switch code := p.Text(forwardText); to {
		case event.WithdrawalVerified:
			return NewConfirmation(key, nonce, id, code)
		case event.WithdrawalCancelled:
			return NewWithdrawalCancel(key, nonce, id)
		}
	}
	p.fail()
	return nil
}

// isPossible reports whether a book can take an order, and the fold its record. The other node has
// held it against all rules; what it has overlooked must not end this one.
func isPossible(w *OrderRequest) bool {
	s := w.Special
	switch {
	case w.Price == 0:
		return false
	case s == nil:
		return w.Amount > 0 && w.Pair.PriceFault(w.Price) == "" &&
			w.Pair.AmountFault(w.Amount) == ""
	case s.Quote > 0:
		if w.Amount > 0 {
			return false
		}
	case w.Amount == 0 || w.Pair.AmountFault(w.Amount) != "":
		return false
	}
	return (s.Trigger.When == 0) == (s.Trigger.Price == 0) &&
		(s.Display == 0 || w.Pair.DisplayFault(s.Display, w.Amount) == "") &&
		state.Possible(w.Side, w.Price, &s.Instructions) == nil
}

// pair reads the number of a configured pair, or with none allowed also 0.
func (p *forwardParser) pair(of *directory.Catalogue, none bool) *directory.Pair {
	n := p.U16()
	if n == 0 && none {
		return nil
	}
	pair := of.Known(uint16(n))
	if pair == nil {
		p.fail()
	}
	return pair
}

// currency reads the number of a configured currency.
func (p *forwardParser) currency(of *directory.Catalogue) uint16 {
	n := p.U16()
	if of.Currency([]byte(of.CurrencyCode(n))) == nil {
		p.fail()
	}
	return n
}

func (p *forwardParser) filter(of *directory.Catalogue) CancelFilter {
	return CancelFilter{Pair: p.pair(of, true), Side: p.side(true), Prefix: p.clientID()}
}

func (p *forwardParser) selfTrade() trading.SelfTrade {
	return trading.SelfTrade(p.UpTo(uint64(trading.SelfTradeCancelBoth)))
}

func (p *forwardParser) special() *SpecialRequest {
	flags := p.Byte()
	if flags == 0 {
		return nil
	}
	if flags&1 == 0 || flags >= 1<<7 {
		p.fail()
	}
	s := new(SpecialRequest)
	s.Market, s.IOC, s.FOK = flags&2 != 0, flags&4 != 0, flags&8 != 0
	s.PostOnly, s.SelfTradeGiven, s.Derived = flags&16 != 0, flags&32 != 0, flags&64 != 0
	s.ExpireUs, s.Asked, s.Display, s.Quote = p.Int63(), p.price(), p.amount(), p.amount()
	s.SelfTrade = p.selfTrade()
	s.OCO = trading.OCO{Trigger: p.price(), Price: p.price()}
	s.Trigger = trading.Trigger{Price: p.price(),
		When: trading.Direction(p.UpTo(uint64(trading.Fall)))}
	return s
}

// What an outcome has beside its record. Its bits say which of these follow.
const (
	outcomeShortfall = 1 << iota
	outcomeBound
	outcomeLastNonce
	outcomeTakenBy
	outcomeFaults
	outcomeCancelled
	outcomeMoved
	outcomeMovedID // its client id, behind the rest of it
)

// appendOutcome writes how a command has ended.
func appendOutcome(b []byte, c *Command) []byte {
	b = append(b, byte(c.outcome))
	b = wire.AppendText(b, string(c.encoded))
	var bits byte
	for i, there := range [...]bool{c.shortfall != reservation{}, c.bound != 0, c.lastNonce != 0,
		c.takenBy != 0, len(c.faults) > 0, len(c.cancelled) > 0, c.moved.ID != 0,
		!c.moved.ClientID.IsZero()} {
		if there {
			bits |= 1 << i
		}
	}
	b = append(b, bits)
	if bits&outcomeShortfall != 0 {
		b = binary.AppendUvarint(b, uint64(c.shortfall.currency))
		b = wire.AppendBalance(b, c.shortfall.amount)
	}
	if bits&outcomeBound != 0 {
		b = binary.AppendUvarint(b, uint64(c.bound))
	}
	if bits&outcomeLastNonce != 0 {
		b = binary.AppendUvarint(b, c.lastNonce)
	}
	if bits&outcomeTakenBy != 0 {
		b = binary.AppendUvarint(b, c.takenBy)
	}
	if bits&outcomeFaults != 0 {
		b = binary.AppendUvarint(b, uint64(len(c.faults)))
		for _, f := range c.faults {
			b = wire.AppendText(wire.AppendText(b, f.Field), f.Text)
		}
	}
	if bits&outcomeCancelled != 0 {
		b = binary.AppendUvarint(b, uint64(len(c.cancelled)))
		for _, id := range c.cancelled {
			b = binary.AppendUvarint(b, id)
		}
	}
	if bits&outcomeMoved != 0 {
		b = appendMoved(b, c)
	}
	if bits&outcomeMovedID != 0 {
		b = appendClientID(b, c.moved.ClientID)
	}
	return b
}

func appendMoved(b []byte, c *Command) []byte {
	w := &c.moved
	b = binary.AppendUvarint(b, w.ID)
	b = binary.AppendUvarint(b, uint64(w.Account))
	b = binary.AppendUvarint(b, uint64(w.Currency))
	b = append(binary.AppendUvarint(b, uint64(w.Amount)), w.Status)
	b = binary.AppendUvarint(b, uint64(w.TimeUs))
	b = wire.AppendText(wire.AppendText(b, w.Address), w.Details)
	b = binary.AppendUvarint(b, uint64(w.Issue))
	b = binary.AppendUvarint(b, uint64(w.IssuedUs))
	b = binary.AppendUvarint(b, uint64(w.Tries))
	return appendFlag(appendFlag(b, w.Stale), w.Renewed)
}

// outcome reads what appendOutcome has written into the command.
func (p *forwardParser) outcome(c *Command) {
	outcome := Outcome(p.Byte())
	record := p.Bytes(math.MaxInt32)
	if outcome != Accepted && outcome != Refused {
		p.fail()
	}
	if len(record) > 0 {
		if rest, err := c.record.Decode(record); err != nil || len(rest) > 0 {
			p.fail()
		}
	}
	bits := p.Byte()
	if bits&outcomeShortfall != 0 {
		c.shortfall = reservation{p.U16(), p.Balance()}
	}
	if bits&outcomeBound != 0 {
		c.bound = p.price()
	}
	if bits&outcomeLastNonce != 0 {
		c.lastNonce = p.Uint()
	}
	if bits&outcomeTakenBy != 0 {
		c.takenBy = p.Uint()
	}
	if bits&outcomeFaults != 0 {
		for n := p.UpTo(uint64(p.Len())); n > 0 && !p.Bad(); n-- {
			c.faults = append(c.faults, Fault{p.Text(forwardText), p.Text(forwardText)})
		}
	}
	if bits&outcomeCancelled != 0 {
		for n := p.UpTo(uint64(p.Len())); n > 0 && !p.Bad(); n-- {
			c.cancelled = append(c.cancelled, p.Uint())
		}
	}
	if bits&outcomeMoved != 0 {
		p.moved(c)
	}
	if bits&outcomeMovedID != 0 {
		if c.moved.ClientID = p.clientID(); c.moved.ClientID.IsZero() {
			p.fail()
		}
	}
	c.outcome = outcome
}

func (p *forwardParser) moved(c *Command) {
	w := &c.moved
	w.ID, w.Account = p.Uint(), p.U32()
	w.Currency = p.U16()
	w.Amount, w.Status, w.TimeUs = p.amount(), p.Byte(), p.Int63()
	w.Address, w.Details = p.Text(forwardText), p.Text(forwardText)
	w.Issue, w.IssuedUs = p.U32(), p.Int63()
	w.Tries = p.U32()
	w.Stale, w.Renewed = p.Flag(), p.Flag()
}
