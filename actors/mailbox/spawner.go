package mailbox

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
)

// A Spawner spawns actors of one kind. They share their properties, which saves memory: there may
// be a million wallets. One goroutine at a time uses it.
type Spawner struct {
	root   *actor.RootContext
	props  *actor.Props
	next   actor.Actor // the producer's result, while SpawnNamed runs
	newest *Mailbox
}

// NewSpawner makes a Spawner of actors whose mailboxes have capacity for room messages from the
// start.
func NewSpawner(root *actor.RootContext, room int, host *Host) *Spawner {
	s := &Spawner{root: root}
	s.props = actor.PropsFromProducer(func() actor.Actor { return s.next },
		actor.WithMailbox(func() actor.Mailbox {
			s.newest = New(room, host)
			return s.newest
		}))
	return s
}

// Spawn starts an actor that already has its state.
func (s *Spawner) Spawn(name string, a actor.Actor) (*actor.PID, error) {
	s.next = a
	pid, err := s.root.SpawnNamed(s.props, name)
	s.next = nil
	if err != nil {
		return nil, fmt.Errorf("starting actor %s: %w", name, err)
	}
	return pid, nil
}

// Newest returns the mailbox of the last spawned actor.
func (s *Spawner) Newest() *Mailbox { return s.newest }
