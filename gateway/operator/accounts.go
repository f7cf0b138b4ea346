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

var accountRoutes = []route{
	{"GET accounts", do(listAccounts), byEngine, "Accounts",
		"A page of the accounts, in order of their ids. `next` is there if more " +
			"may follow: send it as `after`."},
	{"POST accounts", do(createAccount), byEngine, "Open an account",
		"The name is new. The e-mail address gets the codes of withdrawals, and an " +
			"account without one cannot withdraw."},
	{"GET account", do(showAccount), byEngine, "An account at one moment",
		"Its holdings, its newest open orders, and its pending withdrawals."},
	{"POST accounts/email", do(setEmail), byEngine, "Change an account's e-mail address",
		"Both addresses receive a mail, and the account's withdrawals are held for 48 " +
			"hours. With the address that it has, nothing changes."},
	{"POST accounts/close", do(closeAccount), byEngine, "Close an account",
		"An account without money, open orders and pending withdrawals is closed " +
			"permanently, and its keys are revoked."},
	{"POST accounts/freeze", do(freeze), byEngine, "Freeze an account, or end that",
		"The keys of a frozen account do nothing, and its withdrawals are not " +
			"approved. Open orders stay."},
	{"GET keys", do(listKeys), byEngine, "API keys of an account",
		"With those that are revoked, and without secrets."},
	{"POST keys", do(createKey), byEngine, "Make an API key",
		"The answer alone has the secret: it is not shown again."},
	{"POST keys/revoke", do(revokeKey), byEngine, "Revoke an API key",
		"The key is revoked permanently."},
}

type accountAnswer struct {
	Account string `json:"account"`
	ID      uint32 `json:"id"`
	Email   string `json:"email"`
}

type accountRequest struct {
	Name  string `json:"name" need:"yes" pattern:"^[a-z0-9][a-z0-9._-]{0,63}$" doc:"Its name"`
	Email string `json:"email,omitempty" doc:"E-mail address; left out or empty: none"`
}

func createAccount(c *call, q *accountRequest) (*accountAnswer, error) {
	a, err := c.engine.CreateAccount(c.operator, q.Name, q.Email)
	return &accountAnswer{a.Account, a.AccountID, a.Email}, err
}

type AccountLine struct {
	accountAnswer
	Frozen bool   `json:"frozen"`
	Held   string `json:"held_until,omitempty"`
	Closed string `json:"closed,omitempty" doc:"When the account was closed"`
}

type AccountsAnswer struct {
	Accounts []AccountLine `json:"accounts" doc:"The page"`
	Next     uint32        `json:"next,omitempty"`
}

// An AccountsQuery chooses accounts.
type accountsQuery struct {
	accountPage
	Frozen bool `json:"frozen" doc:"Only accounts that are frozen, without closed ones"`
}

// listAccounts returns a page of the accounts in order of their ids: those above `after`. With
// `frozen` it lists only frozen ones.
func listAccounts(c *call, q *accountsQuery) (*AccountsAnswer, error) {
	limit := int(q.Limit)
	if q.Frozen {
		return c.frozenAccounts(q.After, limit)
	}
	all := &committed.Accounts{After: q.After, Limit: limit}
	if err := c.ask(all); err != nil {
		return nil, err
	}
	page := newAccounts(all.List)
	if n := len(all.List); n == limit {
		page.Next = all.List[n-1].ID
	}
	return page, nil
}

// frozenAccounts returns a page of the frozen accounts.
func (c *call) frozenAccounts(after uint64, limit int) (*AccountsAnswer, error) {
	q := &committed.FrozenAccounts{After: after, Limit: limit}
	for more := true; more; more = q.After != 0 && len(q.List) < limit {
		if err := c.ask(q); err != nil {
			return nil, err
		}
	}
	page := newAccounts(q.List)
	page.Next = uint32(q.After)
	return page, nil
}

func newAccounts(list []committed.AccountInfo) *AccountsAnswer {
	page := &AccountsAnswer{Accounts: make([]AccountLine, 0, len(list))}
	for _, a := range list {
		page.Accounts = append(page.Accounts,
			AccountLine{accountAnswer{a.Name, a.ID, a.Email}, a.Frozen, heldUntil(a.HoldEndsUs),
				closedAt(a.ClosedUs)})
	}
	return page
}

type holdingAnswer struct {
	Currency  string        `json:"currency"`
	Balance   money.Balance `json:"balance" doc:"All that the account has of the currency"`
	Reserve   money.Balance `json:"reserve"`
	Available money.Balance `json:"available" doc:"The rest"`
}

type orderAnswer struct {
	Order     uint64       `json:"order"`
	Pair      string       `json:"pair"`
	Type      string       `json:"type" doc:"What it does: sell or buy"`
	Price     money.Price  `json:"price"`
	Amount    money.Amount `json:"amount"`
	Remaining money.Amount `json:"remaining" doc:"What is left of the amount"`
	Time      string       `json:"time"`
}

// An accountDetail is an account at one moment.
type accountDetail struct {
	Account   string             `json:"account"`
	ID        uint32             `json:"id"`
	Email     string             `json:"email"`
	Frozen    bool               `json:"frozen"`
	Held      string             `json:"held_until,omitempty"`
	Closed    string             `json:"closed,omitempty" doc:"When the account was closed"`
	Sequence  uint64             `json:"sequence"`
	Open      int                `json:"open_orders" doc:"Number of its open orders"`
	Holdings  []holdingAnswer    `json:"holdings" doc:"What it has, by currency"`
	Newest    []orderAnswer      `json:"newest_orders" doc:"The newest of its open orders"`
	Withdraws []withdrawalAnswer `json:"pending_withdraws" doc:"Its pending withdrawals"`
}

// shownOrders is the number of open orders in an account's detail.
const shownOrders = 20

// An AccountQuery names an account.
type accountQuery struct {
	Name string `json:"name" need:"yes" doc:"Name of the account"`
}

// showAccount returns an account at one moment: holdings, open orders, pending withdrawals.
func showAccount(c *call, q *accountQuery) (*accountDetail, error) {
	account := &committed.Account{Name: q.Name, Limit: shownOrders}
	if err := c.ask(account); err != nil {
		return nil, err
	}
	if account.Info.ID == 0 {
		return nil, &badRequest{fmt.Sprintf("there is no account %.80q", q.Name)}
	}
	a := account.Info
	holdings, orders := []holdingAnswer{}, []orderAnswer{}
	for _, h := range account.Holdings {
		holdings = append(holdings, holdingAnswer{c.engine.CurrencyCode(h.Currency), h.Balance,
			h.Reserve,
			h.Available()})
	}
	for i := range account.Orders {
		o := &account.Orders[i]
		orders = append(orders, orderAnswer{o.ID, c.engine.Market(o.Pair).Name, o.Side.String(),
			o.Price,
			o.Amount, o.Remaining, clock(o.TimeUs)})
	}
	pending := []withdrawalAnswer{}
	for i := range account.Withdrawals {
		w := committed.WithdrawalRow(&account.Withdrawals[i])
		pending = append(pending, newWithdrawal(c.engine, &w))
	}
	return &accountDetail{Account: a.Name, ID: a.ID, Email: a.Email, Frozen: a.Frozen,
		Held: heldUntil(a.HoldEndsUs), Closed: closedAt(a.ClosedUs),
		Sequence: account.Seq, Holdings: holdings,
		Open: account.Open, Newest: orders, Withdraws: pending}, nil
}

// A freezeAnswer is the state of an account after a request to freeze or unfreeze it.
type freezeAnswer struct {
	Account  string `json:"account"`
	On       bool   `json:"on" doc:"The state after the request"`
	Repeated bool   `json:"repeated,omitempty"`
}

type freezeRequest struct {
	Account string `json:"account" need:"yes" doc:"Name of the account"`
	On      *bool  `json:"on" need:"yes" doc:"true: freeze it. false: end that"`
}

func freeze(c *call, q *freezeRequest) (*freezeAnswer, error) {
	a, err := c.engine.Freeze(c.operator, q.Account, *q.On)
	return &freezeAnswer{Account: a.Account, On: a.On, Repeated: a.Repeated}, err
}

// An emailAnswer is an account's new address, with the end of the hold that it begins. With
// Repeated the account had the address already: no new hold began, and a current one is shown.
type emailAnswer struct {
	accountAnswer
	Before   string `json:"before" doc:"The e-mail address before. Empty: there was none"`
	Held     string `json:"held_until,omitempty"`
	Repeated bool   `json:"repeated,omitempty"`
}

type emailRequest struct {
	Account string `json:"account" need:"yes" doc:"Name of the account"`
	Email   string `json:"email" need:"yes" doc:"Its new e-mail address"`
}

// setEmail gives an account another e-mail address.
func setEmail(c *call, q *emailRequest) (*emailAnswer, error) {
	a, err := c.engine.SetEmail(c.operator, q.Account, q.Email)
	return &emailAnswer{accountAnswer{a.Account, a.AccountID, a.Email}, a.PreviousEmail,
		heldUntil(a.HoldEndsUs), a.Repeated}, err
}

// heldUntil returns the end of an account's hold, "" if it is not held now.
func heldUntil(us int64) string {
	if us <= time.Now().UnixMicro() {
		return ""
	}
	return clock(us)
}

// closedAt returns the time when an account was closed, "" if it is open.
func closedAt(us int64) string {
	if us == 0 {
		return ""
	}
	return clock(us)
}

// closeAccount ends an empty account and its keys.
func closeAccount(c *call, q *closeRequest) (*endAnswer, error) {
	a, err := c.engine.CloseAccount(c.operator, q.Account)
	return &endAnswer{a.Account, a.AccountID, true, a.Repeated}, err
}

type closeRequest struct {
	Account string `json:"account" need:"yes" doc:"Name of the account"`
}

type endAnswer struct {
	Account  string `json:"account"`
	ID       uint32 `json:"id"`
	Closed   bool   `json:"closed" const:"true" doc:"Always true"`
	Repeated bool   `json:"repeated,omitempty"`
}

type KeyAnswer struct {
	Account     string   `json:"account"`
	Key         string   `json:"key"`
	Permissions []string `json:"permissions" enum:"read,trade,withdraw"`
	Allow       []string `json:"allow"`
	Parallel    int      `json:"parallel,omitempty"`
}

// A NewKeyAnswer is a key just made.
type NewKeyAnswer struct {
	KeyAnswer
	Secret string `json:"secret" doc:"Its secret, which no other answer has"`
}

// A KeyLine is a key in the list.
type keyLine struct {
	KeyAnswer
	Revoked bool `json:"revoked" doc:"Whether it is revoked"`
}

func newKeyAnswer(key, account string, permissions uint8, allow []string, parallel int) KeyAnswer {
	a := KeyAnswer{Key: key, Account: account, Permissions: []string{},
		Allow: append([]string{}, allow...), Parallel: parallel}
	for p := event.PermissionRead; p <= event.PermissionWithdraw; p <<= 1 {
		if permissions&p != 0 {
			a.Permissions = append(a.Permissions, api.PermissionName(p))
		}
	}
	return a
}

type keyRequest struct {
	Account     string   `json:"account" need:"yes" doc:"Name of the account"`
	Permissions []string `json:"permissions" need:"yes" enum:"read,trade,withdraw"`
	Allow       []string `json:"allow,omitempty" most:"100"`
	Parallel    *int     `json:"parallel,omitempty" min:"1" max:"MaxParallel"`
}

func createKey(c *call, q *keyRequest) (*NewKeyAnswer, error) {
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
	return &NewKeyAnswer{newKeyAnswer(a.Key, a.Account, a.Permissions, a.Allow, a.NonceWindow),
		a.Secret}, nil
}

// random returns n random bytes as hexadecimal digits, so that a key never looks like a flag.
func random(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}

type keysAnswer struct {
	Keys []keyLine `json:"keys" doc:"The keys"`
}

// A KeysQuery names the account of keys.
type keysQuery struct {
	Account string `json:"account" need:"yes"`
}

func listKeys(c *call, q *keysQuery) (*keysAnswer, error) {
	account, err := c.account(q.Account)
	if err != nil {
		return nil, err
	}
	keys := &committed.Keys{Account: account}
	if err := c.ask(keys); err != nil {
		return nil, err
	}
	list := make([]keyLine, 0, len(keys.List))
	for _, k := range keys.List {
		list = append(list,
			keyLine{newKeyAnswer(k.Key, k.Account, k.Permissions, k.Allow, k.Parallel), k.Revoked})
	}
	return &keysAnswer{list}, nil
}

type revokeRequest struct {
	Key string `json:"key" need:"yes" doc:"The key"`
}

type revokedAnswer struct {
	Key     string `json:"key"`
	Account string `json:"account"`
	Revoked bool   `json:"revoked" const:"true" doc:"Always true"`
}

func revokeKey(c *call, q *revokeRequest) (*revokedAnswer, error) {
	a, err := c.engine.RevokeKey(c.operator, q.Key)
	return &revokedAnswer{a.Key, a.Account, true}, err
}

type DepositAnswer struct {
	Deposit   uint64        `json:"deposit"`
	Account   string        `json:"account"`
	Currency  string        `json:"currency"`
	Amount    money.Amount  `json:"amount"`
	Balance   money.Balance `json:"balance" doc:"The balance after it"`
	Reference string        `json:"reference"`
	Repeated  bool          `json:"repeated,omitempty"`
}

type DepositRequest struct {
	Account   string `json:"account" need:"yes" doc:"Name of the account"`
	Currency  string `json:"currency" need:"yes" doc:"Code of the currency"`
	Reference string `json:"reference,omitempty" most:"MaxReference"`
	Amount    Number `json:"amount" need:"yes" doc:"Above 0; a text keeps all digits"`
}

func deposit(c *call, q *DepositRequest) (*DepositAnswer, error) {
	amount, err := money.ParseAmount(string(q.Amount))
	if err != nil {
		return nil, &badRequest{"amount: " + err.Error()}
	}
	if q.Reference == "" {
		q.Reference = random(18)
	}
	a, err := c.engine.Deposit(c.operator, q.Account, q.Currency, amount, q.Reference)
	if errors.Is(err, committed.ErrTimeout) {
		// The reference may be new: without it a repeated request could pay twice.
		return nil, fmt.Errorf(
			"outcome unknown: the deposit may or may not have been made; repeat it with the "+
				"reference %q, which is safe", q.Reference)
	}
	if err != nil {
		return nil, err
	}
	w := &committed.Wallet{Account: a.AccountID}
	if err := c.ask(w); err != nil {
		//nolint:errorlint // the deposit was made, whatever the cause
		return nil, fmt.Errorf("deposit %d was made, with the reference %q, but its balance "+
			"cannot be read: %v", a.Deposit, a.Reference, err)
	}
	answer := &DepositAnswer{Deposit: a.Deposit, Account: a.Account, Currency: a.Currency,
		Amount: amount, Reference: a.Reference, Repeated: a.Repeated}
	currency := c.engine.Currency([]byte(a.Currency)).Number
	for _, h := range w.Holdings {
		if h.Currency == currency {
			answer.Balance = h.Balance
		}
	}
	return answer, nil
}
