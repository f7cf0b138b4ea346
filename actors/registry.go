package actors

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"strconv"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
)

// newRegistry makes the registry of a state, still without accounts and keys.
func newRegistry(s *state.State, tools registryTools) *registry {
	_, _, deposit := s.LastIDs()
	g := &registry{registryTools: tools,
		accounts: make(map[string]*directory.Account, len(s.Accounts())),
		revoked:  map[string]*directory.Account{},
		closed:   map[uint32]bool{}, depositing: map[uint32]int{},
		keysOf: make(map[uint32]int, len(s.Accounts())), deposits: deposit,
		lastTimeUs: s.TimeUs(), busy: map[string][]*Command{}, maintenance: s.Maintenance()}
	for _, c := range s.Currencies() {
		g.deposited = append(g.deposited, c.Deposited)
	}
	return g
}

// recoverAccount takes over an account that the state has.
func (g *registry) recoverAccount(a *state.Account) *directory.Account {
	entry := &directory.Account{ID: a.ID, Name: a.Name}
	entry.SetEmail(a.Email != "")
	entry.Freeze(a.Frozen)
	if a.ClosedUs() != 0 {
		g.closed[a.ID] = true
	}
	if own := a.Fees(); len(own) > 0 {
		entry.SetFees(maps.Clone(own))
		g.fees.own.Store(true)
	}
	g.add(entry)
	g.accountIDs = a.ID
	return entry
}

// add gives an account its name.
func (g *registry) add(a *directory.Account) {
	g.accounts[a.Name] = a
	if a.Name == directory.FeeAccount {
		g.fees.account.Store(a.ID)
	}
}

// recoverKeys adds each key that is live to the directory. Revoked keys stay with the registry.
func (g *registry) recoverKeys(keys []*state.Key, opened []openedKey,
	accounts []*directory.Account) error {
	for i, k := range keys {
		g.keyNumbers = k.Number
		if k.Revoked {
			g.revoked[k.Key.Key] = accounts[k.Account-1]
			continue
		}
		g.keysOf[k.Account]++
		entry, err := newKey(&k.Key, accounts[k.Account-1], opened[i].material)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
		g.dir.AddKey(entry)
	}
	return nil
}

var (
	nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	keyForm  = regexp.MustCompile(`^[A-Za-z0-9._-]{4,64}$`)
)

// Receive implements actor.Actor.
func (g *registry) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *Command:
		g.decide(m)
	case *releasedCommand:
		g.released(m.command)
	case *refusedEnd:
		m.command.outcome = Refused
		g.over(m.command)
	case *lookup:
		if m.leavesOpen() {
			g.index.Ask(m)
			return
		}
		waiting := g.free(m.command)
		g.conclude(m.command, m)
		for _, c := range waiting {
			g.decide(c)
		}
	}
}

func (g *registry) decide(c *Command) {
	object := c.object()
	if waiting, busy := g.busy[object]; busy {
		g.busy[object] = append(waiting, c)
		return
	}
	if g.waitsForAnEnd(c) {
		g.later = append(g.later, c)
		return
	}
	if g.asksCommitted(c) {
		g.busy[object] = nil
		l := &lookup{command: c}
		if l.Mail = c.admin.mail; c.kind == event.KindDeposit {
			l.Lookup = committed.Lookup{Reference: c.admin.Reference}
		}
		if c.kind == event.KindEmail {
			l.Account = g.accounts[c.admin.Account].ID
		}
		g.out.lookUp(l)
		return
	}
	g.conclude(c, nil)
}

// asksCommitted reports whether a command is decided by what the committed side has: a deposit by
// its reference, a mail, and an e-mail address by the one before.
func (g *registry) asksCommitted(c *Command) bool {
	switch c.kind {
	case event.KindMailed:
		return true
	case event.KindDeposit:
		return g.depositable(&c.admin) == nil
	case event.KindEmail:
		return g.accounts[c.admin.Account] != nil
	}
	return false
}

// free returns the commands that waited for an object, which is not busy any more.
func (g *registry) free(c *Command) (waiting []*Command) {
	object := c.object()
	waiting = g.busy[object]
	delete(g.busy, object)
	return waiting
}

// conclude decides a command whose object is free. known is the answer of a look-up, if it
// needed one.
func (g *registry) conclude(c *Command, known *lookup) {
	if g.waitsForAnEnd(c) { // which began during the look-up
		g.later = append(g.later, c)
		return
	}
	// A halt has the time of its pair, which its book knows. Another time, if a wrong clock once
	// told it, would end the pair's orders that expire.
	if c.kind == event.KindEmail { // by the clock of now: one of before may have been ahead
		c.admin.HeldUs = c.timeUs + withdrawalHold.Microseconds()
	}
	if c.kind != event.KindHalt {
		c.timeUs = max(c.timeUs, g.lastTimeUs)
		g.lastTimeUs = c.timeUs
	}
	c.begin(c.kind, 0)
	var submit bool
	var err error
	switch c.kind {
	case event.KindAccount:
		submit, err = g.account(c)
	case event.KindKey, event.KindParallelKey:
		submit, err = g.key(c)
	case event.KindKeyRevoked:
		submit, err = g.revoke(c)
	case event.KindDeposit:
		submit, err = g.deposit(c, known)
	default:
		submit, err = g.setting(c, known)
	}
	var limit *limitError
	switch {
	case errors.As(err, &limit) && g.onTheWay > 0:
		g.later = append(g.later, c) // a refusal shows only what is durable
	case err != nil:
		c.adminErr = err
		g.out.finish(c, Refused)
	case !submit:
		g.out.finish(c, Accepted)
	default:
		g.onTheWay++
		g.busy[c.object()] = nil
		c.outcome = Accepted
		if c.kind == event.KindHalt { // the book has the last word: it is in order with its orders
			g.out.toBook(c)
			return
		}
		switch c.kind { // and its wallet: it is in order with approvals and orders
		case event.KindFreeze, event.KindEmail, event.KindAccountClosed:
			g.out.toWallet(g.dir.Account(c.admin.AccountID), c)
			return
		}
		c.encode()
		g.journal.submit(&c.entry)
	}
}

// object names the object of the command. One change of an object may be on its way at a time.
func (c *Command) object() string {
	switch c.kind {
	case event.KindAccount:
		return "account " + c.admin.Account
	case event.KindDeposit:
		return "reference " + c.admin.Reference
	case event.KindFreeze, event.KindFees, event.KindEmail, event.KindAccountClosed:
		return "account " + c.admin.Account
	case event.KindHalt:
		return "pair " + c.admin.Pair
	case event.KindMaintenance:
		return "maintenance"
	case event.KindMailed:
		return "mail " + strconv.FormatUint(c.admin.mail, 10)
	case event.KindNote:
		return "note"
	}
	return "key " + c.admin.Key
}

func (g *registry) account(c *Command) (submit bool, err error) {
	a := &c.admin
	switch {
	case !nameForm.MatchString(a.Account):
		return false,
			refusef(
				"account name %.80q: 1 to 64 of a-z, 0-9, '.', '_' and '-', beginning with a "+
					"letter or a digit", a.Account)
	case a.Email != "" && !isEmail(a.Email):
		return false, refusef("%.80q is not an e-mail address", a.Email)
	case g.accounts[a.Account] != nil:
		return false, refusef("account %s exists already", a.Account)
	case int(g.accountIDs) >= g.limits.Load().Accounts:
		return false, limitf("there are %d accounts, no more are allowed", g.accountIDs)
	}
	g.accountIDs++
	a.AccountID = g.accountIDs
	c.record.Account = event.Account{ID: a.AccountID, Name: a.Account, Email: a.Email}
	return true, nil
}

func (g *registry) key(c *Command) (submit bool, err error) {
	a := &c.admin
	account, err := g.known(a.Account)
	if err != nil {
		return false, err
	}
	switch {
	case !keyForm.MatchString(a.Key):
		return false, refusef("key %.80q: 4 to 64 letters, digits, '.', '_' and '-'", a.Key)
	case g.dir.Key([]byte(a.Key)) != nil || g.revoked[a.Key] != nil:
		return false, refusef("key %s exists already", a.Key)
	case a.Permissions == 0 || a.Permissions&^event.AllPermissions != 0:
		return false,
			refusef("a key needs at least one of the permissions read, trade and withdraw")
	case g.keysOf[account.ID] >= g.limits.Load().KeysPerAccount:
		return false, limitf("account %s has %d keys, no more are allowed: revoke one",
			account.Name, g.keysOf[account.ID])
	case c.kind == event.KindParallelKey && (a.Parallel < 1 || a.Parallel > event.MaxParallel):
		return false, refusef("a key for parallel use keeps 1 to %d nonces", event.MaxParallel)
	case len(a.Allow) > 100:
		return false, refusef("at most 100 address prefixes for a key")
	}
	for i, prefix := range a.Allow {
		p, err := parsePrefix(prefix)
		switch {
		case err != nil:
			return false, refusef("%.80q is not an address or a CIDR prefix such as 10.0.0.0/8",
				prefix)
		// a slip would let the key work from far more addresses than the operator meant
		case p != p.Masked():
			return false,
				refusef("%.80q has bits behind its prefix: write %s, or %s for the one address",
					prefix, p.Masked(), p.Addr())
		}
		a.Allow[i] = p.String()
	}
	g.keyNumbers++
	g.keysOf[account.ID]++
	k := &c.record.Key
	*k = event.Key{Number: g.keyNumbers, Account: account.ID, Key: a.Key,
		Permissions: a.Permissions, Allow: a.Allow, Parallel: uint16(a.Parallel),
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

func (g *registry) revoke(c *Command) (submit bool, err error) {
	if account := g.revoked[c.admin.Key]; account != nil {
		c.admin.Account = account.Name
		return false, refusef("key %s is revoked already", c.admin.Key)
	}
	k := g.dir.Key([]byte(c.admin.Key))
	if k == nil {
		return false, refusef("there is no key %.80q", c.admin.Key)
	}
	c.admin.Account = k.Account.Name
	c.record.KeyRevoked = event.KeyRevoked{Number: k.Number}
	return true, nil
}

// depositable checks a deposit, but for its reference, and for the end of its account.
func (g *registry) depositable(a *Admin) error {
	switch {
	case g.accounts[a.Account] == nil:
		return refusef("there is no account %.80q", a.Account)
	case g.catalogue.CurrencyNumber(a.Currency) == 0:
		return refusef("%s", g.catalogue.NoCurrency(a.Currency))
	case a.amount <= 0:
		return refusef("the amount of a deposit is above 0")
	case a.Reference == "" || len(a.Reference) > MaxReference:
		return refusef("a reference has 1 to %d bytes", MaxReference)
	}
	return nil
}

func (g *registry) deposit(c *Command, known *lookup) (submit bool, err error) {
	a := &c.admin
	if err := g.depositable(a); err != nil {
		return false, err
	}
	if known.Err != nil {
		return false, known.Err
	}
	account, currency := g.accounts[a.Account], g.catalogue.CurrencyNumber(a.Currency)
	a.AccountID = account.ID
	if known.ID != 0 {
		d := &known.Deposit
		if d.Account != account.ID || d.Currency != currency || d.Amount != a.amount {
			return false,
				refusef("reference %q belongs to deposit %d, which is another one: %v %s to %s",
					a.Reference, known.ID, d.Amount,
					g.catalogue.CurrencyCode(d.Currency), g.dir.Account(d.Account).Name)
		}
		a.Deposit, a.Repeated = known.ID, true
		return false, nil
	}
	if _, err := g.known(a.Account); err != nil { // it is closed
		return false, err
	}
	total := g.deposited[currency-1].Add(a.amount.Balance())
	if total.Cmp(money.MaxSupply) >= 0 {
		return false,
			limitf("with this deposit there would be %v %s: the most that can be held is %v", total,
				a.Currency, money.MaxSupply)
	}
	g.deposited[currency-1] = total
	g.depositing[account.ID]++
	g.deposits++
	a.Deposit = g.deposits
	c.record.Deposit = event.Deposit{ID: a.Deposit, Account: account.ID, Currency: currency,
		Amount: a.amount, Reference: a.Reference}
	return true, nil
}

// released takes a durable change into the tables, replies, and decides the commands that waited
// for it.
func (g *registry) released(c *Command) {
	r := &c.record
	switch r.Kind {
	case event.KindAccount:
		a := &directory.Account{ID: r.Account.ID, Name: r.Account.Name}
		a.SetEmail(r.Account.Email != "")
		g.dir.AddAccount(a)
		g.add(a)
	case event.KindKey, event.KindParallelKey:
		if err := g.addKey(&r.Key); err != nil {
			panic(fmt.Sprintf("BUG: a key that was just made: %v", err))
		}
	case event.KindKeyRevoked:
		g.end(g.dir.Key([]byte(c.admin.Key)))
	case event.KindDeposit:
		if g.depositing[r.Deposit.Account]--; g.depositing[r.Deposit.Account] == 0 {
			delete(g.depositing, r.Deposit.Account)
		}
	default:
		g.applySetting(c)
	}
	g.over(c)
}

// over answers a command that was on its way, and decides the commands that waited for it.
func (g *registry) over(c *Command) {
	waiting := append(g.later, g.free(c)...)
	if c.kind == event.KindAccountClosed {
		g.closing = 0
	}
	g.out.finish(c, c.outcome) // from here on the command is its handler's
	g.onTheWay--
	g.later = nil
	for _, next := range waiting {
		g.decide(next)
	}
}

// end takes a key whose end is durable out of the directory.
func (g *registry) end(k *directory.Key) {
	g.dir.RemoveKey(k)
	g.revoked[k.Public] = k.Account
	g.keysOf[k.Account.ID]--
	g.out.toWallet(k.Account, &keyEnded{k.Number})
}

// addKey adds a key that was just made to the directory.
func (g *registry) addKey(k *event.Key) error {
	account := g.dir.Account(k.Account)
	secret, err := openSecret(k, account.Name, g.sealer)
	if err != nil {
		return err
	}
	entry, err := newKey(k, account, g.material(secret))
	if err == nil {
		g.dir.AddKey(entry)
	}
	return err
}

// newKey makes the directory's entry of a key.
func newKey(k *event.Key, account *directory.Account, material any) (*directory.Key, error) {
	e := &directory.Key{Number: k.Number, Public: k.Key, Account: account,
		Permissions: k.Permissions, Parallel: int(k.Parallel), Material: material}
	for _, a := range k.Allow {
		p, err := netip.ParsePrefix(a)
		if err != nil {
			return nil, fmt.Errorf("key %s of account %s: %w", k.Key, account.Name, err)
		}
		e.Allow = append(e.Allow, p)
	}
	return e, nil
}
