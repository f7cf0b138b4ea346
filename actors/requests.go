package actors

import (
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// An OrderRequest is what a client asks for, with its fields checked against the pair's rules.
type OrderRequest struct {
	Pair     *directory.Pair
	Side     trading.Side
	Price    money.Price
	Amount   money.Amount
	ClientID event.ClientID
	// nil: a plain order
	Special *SpecialRequest
}

// A SpecialRequest is what an order says beyond its side, price and amount. An order that spends a
// sum has Quote, and an amount of 0.
type SpecialRequest struct {
	trading.Instructions                 // as asked; without Prevented and Cancelled
	Trigger              trading.Trigger // of an order that waits outside the book; zero: none
	SelfTradeGiven       bool            // false: the account's setting counts
}

// An AmendRequest is a change of an open order. The book of the order holds it against the rules of
// the pair.
// Fields of 0 change nothing.
type AmendRequest struct {
	Order    uint64 // 0: the one with ClientID
	ClientID event.ClientID
	Amount   money.Amount // the new original amount
	Price    money.Price
	Display  money.Amount
	Trigger  money.Price // of an order that waits for one
	ExpireUs int64       // Unix microseconds
	PostOnly bool        // it never takes from now on
	Slide    bool        // where it would take, it moves to a price at which it does not
}

// changesAmountAlone reports whether the amount is all that changes.
func (a *AmendRequest) changesAmountAlone() bool {
	alone := AmendRequest{Order: a.Order, ClientID: a.ClientID, Amount: a.Amount}
	return a.Amount > 0 && *a == alone
}

// A CancelFilter says which open orders are to be cancelled; zero fields do not filter.
type CancelFilter struct {
	Pair   *directory.Pair
	Side   trading.Side
	Prefix event.ClientID // the beginning of client order ids
}

// An orderRequest has the fields of a KindOrder, a KindCancel or a kindCancelAll. All kinds use the
// nonce.
type orderRequest struct {
	nonce  uint64
	id     uint64       // KindCancel; the wallet finds it if the client names clientID
	side   trading.Side // kindCancelAll: the only one, or 0
	price  money.Price
	amount money.Amount
	// KindCancel and KindAmended: instead of id, if it is not zero; kindCancelAll and KindSwitch:
	// the beginning of the ids
	clientID event.ClientID
}

// An amendRequest has the fields of a KindAmended beside the order's id.
type amendRequest struct {
	AmendRequest
	selfTrade trading.SelfTrade // the account's setting, from its wallet
}

// A switchRequest has the fields of a KindSwitch. The filter is where a kindCancelAll has it.
type switchRequest struct {
	seconds uint32 // 0: it is disarmed, unless it is that of sessions
	// of a switch that fires, which no client asks for; the zero switchID: it does not
	fires switchID
	dueUs int64

	session uint64        // number of the session that the command is about; 0: it is about none
	change  SessionChange // of the session
	instead uint64        // SessionBegins: the session that it ends; 0: none
}

// A withdrawalRequest has the fields of a KindWithdrawal or a KindWithdrawalMoved.
type withdrawalRequest struct {
	id       uint64
	currency uint16
	amount   money.Amount
	address  string
	clientID event.ClientID // zero: none
	to       uint8          // KindWithdrawalMoved: the next status
	code     string         // from its owner, to confirm it
	details  string         // from an operator, when it is refused

	despiteFreeze bool // from an operator, when it is approved
}

// A switchID names one of the two switches of an API key.
type switchID struct {
	key     uint32 // number
	session bool   // that of the key's sessions, not that of its calls
}

// number returns a number that no other switch has.
func (id switchID) number() uint64 {
	n := uint64(id.key) << 1
	if id.session {
		n++
	}
	return n
}

// reason returns why an order was cancelled that the switch cancelled.
func (id switchID) reason() trading.Reason {
	if id.session {
		return trading.CancelledDisconnect
	}
	return trading.CancelledSwitch
}

func switchOf(s *event.Switch) switchID { return switchID{s.Key, s.Session} }

// A reservation is an amount of a currency that a command has set aside in its wallet.
type reservation struct {
	currency uint16
	amount   money.Balance
}
