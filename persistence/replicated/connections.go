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

// joinedNames returns the names of the members that have a log, which excludes awaited ones.
func joinedNames(members []machine.Member) (names []string) {
	for _, m := range members {
		if m.ID != 0 {
			names = append(names, m.Name)
		}
	}
	return names
}

// checkMember refuses a node that is not another member, by the membership applied here.
func (s *store) checkMember(node string) error {
	switch {
	case node == s.log.Identity().Name:
		return fmt.Errorf("%w: node %s is this one", persistence.ErrInvalid, node)
	case !slices.Contains(*s.joined.Load(), node):
		return fmt.Errorf("node %s is not a member in the membership of node %s", node,
			s.log.Identity().Name)
	}
	return nil
}

// Dial opens a connection to another member.
func (s *store) Dial(ctx context.Context, node string) (net.Conn, error) {
	if err := s.checkMember(node); err != nil {
		return nil, err
	}
	conn, err := s.dial(ctx, node)
	if err != nil {
		return nil, err
	}
	if err := s.checkMember(node); err != nil { // removed while the connection was opened
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Accept sets the handler of the connections of other members; nil: they are refused.
func (s *store) Accept(take func(from string, conn net.Conn)) {
	t := connHandler(take)
	s.onConn.Store(&t)
	if take == nil {
		s.onConn.Store(nil)
	}
}

// AcceptObservers sets the handler of the connections of observers; nil: they are refused.
func (s *store) AcceptObservers(take func(from string, conn net.Conn)) {
	t := connHandler(take)
	s.onObserver.Store(&t)
	if take == nil {
		s.onObserver.Store(nil)
	}
}

// admit returns the reason why a peer's connection is refused.
func (w *startup) admit(from string) error {
	s := w.store.Load()
	if s == nil || s.onConn.Load() == nil {
		return fmt.Errorf("node %s takes no connections yet", w.Name)
	}
	return s.checkMember(from)
}

// accept passes an admitted connection to the handler.
func (w *startup) accept(from string, conn net.Conn) {
	if take := w.store.Load().onConn.Load(); take != nil {
		(*take)(from, conn)
		return
	}
	conn.Close()
}
