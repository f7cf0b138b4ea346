package actors

import (
	"fmt"
	"net/netip"
	"regexp"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
)

// MaxReference bounds a deposit's reference, in bytes.
const MaxReference = 128

var (
	nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	keyForm  = regexp.MustCompile(`^[A-Za-z0-9._-]{4,64}$`)
)

// openAccount returns an account that is not closed.
func (g *registry) openAccount(name string) (*state.Account, error) {
	a, err := g.anyAccount(name)
	if err == nil && a.Operated().ClosedUs != 0 {
		return nil, requestErrorf("account %s is closed", name)
	}
	return a, err
}

func (g *registry) anyAccount(name string) (*state.Account, error) {
	if a := g.committed.State().AccountByName(name); a != nil {
		return a, nil
	}
	return nil, requestErrorf("there is no account %.80q", name)
}

// CreateAccount opens an account.
func (e *Engine) CreateAccount(operator, name, email string) (Admin, error) {
	return e.askRegistry(event.KindAccount, operator, (*registry).account,
		Admin{Account: name, Email: email})
}

func (g *registry) account(c *Command) (submit bool, err error) {
	a, s := &c.admin, g.committed.State()
	n := len(s.Accounts()) + g.accounts
	switch {
	case !nameForm.MatchString(a.Account):
		return false,
			requestErrorf(
				"account name %.80q: 1 to 64 of a-z, 0-9, '.', '_' and '-', beginning with a "+
					"letter or a digit", a.Account)
	case a.Email != "" && !isEmail(a.Email):
		return false, requestErrorf("%.80q is not an e-mail address", a.Email)
	case s.AccountByName(a.Account) != nil:
		return false, requestErrorf("account %s exists already", a.Account)
	case n >= g.limits().Accounts:
		return false, limitf("there are %d accounts, no more are allowed", n)
	}
	g.accounts++
	a.AccountID = uint32(n + 1)
	c.record.Account = event.Account{ID: a.AccountID, Name: a.Account, Email: a.Email}
	return true, nil
}

// CreateKey makes an API key for an account, with the given public part and secret.
func (e *Engine) CreateKey(operator, account, public, secret string, permissions uint8,
	allow []string) (Admin, error) {
	return e.askRegistry(event.KindKey, operator, (*registry).key,
		Admin{Account: account, Key: public, Secret: secret, Permissions: permissions,
			Allow: allow})
}

// CreateParallelKey makes an API key whose requests may overtake each other: it keeps its greatest
// used nonces, 1 to event.MaxParallel of them.
func (e *Engine) CreateParallelKey(operator, account, public, secret string, permissions uint8,
	allow []string, nonces int) (Admin, error) {
	a := Admin{Account: account, Key: public, Secret: secret, Permissions: permissions,
		Allow: allow, NonceWindow: nonces}
	if nonces < 1 || nonces > event.MaxParallel {
		return a, requestErrorf("a key for parallel use keeps 1 to %d nonces", event.MaxParallel)
	}
	return e.askRegistry(event.KindKey, operator, (*registry).key, a)
}

func (g *registry) key(c *Command) (submit bool, err error) {
	a, s := &c.admin, g.committed.State()
	account, err := g.openAccount(a.Account)
	if err != nil {
		return false, err
	}
	live := 0
	for _, number := range account.Keys {
		if !s.Keys()[number-1].Revoked {
			live++
		}
	}
	switch {
	case !keyForm.MatchString(a.Key):
		return false, requestErrorf("key %.80q: 4 to 64 letters, digits, '.', '_' and '-'", a.Key)
	case s.KeyByName(a.Key) != nil:
		return false, requestErrorf("key %s exists already", a.Key)
	case a.Permissions == 0 || a.Permissions&^event.AllPermissions != 0:
		return false,
			requestErrorf("a key needs at least one of the permissions read, trade and withdraw")
	case live >= g.limits().KeysPerAccount:
		return false, limitf("account %s has %d keys, no more are allowed: revoke one",
			account.Name, live)
	case len(a.Allow) > 100:
		return false, requestErrorf("at most 100 address prefixes for a key")
	}
	for i, prefix := range a.Allow {
		p, err := parsePrefix(prefix)
		switch {
		case err != nil:
			return false, requestErrorf(
				"%.80q is not an address or a CIDR prefix such as 10.0.0.0/8", prefix)
		// a slip would allow far more addresses than the operator meant
		case p != p.Masked():
			return false, requestErrorf(
				"%.80q has bits set after its prefix: write %s, or %s for the one address",
				prefix, p.Masked(), p.Addr())
		}
		a.Allow[i] = p.String()
	}
	g.keys++
	k := &c.record.Key
	*k = event.Key{Number: uint32(len(s.Keys()) + g.keys), Account: account.ID, Key: a.Key,
		Permissions: a.Permissions, Allow: a.Allow, NonceWindow: uint16(a.NonceWindow),
		SealedBy: g.sealer.ID()}
	k.Sealed = g.sealer.Seal([]byte(a.Secret), k.Bound())
	return true, nil
}

// parsePrefix reads a CIDR prefix or a single address.
func parsePrefix(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if p.Addr().Is4In6() { // such as ::ffff:10.0.0.0/104: addresses are compared as plain IPv4
		if p.Bits() < 96 {
			return p, fmt.Errorf("a prefix over IPv4 and IPv6")
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p, err
}

// RevokeKey revokes an API key.
func (e *Engine) RevokeKey(operator, public string) (Admin, error) {
	return e.askRegistry(event.KindKeyRevoked, operator, (*registry).revoke, Admin{Key: public})
}

func (g *registry) revoke(c *Command) (submit bool, err error) {
	s := g.committed.State()
	k := s.KeyByName(c.admin.Key)
	if k == nil {
		return false, requestErrorf("there is no key %.80q", c.admin.Key)
	}
	c.admin.Account = s.Account(k.Account).Name
	if k.Revoked {
		return false, requestErrorf("key %s is revoked already", c.admin.Key)
	}
	c.record.KeyRevoked = event.KeyRevoked{Number: k.Number}
	return true, nil
}

// Deposit credits an account. A repeat of a reference with the same content changes nothing and
// returns the deposit as Repeated.
func (e *Engine) Deposit(operator, account, currency string, amount money.Amount,
	reference string) (Admin, error) {
	return e.askRegistry(event.KindDeposit, operator, (*registry).deposit,
		Admin{Account: account, Currency: currency, amount: amount, Reference: reference})
}

// depositable checks a deposit, except its reference and its account.
func (g *registry) depositable(a *Admin) error {
	switch {
	case g.CurrencyNumber(a.Currency) == 0:
		return requestErrorf("%s", g.NoCurrency(a.Currency))
	case a.amount <= 0:
		return requestErrorf("the amount of a deposit is above 0")
	case a.Reference == "" || len(a.Reference) > MaxReference:
		return requestErrorf("a reference has 1 to %d bytes", MaxReference)
	}
	return nil
}

// deposit decides on a deposit after the lookup of its reference.
func (g *registry) deposit(c *Command) (submit bool, err error) {
	a, s := &c.admin, g.committed.State()
	if a.lookup.Err != nil {
		return false, a.lookup.Err
	}
	account, err := g.anyAccount(a.Account)
	if err != nil {
		return false, err
	}
	currency := g.CurrencyNumber(a.Currency)
	a.AccountID = account.ID
	if d := &a.lookup.Deposit; d.ID != 0 {
		if d.Account != account.ID || d.Currency != currency || d.Amount != a.amount {
			return false, requestErrorf(
				"reference %q belongs to deposit %d, which is another one: %v %s to %s",
				a.Reference, d.ID, d.Amount, g.CurrencyCode(d.Currency), s.Account(d.Account).Name)
		}
		a.Deposit, a.Repeated = d.ID, true
		return false, nil
	}
	if _, err := g.openAccount(a.Account); err != nil { // it may be closed
		return false, err
	}
	more := g.depositSums[currency].Add(a.amount.Balance())
	if total := s.Currencies()[currency-1].Deposited.Add(more); total.Cmp(money.MaxSupply) >= 0 {
		return false,
			limitf("with this deposit there would be %v %s: the most that can be held is %v", total,
				a.Currency, money.MaxSupply)
	}
	g.depositSums[currency] = more
	g.deposits++
	_, _, newest := s.LastIDs()
	a.Deposit = newest + g.deposits
	c.record.Deposit = event.Deposit{ID: a.Deposit, Account: account.ID, Currency: currency,
		Amount: a.amount, Reference: a.Reference}
	return true, nil
}

// SetEmail changes an account's e-mail address, and holds its withdrawals until HoldEndsUs of the
// answer. The current address changes nothing: the answer is Repeated, and HoldEndsUs is the end of
// the last change's hold, 0 if there was none.
func (e *Engine) SetEmail(operator, account, email string) (Admin, error) {
	return e.askRegistry(event.KindEmail, operator, (*registry).email,
		Admin{Account: account, Email: email})
}

// email decides on a new e-mail address of an account, except for the wallet's part.
func (g *registry) email(c *Command) (submit bool, err error) {
	a := &c.admin
	account, err := g.openAccount(a.Account)
	switch {
	case err != nil:
		return false, err
	case !isEmail(a.Email):
		return false, requestErrorf("email: %.80q is not an e-mail address", a.Email)
	}
	a.AccountID, a.PreviousEmail = account.ID, account.Email
	if a.Repeated = account.Email == a.Email; a.Repeated {
		a.HoldEndsUs = account.Operated().HoldEndsUs // unchanged: no new hold begins
		return false, nil
	}
	// its wallet sets HoldEndsUs
	c.record.Email = event.Email{Account: account.ID, Address: a.Email}
	return true, nil
}

// CloseAccount closes an account without money, orders and pending withdrawals, and revokes all its
// keys. Its name stays taken. A closed account does not change, and the answer is Repeated. A
// RequestError names the account's remaining content.
func (e *Engine) CloseAccount(operator, account string) (Admin, error) {
	return e.askRegistry(event.KindAccountClosed, operator, (*registry).closeAccount,
		Admin{Account: account})
}

// closeAccount decides on closing an account, except for its wallet's part: the wallet decides
// last, because it holds the account's money and orders.
func (g *registry) closeAccount(c *Command) (submit bool, err error) {
	account, err := g.anyAccount(c.admin.Account)
	if err != nil {
		return false, err
	}
	c.admin.AccountID = account.ID
	switch {
	case account.Operated().ClosedUs != 0:
		c.admin.Repeated = true
		return false, nil
	case account.Name == directory.FeeAccount:
		return false, requestErrorf("account %s gets the fees of all trades, so it is not closed",
			directory.FeeAccount)
	}
	c.record.AccountClosed = event.AccountClosed{Account: account.ID}
	return true, nil
}
