package operator

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/gateway/api"
)

type accountAnswer struct {
	Account string `json:"account"`
	ID      uint32 `json:"id"`
	Email   string `json:"email"`
}

type accountRequest struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

func createAccount(c *call) (any, error) {
	var q accountRequest
	if err := c.parse(&q); err != nil {
		return nil, err
	}
	a, err := c.engine.CreateAccount(c.operator, q.Name, q.Email)
	return accountAnswer{a.Account, a.AccountID, a.Email}, err
}

type accountLine struct {
	accountAnswer
	Frozen bool   `json:"frozen"`
	Held   string `json:"held_until,omitempty"`
	Closed string `json:"closed,omitempty"` // when
}

type accountsAnswer struct {
	Accounts []accountLine `json:"accounts"`
	// id of the last account, if more accounts may follow it
	Next uint32 `json:"next,omitempty"`
}

// listAccounts returns a page of the accounts in order of their ids: those above `after`. With
// `frozen` it leaves out those that are not frozen.
func listAccounts(c *call) (any, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	after, err := c.after()
	if err != nil {
		return nil, err
	}
	if text := c.query("frozen"); len(text) > 0 {
		frozen, ok := api.Flag(text)
		if !ok {
			return nil, &badRequest{"frozen: 1, 0, true or false"}
		}
		if frozen {
			return c.frozenAccounts(after, limit)
		}
	}
	q := &committed.Accounts{After: after, Limit: limit}
	if err := c.read(q); err != nil {
		return nil, err
	}
	page := newAccounts(q.List)
	if n := len(q.List); n == limit {
		page.Next = q.List[n-1].ID
	}
	return page, nil
}

// frozenAccounts returns a page of the accounts that are frozen.
func (c *call) frozenAccounts(after uint64, limit int) (any, error) {
	q := &committed.FrozenAccounts{After: after, Limit: limit}
	for more := true; more; more = q.After != 0 && len(q.List) < limit {
		if err := c.read(q); err != nil {
			return nil, err
		}
	}
	page := newAccounts(q.List)
	page.Next = uint32(q.After)
	return page, nil
}

func newAccounts(list []committed.AccountInfo) *accountsAnswer {
	page := &accountsAnswer{Accounts: make([]accountLine, 0, len(list))}
	for _, a := range list {
		page.Accounts = append(page.Accounts,
			accountLine{accountAnswer{a.Name, a.ID, a.Email}, a.Frozen, heldUntil(a.HeldUs),
				closedAt(a.ClosedUs)})
	}
	return page
}

type holdingAnswer struct {
	Currency  string        `json:"currency"`
	Balance   money.Balance `json:"balance"`
	Reserve   money.Balance `json:"reserve"`
	Available money.Balance `json:"available"`
}

type orderAnswer struct {
	Order     uint64       `json:"order"`
	Pair      string       `json:"pair"`
	Type      string       `json:"type"`
	Price     money.Price  `json:"price"`
	Amount    money.Amount `json:"amount"`
	Remaining money.Amount `json:"remaining"`
	Time      string       `json:"time"`
}

// A portrait is an account at one moment.
type portrait struct {
	Account   string             `json:"account"`
	Closed    string             `json:"closed,omitempty"` // when
	Email     string             `json:"email"`
	Frozen    bool               `json:"frozen"`
	Held      string             `json:"held_until,omitempty"`
	Holdings  []holdingAnswer    `json:"holdings"`
	ID        uint32             `json:"id"`
	Newest    []orderAnswer      `json:"newest_orders"`
	Open      int                `json:"open_orders"`
	Withdraws []withdrawalAnswer `json:"pending_withdraws"`
	Sequence  uint64             `json:"sequence"`
}

// shownOrders is the number of open orders that an account is shown with.
const shownOrders = 20

// showAccount returns an account at one moment: holdings, open orders, pending withdrawals.
func showAccount(c *call) (any, error) {
	q := &committed.Account{Name: string(c.query("name")), Limit: shownOrders}
	if err := c.read(q); err != nil {
		return nil, err
	}
	if q.Info.ID == 0 {
		return nil, &badRequest{fmt.Sprintf("there is no account %.80q", q.Name)}
	}
	a := q.Info
	holdings, orders := []holdingAnswer{}, []orderAnswer{}
	for _, h := range q.Holdings {
		holdings = append(holdings, holdingAnswer{c.engine.CurrencyCode(h.Currency), h.Balance,
			h.Reserve,
			h.Available()})
	}
	for i := range q.Orders {
		o := &q.Orders[i]
		orders = append(orders, orderAnswer{o.ID, c.engine.Market(o.Pair).Name, o.Side.String(),
			o.Price,
			o.Amount, o.Remaining, clock(o.TimeUs)})
	}
	pending := []withdrawalAnswer{}
	for i := range q.Withdrawals {
		w := committed.WithdrawalRow(&q.Withdrawals[i])
		pending = append(pending, newWithdrawal(c.engine, &w))
	}
	return &portrait{Account: a.Name, ID: a.ID, Email: a.Email, Frozen: a.Frozen,
		Held: heldUntil(a.HeldUs), Closed: closedAt(a.ClosedUs),
		Sequence: q.Seq, Holdings: holdings,
		Open: q.Open, Newest: orders, Withdraws: pending}, nil
}

// A switchAnswer has the state after a request to switch something on or off. Repeated says that it
// was so already.
type switchAnswer struct {
	Account  string `json:"account,omitempty"`
	Pair     string `json:"pair,omitempty"`
	On       bool   `json:"on"`
	Message  string `json:"message,omitempty"`
	Cancels  bool   `json:"cancels,omitempty"`
	Repeated bool   `json:"repeated,omitempty"`
}

type freezeRequest struct {
	Account string `json:"account"`
	On      *bool  `json:"on"`
}

func freeze(c *call) (any, error) {
	var q freezeRequest
	if err := c.parse(&q); err != nil {
		return nil, err
	}
	if q.On == nil {
		return nil, &badRequest{"on: true or false is required"}
	}
	a, err := c.engine.Freeze(c.operator, q.Account, *q.On)
	return switchAnswer{Account: a.Account, On: a.On, Repeated: a.Repeated}, err
}

// An emailAnswer is an account's new address, with the end of the hold that it begins. With
// Repeated the account had the address already: no hold began, and one that goes on is shown.
type emailAnswer struct {
	accountAnswer
	Before   string `json:"before"` // address; "": there was none
	Held     string `json:"held_until,omitempty"`
	Repeated bool   `json:"repeated,omitempty"`
}

type emailRequest struct {
	Account string `json:"account"`
	Email   string `json:"email"`
}

// setEmail gives an account another e-mail address.
func setEmail(c *call) (any, error) {
	var q emailRequest
	if err := c.parse(&q); err != nil {
		return nil, err
	}
	a, err := c.engine.SetEmail(c.operator, q.Account, q.Email)
	return emailAnswer{accountAnswer{a.Account, a.AccountID, a.Email}, a.Before,
		heldUntil(a.HeldUs), a.Repeated}, err
}

// heldUntil returns the end of an account's hold, "" if it is not held now.
func heldUntil(us int64) string {
	if us <= time.Now().UnixMicro() {
		return ""
	}
	return clock(us)
}

// closedAt returns when an account was closed, "" if it is open.
func closedAt(us int64) string {
	if us == 0 {
		return ""
	}
	return clock(us)
}

// closeAccount ends an empty account and its keys.
func closeAccount(c *call) (any, error) {
	var q closeRequest
	if err := c.parse(&q); err != nil {
		return nil, err
	}
	a, err := c.engine.CloseAccount(c.operator, q.Account)
	return endAnswer{a.Account, a.AccountID, true, a.Repeated}, err
}

type closeRequest struct {
	Account string `json:"account"`
}

type endAnswer struct {
	Account string `json:"account"`
	ID      uint32 `json:"id"`
	Closed  bool   `json:"closed"`
	// Repeated: it was so already
	Repeated bool `json:"repeated,omitempty"`
}

type keyAnswer struct {
	Key         string   `json:"key"`
	Secret      string   `json:"secret,omitempty"` // of a new key only, never again
	Account     string   `json:"account"`
	Permissions []string `json:"permissions"`
	Allow       []string `json:"allow"`
	Parallel    int      `json:"parallel,omitempty"` // nonces that it keeps; 0: they grow
	Revoked     *bool    `json:"revoked,omitempty"`
}

func newKeyAnswer(key, account string, permissions uint8, allow []string) keyAnswer {
	a := keyAnswer{Key: key, Account: account, Permissions: []string{},
		Allow: append([]string{}, allow...)}
	for p := event.PermissionRead; p <= event.PermissionWithdraw; p <<= 1 {
		if permissions&p != 0 {
			a.Permissions = append(a.Permissions, api.PermissionName(p))
		}
	}
	return a
}

type keyRequest struct {
	Account     string   `json:"account"`
	Permissions []string `json:"permissions"`
	Allow       []string `json:"allow"`
	Parallel    *int     `json:"parallel"`
}

func createKey(c *call) (any, error) {
	var q keyRequest
	if err := c.parse(&q); err != nil {
		return nil, err
	}
	var permissions uint8
	for _, name := range q.Permissions {
		p := event.PermissionRead
		for p <= event.PermissionWithdraw && api.PermissionName(p) != name {
			p <<= 1
		}
		if p > event.PermissionWithdraw {
			return nil, &badRequest{fmt.Sprintf(
				"there is no permission %.80q: there are read, trade and withdraw", name)}
		}
		permissions |= p
	}
	var a actors.Admin
	var err error
	if q.Parallel == nil {
		a, err = c.engine.CreateKey(c.operator, q.Account, random(16), random(32), permissions,
			q.Allow)
	} else {
		a, err = c.engine.CreateParallelKey(c.operator, q.Account, random(16), random(32),
			permissions, q.Allow, *q.Parallel)
	}
	if err != nil {
		return nil, err
	}
	answer := newKeyAnswer(a.Key, a.Account, a.Permissions, a.Allow)
	answer.Secret, answer.Parallel = a.Secret, a.Parallel
	return answer, nil
}

// random returns n random bytes as hexadecimal digits, so that a key never looks like a flag.
func random(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}

type keysAnswer struct {
	Keys []keyAnswer `json:"keys"`
}

func listKeys(c *call) (any, error) {
	account, err := c.account(string(c.query("account")))
	if err != nil {
		return nil, err
	}
	q := &committed.Keys{Account: account}
	if err := c.read(q); err != nil {
		return nil, err
	}
	list := make([]keyAnswer, 0, len(q.List))
	for _, k := range q.List {
		a := newKeyAnswer(k.Key, k.Account, k.Permissions, k.Allow)
		a.Revoked, a.Parallel = &k.Revoked, k.Parallel
		list = append(list, a)
	}
	return &keysAnswer{list}, nil
}

type revokeRequest struct {
	Key string `json:"key"`
}

type revokedAnswer struct {
	Account string `json:"account"`
	Key     string `json:"key"`
	Revoked bool   `json:"revoked"`
}

func revokeKey(c *call) (any, error) {
	var q revokeRequest
	if err := c.parse(&q); err != nil {
		return nil, err
	}
	a, err := c.engine.RevokeKey(c.operator, q.Key)
	return &revokedAnswer{a.Account, a.Key, true}, err
}

type depositAnswer struct {
	Deposit   uint64        `json:"deposit"`
	Account   string        `json:"account"`
	Currency  string        `json:"currency"`
	Amount    money.Amount  `json:"amount"`
	Balance   money.Balance `json:"balance"`
	Reference string        `json:"reference"`
	Repeated  bool          `json:"repeated,omitempty"`
}

type depositRequest struct {
	Account   string `json:"account"`
	Currency  string `json:"currency"`
	Reference string `json:"reference"`
	Amount    number `json:"amount"`
}

func deposit(c *call) (any, error) {
	var q depositRequest
	if err := c.parse(&q); err != nil {
		return nil, err
	}
	amount, err := money.ParseAmount(string(q.Amount))
	if err != nil {
		return nil, &badRequest{"amount: " + err.Error()}
	}
	if q.Reference == "" {
		q.Reference = random(18)
	}
	a, err := c.engine.Deposit(c.operator, q.Account, q.Currency, amount, q.Reference)
	if errors.Is(err, committed.ErrTimeout) {
		// The reference may be new: without it the operator could not ask again without paying
		// twice.
		return nil, fmt.Errorf(
			"outcome unknown: the deposit may or may not have been made; repeat it with the "+
				"reference %q, which is safe", q.Reference)
	}
	if err != nil {
		return nil, err
	}
	w := &committed.Wallet{Account: a.AccountID}
	if err := c.read(w); err != nil {
		//nolint:errorlint // the deposit was made, whatever the cause is
		return nil, fmt.Errorf("deposit %d was made, with the reference %q, but its balance "+
			"cannot be told: %v", a.Deposit, a.Reference, err)
	}
	answer := depositAnswer{Deposit: a.Deposit, Account: a.Account, Currency: a.Currency,
		Amount: amount, Reference: a.Reference, Repeated: a.Repeated}
	currency := c.engine.Currency([]byte(a.Currency)).Number
	for _, h := range w.Holdings {
		if h.Currency == currency {
			answer.Balance = h.Balance
		}
	}
	return answer, nil
}
