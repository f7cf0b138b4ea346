package replicated

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
)

// A taker takes the connections that other members open: see Accept.
type taker func(from string, conn net.Conn)

// joinedOf returns the names of the members that have a log: one that is awaited is none yet.
func joinedOf(members []machine.Member) (names []string) {
	for _, m := range members {
		if m.ID != 0 {
			names = append(names, m.Name)
		}
	}
	return names
}

// connects refuses a node that is no other member, as far as is applied here.
func (s *store) connects(node string) error {
	switch {
	case node == s.log.Identity().Name:
		return fmt.Errorf("%w: node %s is this one", persistence.ErrInvalid, node)
	case !slices.Contains(*s.joined.Load(), node):
		return fmt.Errorf("node %s is not a member, as far as node %s knows", node,
			s.log.Identity().Name)
	}
	return nil
}

// Dial opens a connection to another member.
func (s *store) Dial(ctx context.Context, node string) (net.Conn, error) {
	if err := s.connects(node); err != nil {
		return nil, err
	}
	conn, err := s.dial(ctx, node)
	if err != nil {
		return nil, err
	}
	if err := s.connects(node); err != nil { // it was removed before there was a connection to drop
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Accept sets the function that takes the connections of other members.
func (s *store) Accept(take func(from string, conn net.Conn)) {
	t := taker(take)
	s.take.Store(&t)
	if take == nil {
		s.take.Store(nil)
	}
}

// AcceptObservers sets the function that takes the connections of observers.
func (s *store) AcceptObservers(take func(from string, conn net.Conn)) {
	t := taker(take)
	s.takeObservers.Store(&t)
	if take == nil {
		s.takeObservers.Store(nil)
	}
}

// admit returns why a peer's connection is not taken.
func (w *opening) admit(from string) error {
	s := w.store.Load()
	if s == nil || s.take.Load() == nil {
		return fmt.Errorf("node %s takes no connections yet", w.Name)
	}
	return s.connects(from)
}

// accept lets a connection that is admitted be taken.
func (w *opening) accept(from string, conn net.Conn) {
	if take := w.store.Load().take.Load(); take != nil {
		(*take)(from, conn)
		return
	}
	conn.Close()
}
