package actors

import (
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// An OrderRequest is a client's order, with its fields checked against the pair's rules.
type OrderRequest struct {
	Pair     *directory.Pair
	Side     trading.Side
	Price    money.Price
	Amount   money.Amount
	ClientID event.ClientID
	// nil: a plain order
	Special *SpecialRequest
}

// A SpecialRequest holds an order's instructions beyond side, price and amount. An order that
// spends a sum has Quote, and an amount of 0.
type SpecialRequest struct {
	trading.Instructions                 // as requested; without Prevented and Cancelled
	Trigger              trading.Trigger // of an order that waits outside the book; zero: none
	SelfTradeGiven       bool            // false: the account's setting applies
}

// An AmendRequest is a change of an open order. The order's book checks it against the rules of the
// pair. Fields of 0 change nothing.
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

// changesAmountAlone reports whether only the amount changes.
func (a *AmendRequest) changesAmountAlone() bool {
	alone := AmendRequest{Order: a.Order, ClientID: a.ClientID, Amount: a.Amount}
	return a.Amount > 0 && *a == alone
}

// A CancelFilter selects the open orders to cancel; zero fields do not filter.
type CancelFilter struct {
	Pair   *directory.Pair
	Side   trading.Side
	Prefix event.ClientID // of client order ids
}

// An orderRequest holds the fields of a KindOrder, a KindCancel or a kindCancelAll. All kinds use
// the nonce.
type orderRequest struct {
	nonce  uint64
	id     uint64       // KindCancel; the wallet finds it if the client names clientID
	side   trading.Side // kindCancelAll: the only one, or 0
	price  money.Price
	amount money.Amount
	// KindCancel and KindAmended: instead of id, if not zero; kindCancelAll and KindSwitch: the
	// prefix of the ids
	clientID event.ClientID
}

// An amendRequest holds the fields of a KindAmended beside the order's id.
type amendRequest struct {
	AmendRequest
	selfTrade trading.SelfTrade // the account's setting, from its wallet
}

// A switchRequest holds the fields of a KindSwitch. Its filter is that of a kindCancelAll.
type switchRequest struct {
	seconds uint32 // 0: disarm, unless it is that of sessions
	// the switch that fires, without a client; the zero switchID: none
	fires switchID
	dueUs int64

	session uint64        // number of the command's session; 0: none
	change  SessionChange // of the session
	instead uint64        // SessionBegins: the session that it replaces; 0: none
}

// A withdrawalRequest holds the fields of a KindWithdrawal or a KindWithdrawalStatus.
type withdrawalRequest struct {
	id         uint64
	currency   uint16
	amount     money.Amount
	address    string
	clientID   event.ClientID // zero: none
	nextStatus uint8          // KindWithdrawalStatus: the next status
	code       string         // from its owner, to confirm it
	details    string         // from an operator, on a refusal

	despiteFreeze bool // from an operator, on an approval
}

// A switchID names one of the two switches of an API key.
type switchID struct {
	key     uint32 // number
	session bool   // the switch of the key's sessions, not of its calls
}

// number returns a number unique to the switch.
func (id switchID) number() uint64 {
	n := uint64(id.key) << 1
	if id.session {
		n++
	}
	return n
}

// reason returns the cancel reason of orders that the switch cancelled.
func (id switchID) reason() trading.Reason {
	if id.session {
		return trading.CancelledDisconnect
	}
	return trading.CancelledSwitch
}

func switchOf(s *event.Switch) switchID { return switchID{s.Key, s.Session} }

// A reservation is an amount of a currency that a command has reserved in its wallet.
type reservation struct {
	currency uint16
	amount   money.Balance
}
