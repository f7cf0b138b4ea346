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

// The encoding of commands between nodes, and of the knownErrors that come back. Numbers are
// varints, texts are length-prefixed.

// ErrMalformed refuses a message that no correct node sends.
var ErrMalformed = errors.New("malformed message from another node")

// knownErrors are the errors of commands and reads that are sent as their index; 0: none.
var knownErrors = [...]error{nil, ErrStopping, ErrStalled, ErrBusy, ErrAccountBusy, ErrBehind,
	ErrPaused, ErrMaintenance, ErrNoMail, ErrNotConfirmed, committed.ErrTimeout,
	committed.ErrKeyRevoked, committed.ErrNonce, ErrNotLoggedIn}

const (
	placeNonce    = 12  // index of ErrNonce; the key's last nonce follows
	placeAnswered = 254 // its fields follow
	placeOther    = 255 // any other; its text follows
)

// AppendClientID writes a client id; zero: none.
func AppendClientID(b []byte, id event.ClientID) []byte {
	at := len(b)
	b = id.Append(append(b, 0))
	b[at] = byte(len(b) - at - 1)
	return b
}

// AppendError writes why a request has no answer; nil: it has one.
func AppendError(b []byte, err error) []byte {
	var nonce *committed.NonceError
	if errors.As(err, &nonce) {
		return binary.AppendUvarint(append(b, placeNonce), nonce.Last)
	}
	if a, ok := errors.AsType[*RemoteAnswer](err); ok {
		return wire.AppendValue(append(b, placeAnswered), a)
	}
	for place, known := range knownErrors {
		if err == known { //nolint:errorlint // a wrapped one has more to say
			return append(b, byte(place))
		}
	}
	return wire.AppendText(append(b, placeOther), err.Error())
}

// A Parser reads a message of another node.
type Parser struct{ wire.Reader }

// Parse begins to read a message.
func Parse(message []byte) *Parser { return &Parser{wire.Read(message)} }

// Done returns ErrMalformed unless the whole message has been read, and is valid.
func (p *Parser) Done() error {
	if !p.End() {
		return ErrMalformed
	}
	return nil
}

func (p *Parser) price() money.Price {
	return money.Price(p.UpTo(uint64(money.MaxPrice)))
}

func (p *Parser) amount() money.Amount {
	return money.Amount(p.UpTo(uint64(money.MaxAmount)))
}

// ClientID reads the output of AppendClientID.
func (p *Parser) ClientID() (id event.ClientID) {
	b := p.Bytes(event.MaxClientID)
	if len(b) == 0 {
		return id
	}
	id, err := event.NewClientID(b)
	p.Check(err == nil)
	return id
}

// side reads a side; none also allows 0.
func (p *Parser) side(none bool) trading.Side {
	s := trading.Side(p.Byte())
	if s != trading.Buy && s != trading.Sell && (s != 0 || !none) {
		p.Check(false)
		return trading.Buy
	}
	return s
}

// Error reads the output of AppendError.
func (p *Parser) Error() error {
	switch place := p.Byte(); {
	case place == placeNonce:
		return &committed.NonceError{Last: p.Uint()}
	case int(place) < len(knownErrors):
		return knownErrors[place]
	case place == placeAnswered:
		a := new(RemoteAnswer)
		p.Answer(a)
		return a
	case place == placeOther:
		return committed.NoHistory(errors.New(p.Text(MaxText)))
	}
	p.Check(false)
	return nil
}

// Answer reads an answer written by wire.AppendValue.
func (p *Parser) Answer(a *RemoteAnswer) {
	p.Value(a)
	p.Check(a.Status >= 0 && a.Status <= 599 && a.Wait >= 0)
}

// MaxText bounds a text in bytes: an address, the reason of a refusal, an error.
const MaxText = 1 << 12

// A transfer is a client's request about its withdrawals, as encoded.
type transfer struct {
	Currency   uint16
	Amount     money.Amount
	Address    string
	ClientID   event.ClientID
	ID         uint64 // of an existing one, which gets NextStatus
	NextStatus uint8
	Code       string
}

// AppendCommand writes a client's command, without its key and nonce.
func AppendCommand(b []byte, c *Command) []byte {
	o := &c.order
	b = append(b, byte(c.kind))
	switch c.kind {
	case event.KindOrder:
		b = appendPair(b, c.pair)
		b = append(b, byte(o.side))
		b = binary.AppendUvarint(b, uint64(o.price))
		b = binary.AppendUvarint(b, uint64(o.amount))
		b = AppendClientID(b, o.clientID)
		b = appendSpecial(b, c.special)
	case event.KindCancel:
		b = AppendClientID(binary.AppendUvarint(b, o.id), o.clientID)
	case kindCancelAll:
		b = appendFilter(b, c)
	case event.KindAmended:
		a := &c.amend.AmendRequest
		b = AppendClientID(binary.AppendUvarint(b, o.id), o.clientID)
		b = binary.AppendUvarint(b, uint64(a.Amount))
		b = binary.AppendUvarint(b, uint64(a.Price))
		b = binary.AppendUvarint(b, uint64(a.Display))
		b = binary.AppendUvarint(b, uint64(a.Trigger))
		b = binary.AppendUvarint(b, uint64(a.ExpireUs))
		b = wire.AppendFlag(wire.AppendFlag(b, a.PostOnly), a.Slide)
	case event.KindSettings:
		b = binary.AppendUvarint(b, uint64(c.setting))
	case event.KindSwitch:
		s := &c.switchRequest
		b = binary.AppendUvarint(appendFilter(b, c), uint64(s.seconds))
		b = binary.AppendUvarint(binary.AppendUvarint(b, s.session), uint64(s.change))
		b = binary.AppendUvarint(b, s.instead)
	case event.KindWithdrawal, event.KindWithdrawalStatus:
		w := &c.withdrawal
		b = wire.AppendValue(b, &transfer{w.currency, w.amount, w.address, w.clientID, w.id,
			w.nextStatus, w.code})
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

// appendFilter writes a command's filter of orders.
func appendFilter(b []byte, c *Command) []byte {
	return AppendClientID(append(appendPair(b, c.pair), byte(c.order.side)), c.order.clientID)
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

// Command reads the output of AppendCommand. An error is in the parser; the command may then be
// nil.
func (p *Parser) Command(of *directory.Catalogue, key *directory.Key,
	nonce uint64) *Command {
	switch kind := event.Kind(p.Byte()); kind {
	case event.KindOrder:
		w := OrderRequest{Pair: p.pair(of, false), Side: p.side(false), Price: p.price(),
			Amount: p.amount(), ClientID: p.ClientID(), Special: p.special()}
		if !p.Bad() && isPossible(&w) {
			return NewOrder(key, nonce, &w)
		}
	case event.KindCancel:
		id := p.Uint()
		return NewCancel(key, nonce, id, p.ClientID())
	case kindCancelAll:
		return NewCancelAll(key, nonce, p.filter(of))
	case event.KindAmended:
		return NewAmend(key, nonce, &AmendRequest{Order: p.Uint(), ClientID: p.ClientID(),
			Amount: p.amount(), Price: p.price(), Display: p.amount(), Trigger: p.price(),
			ExpireUs: p.Int63(), PostOnly: p.Flag(), Slide: p.Flag()})
	case event.KindSettings:
		return NewSettings(key, nonce, p.selfTrade())
	case event.KindSwitch:
		c := NewSwitch(key, nonce, 0, p.filter(of))
		c.switchRequest.seconds = uint32(p.UpTo(event.MaxSwitchSeconds))
		c.switchRequest.session = p.Uint()
		c.switchRequest.change = SessionChange(p.UpTo(uint64(SessionLeaves)))
		c.switchRequest.instead = p.Uint()
		return c
	case event.KindWithdrawal, event.KindWithdrawalStatus:
		var w transfer
		p.Value(&w)
		p.Check(len(w.Address) <= MaxText && len(w.Code) <= MaxText)
		switch {
		case kind == event.KindWithdrawal:
			p.Check(w.Amount > 0 && w.Amount <= money.MaxAmount &&
				of.Currency([]byte(of.CurrencyCode(w.Currency))) != nil)
			return NewWithdrawal(key, nonce, w.Currency, w.Amount, w.Address).
				WithClientID(w.ClientID)
		case w.NextStatus == event.WithdrawalVerified:
			return NewConfirmation(key, nonce, w.ID, w.Code)
		case w.NextStatus == event.WithdrawalCancelled:
			return NewWithdrawalCancel(key, nonce, w.ID)
		}
	}
	p.Check(false)
	return nil
}

// isPossible reports whether a book accepts an order, and the fold its record. The other node has
// checked it against all rules; its oversights must not end this process.
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
		state.CheckInstructions(w.Side, w.Price, &s.Instructions) == nil
}

// pair reads the number of a configured pair; none also allows 0.
func (p *Parser) pair(of *directory.Catalogue, none bool) *directory.Pair {
	n := p.U16()
	if n == 0 && none {
		return nil
	}
	pair := of.Configured(uint16(n))
	p.Check(pair != nil)
	return pair
}

func (p *Parser) filter(of *directory.Catalogue) CancelFilter {
	return CancelFilter{Pair: p.pair(of, true), Side: p.side(true), Prefix: p.ClientID()}
}

func (p *Parser) selfTrade() trading.SelfTrade {
	return trading.SelfTrade(p.UpTo(uint64(trading.SelfTradeCancelBoth)))
}

func (p *Parser) special() *SpecialRequest {
	flags := p.Byte()
	if flags == 0 {
		return nil
	}
	p.Check(flags&1 == 1 && flags < 1<<7)
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

// The parts of an outcome beside its record. Bits say which of these follow.
const (
	outcomeShortfall = 1 << iota
	outcomeBound
	outcomeLastNonce
	outcomeTakenBy // RefusedHeld: the end of the hold instead
	outcomeFaults
	outcomeCancelled
	outcomeWithdrawal
)

// AppendOutcome writes the outcome of a command.
func AppendOutcome(b []byte, c *Command) []byte {
	b = append(b, byte(c.outcome))
	b = wire.AppendText(b, string(c.encoded))
	takenBy := max(c.takenBy, uint64(c.holdEndsUs)) // only one is set
	var bits byte
	for i, there := range [...]bool{c.shortfall != reservation{}, c.bound != 0, c.lastNonce != 0,
		takenBy != 0, len(c.faults) > 0, len(c.cancelledOrders) > 0, c.changedWithdrawal.ID != 0} {
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
		b = binary.AppendUvarint(b, takenBy)
	}
	if bits&outcomeFaults != 0 {
		b = wire.AppendValue(b, &c.faults)
	}
	if bits&outcomeCancelled != 0 {
		b = binary.AppendUvarint(b, uint64(len(c.cancelledOrders)))
		for _, id := range c.cancelledOrders {
			b = binary.AppendUvarint(b, id)
		}
	}
	if bits&outcomeWithdrawal != 0 {
		b = wire.AppendValue(b, &c.changedWithdrawal)
	}
	return b
}

// Outcome reads the output of AppendOutcome into the command.
func (p *Parser) Outcome(c *Command) {
	outcome := Outcome(p.Byte())
	record := p.Bytes(math.MaxInt32)
	p.Check(outcome == Accepted || outcome == Refused)
	if len(record) > 0 {
		rest, err := c.record.Decode(record)
		p.Check(err == nil && len(rest) == 0)
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
		if c.takenBy = p.Uint(); c.record.Refusal.Reason == event.RefusedHeld {
			c.takenBy, c.holdEndsUs = 0, int64(c.takenBy)
		}
	}
	if bits&outcomeFaults != 0 {
		p.Value(&c.faults)
	}
	if bits&outcomeCancelled != 0 {
		for n := p.UpTo(uint64(p.Len())); n > 0 && !p.Bad(); n-- {
			c.cancelledOrders = append(c.cancelledOrders, p.Uint())
		}
	}
	if bits&outcomeWithdrawal != 0 {
		p.Value(&c.changedWithdrawal)
	}
	c.outcome = outcome
}
