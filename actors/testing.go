package actors

import (
	"sync"

	"exchange/actors/committed"
	"exchange/actors/directory"
)

// ForgetKey removes a key from an engine, as if revoked: for tests of package node.
func ForgetKey(p *Public, key *directory.Key) { p.dir.RemoveKey(key) }

// EmptyPools drops pooled commands, whose timers are of one bubble: for tests of package node.
func EmptyPools() {
	commands = sync.Pool{New: commands.New}
	committed.EmptyPools()
}
