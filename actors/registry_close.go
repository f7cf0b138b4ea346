package actors

import (
	"exchange/actors/directory"
	"exchange/core/event"
)

// An account is closed in three places. The registry keeps its deposits and keys away while the end
// is on its way; the account's wallet has the last word, because it knows the account's money and
// orders; and the fold ends the account and its keys.

// closeAccount decides on the end of an account, but for what its wallet has.
func (g *registry) closeAccount(c *Command) (submit bool, err error) {
	account := g.accounts[c.admin.Account]
	if account == nil {
		return false, refusef("there is no account %.80q", c.admin.Account)
	}
	c.admin.AccountID = account.ID
	switch {
	case g.closed[account.ID]:
		c.admin.Repeated = true
		return false, nil
	case account.Name == directory.FeeAccount:
		return false, refusef("account %s gets the fees of all trades, so it is not closed",
			directory.FeeAccount)
	}
	g.closing = account.ID
	c.record.AccountClosed = event.AccountClosed{Account: account.ID}
	return true, nil
}

// waitsForAnEnd reports whether a command would change an account whose end is on its way, or would
// end one that has a deposit on its way. Ends go one after the other.
func (g *registry) waitsForAnEnd(c *Command) bool {
	if c.kind == event.KindAccountClosed {
		a := g.accounts[c.admin.Account]
		return g.closing != 0 || a != nil && g.depositing[a.ID] > 0
	}
	if g.closing == 0 {
		return false
	}
	var account *directory.Account
	switch c.kind {
	case event.KindKeyRevoked:
		if k := g.dir.Key([]byte(c.admin.Key)); k != nil {
			account = k.Account
		}
	case event.KindKey, event.KindParallelKey, event.KindDeposit:
		account = g.accounts[c.admin.Account]
	}
	return account != nil && account.ID == g.closing
}

// accountEnds takes the durable end of an account, and those of its keys, into the tables.
func (g *registry) accountEnds(id uint32) {
	account := g.dir.Account(id)
	account.Freeze(true)
	account.SetFees(nil)
	g.closed[id] = true
	for _, k := range g.dir.KeysOf(account) {
		g.end(k)
	}
}
