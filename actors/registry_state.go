package actors

import (
	"sync/atomic"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/money"
)

// A registry decides on names that are unique in the engine: accounts, keys, deposit references.
// One actor owns it. While an object's record is on its way, the next command on the object waits
// until that record is released.
type registry struct {
	registryTools

	accounts    map[string]*directory.Account
	accountIDs  uint32
	revoked     map[string]*directory.Account // by the key's name; the live ones are in dir
	keyNumbers  uint32
	keysOf      map[uint32]int // live keys by account
	deposits    uint64
	deposited   []money.Balance // by currency number-1, what is on its way included
	lastTimeUs  int64
	busy        map[string][]*Command // object -> the commands that wait for it
	maintenance event.Maintenance
	closed      map[uint32]bool // accounts by id
	closing     uint32          // id of the account whose end is on its way; 0: none is
	depositing  map[uint32]int  // deposits on their way, by account; no entry is zero
	onTheWay    int             // commands submitted and not released
	// commands at a limit that counts commands on their way, or that wait for an account's end, or
	// for the deposits before that
	later []*Command
}

// registryTools are the parts that a registry works with.
type registryTools struct {
	limits    *atomic.Pointer[Limits]
	dir       *directory.Directory
	catalogue *directory.Catalogue
	fees      *fees
	sealer    *seal.Sealer
	material  func(secret []byte) any // Options.KeyMaterial
	journal   *journal
	index     *committed.Index
	out       registryOut
}

// registryOut takes a registry's decisions, and its questions.
type registryOut interface {
	toBook(c *Command) // c.record.Pair says which
	toWallet(a *directory.Account, message any)
	lookUp(l *lookup)                       // asks the committed side
	settleMaintenance(m *event.Maintenance) // admission follows it from now on
	maintenanceEnds(timeUs int64)           // comes before that
	reads(format uint8) bool                // whether all members of the cluster do
	finish(c *Command, o Outcome)
}

// A lookup is a command's question for its deposit or its mail, which only the committed side
// keeps. No other command of the same object is on its way meanwhile, and the committed side has
// all that was released before.
type lookup struct {
	committed.Lookup
	command *Command
}

// leavesOpen reports whether the store is still to be asked.
func (l *lookup) leavesOpen() bool {
	return l.command.kind == event.KindDeposit && l.ID == 0 && !l.Asked
}

// refusedEnd tells the registry that an account's wallet does not let it be closed, for the
// command's adminErr.
type refusedEnd struct{ command *Command }

// releasedCommand tells the registry that one of its commands is durable.
type releasedCommand struct{ command *Command }

// known returns an account that is not closed.
func (g *registry) known(name string) (*directory.Account, error) {
	if a := g.accounts[name]; a != nil {
		if g.closed[a.ID] {
			return nil, refusef("account %s is closed", name)
		}
		return a, nil
	}
	return nil, refusef("there is no account %.80q", name)
}

// MaxReference bounds a deposit's reference, in bytes.
const MaxReference = 128
