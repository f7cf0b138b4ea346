package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
)

// members changes the nodes of a cluster. Only the leader can. An *actors.RequestError refuses the
// change with the reason; after another error the outcome is unknown.
type members interface {
	// Add lets a node with an empty folder join as a learner. address is its listener.
	Add(ctx context.Context, name, address string) error
	// Promote makes a learner with the complete log a voter.
	Promote(ctx context.Context, name string) error
	// Remove removes a voter, a learner, or an awaited node.
	Remove(ctx context.Context, name string) error
	// Replace lets a node join that replaces a voter once it has the log. Both names are equal for
	// a voter whose log is lost.
	Replace(ctx context.Context, old, name, address string) error
}

// Roles of a NodeStanding.
const (
	Voter   = "voter"
	leaving = "leaving" // a voter being replaced, until the change is complete
	Learner = "learner" // still receiving the log, without a vote
	Awaited = "awaited" // has not joined yet
)

// changePatience bounds the wait for a change of the membership. It is shorter than the client's
// timeout.
const changePatience = 10 * time.Second

// alive is the longest silence of a live node, in ticks.
const alive = 10

// A MembershipRequest asks for a change of members. The client repeats it until it is done.
type MembershipRequest struct {
	Node    string `json:"node" need:"yes" doc:"Name of the node"`
	Address string `json:"address,omitempty" doc:"Where it listens for the others"`
	Old     string `json:"old,omitempty" doc:"Of a replacement, the voter that leaves"`
	Begun   bool   `json:"begun,omitempty" doc:"An earlier request of the same change was answered"`
}

// A MembershipAnswer is the progress of a change.
type MembershipAnswer struct {
	Node string  `json:"node"`
	Done bool    `json:"done" doc:"Whether the change is complete"`
	Role string  `json:"role"`
	Lag  *uint64 `json:"lag"`
	Says string  `json:"says" doc:"Remaining step, or result"`
}

// membershipHandler returns the handler of a change. Each request takes the next possible step.
func membershipHandler(step func(context.Context, *call, members, *Standing,
	*MembershipRequest) error,
) func(*call, *MembershipRequest) (*MembershipAnswer, error) {
	return func(c *call, w *MembershipRequest) (*MembershipAnswer, error) {
		s, err := c.server.requireLeader()
		if err != nil {
			return nil, err
		}
		if w.Node == "" {
			return nil, &badRequest{"node: the name of the node is required"}
		}
		ctx, cancel := within(changePatience)
		defer cancel()
		progress, done := "", ""
		if err := step(ctx, c, c.server.cluster, s, w); err != nil {
			var pending notYet
			var before doneBefore
			switch {
			case errors.As(err, &before):
				done = before.Error()
			case errors.As(err, &pending):
				progress = pending.Error()
			default:
				return nil, changeFailed(err)
			}
		}
		a := w.answer(c.server.cluster.Standing(), progress)
		a.Says += done
		return a, nil
	}
}

// A notYet error is the reason why a change is not complete yet.
type notYet struct{ error }

// A doneBefore error is the reason why nothing is done: an earlier request did it. Its text is
// appended to the answer.
type doneBefore struct{ error }

// changeFailed returns the error of a change: it is refused, or its outcome is unknown.
func changeFailed(err error) error {
	var refused *actors.RequestError
	var syntax *badRequest
	if errors.As(err, &refused) || errors.As(err, &syntax) {
		return err
	}
	return fmt.Errorf("%w: %w", committed.ErrTimeout, err)
}

// answer returns the progress of a change.
func (w *MembershipRequest) answer(s Standing, progress string) *MembershipAnswer {
	a := &MembershipAnswer{Node: w.Node, Says: progress}
	i := slices.IndexFunc(s.Nodes, func(n NodeStanding) bool {
		return n.Name == w.Node && n.coming()
	})
	if i < 0 {
		i = slices.IndexFunc(s.Nodes, func(n NodeStanding) bool { return n.Name == w.Node })
	}
	if i >= 0 {
		n := &s.Nodes[i]
		if a.Role = n.Role; n.Role != Awaited {
			lag := Lag(&s, n)
			a.Lag = &lag
		}
	}
	if a.Done = progress == ""; !a.Done {
		return a
	}
	a.Says = "node " + w.Node + " is a " + a.Role
	if a.Role == "" {
		a.Says = "node " + w.Node + " is no member"
	}
	return a
}

// pending returns the error of a joining node.
func (n *NodeStanding) pending(s *Standing) error {
	if n.Role == Awaited {
		return notYet{fmt.Errorf("node %s is awaited: start it with an empty folder", n.Name)}
	}
	return notYet{fmt.Errorf("node %s is a learner, and lacks %d entries of the log", n.Name,
		Lag(s, n))}
}

// checkAddress returns an error for an address that differs from the node's current one.
func (n *NodeStanding) checkAddress(w *MembershipRequest) error {
	if n.Address == "" || n.Address == w.Address {
		return nil
	}
	return &badRequest{fmt.Sprintf("node %s is a member at %s", n.Name, n.Address)}
}

// add makes a node join: awaited, then learner, and finally voter.
func add(ctx context.Context, c *call, m members, s *Standing, w *MembershipRequest) error {
	n := s.node(w.Node)
	if n == nil {
		if err := m.Add(ctx, w.Node, w.Address); err != nil {
			return err
		}
		c.server.log.Warn("a node is added to the cluster", "node", w.Node, "address", w.Address,
			"operator", c.operator)
		c.note("added node %s at %s to the cluster", w.Node, w.Address)
		return (&NodeStanding{Name: w.Node, Role: Awaited}).pending(s)
	}
	err := n.checkAddress(w)
	switch {
	case err != nil:
		return err
	case n.Replaces != "":
		return &badRequest{fmt.Sprintf("node %s is replacing %s: continue with "+
			"`exchange cluster replace %[2]s %[1]s=%[3]s`", n.Name, n.Replaces, w.Address)}
	case n.Role == Voter && w.Begun:
		return nil
	case n.Role == Voter:
		return c.server.added(ctx, s, w)
	case n.Role != Learner:
		return n.pending(s)
	}
	err = m.Promote(ctx, w.Node)
	var refused *actors.RequestError
	switch {
	case err == nil:
		c.note("made node %s a voter", w.Node)
	case errors.As(err, &refused): // it lags
		return notYet{err}
	}
	return err
}

// added returns the result of adding a node that is already a member: done if it is alive,
// otherwise what the operator has to do.
func (s *Server) added(ctx context.Context, now *Standing, w *MembershipRequest) error {
	now, err := s.settledView(ctx, now, w.Node)
	if err != nil {
		return err
	}
	if n := now.node(w.Node); n != nil && n.Name != now.Node && n.Silent > alive {
		return &badRequest{fmt.Sprintf("node %s is a member, and silent: start it, or if its disk "+
			"is lost, use `exchange cluster replace %[1]s %[1]s=%[2]s`", w.Node, w.Address)}
	}
	return doneBefore{errMember}
}

var errMember = errors.New(", and was one before: nothing was done")

var errJoinedLast = errors.New(", and joined last: it is not replaced once more")

// settledView returns the cluster view after the time in which a dead member becomes silent: until
// then it seems alive.
func (s *Server) settledView(ctx context.Context, now *Standing, name string) (*Standing, error) {
	look := time.NewTicker(max(now.Tick, time.Millisecond))
	defer look.Stop()
	for range alive + 2 {
		n := now.node(name)
		if n == nil || n.Role != Voter || n.Name == now.Node || n.Silent > alive {
			break
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil, &badRequest{"it is not known yet whether node " + name +
				" lives: try again"}
		}
		standing := s.cluster.Standing()
		now = &standing
	}
	return now, nil
}

// replace makes a node replace a voter.
func replace(ctx context.Context, c *call, m members, s *Standing, w *MembershipRequest) error {
	if w.Old == w.Node && !w.Begun {
		var err error
		if s, err = c.server.settledView(ctx, s, w.Node); err != nil {
			return err
		}
	}
	old := s.node(w.Old)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Name != w.Node || !n.coming() {
			continue
		}
		if n.Replaces != w.Old {
			return &badRequest{fmt.Sprintf("node %s is a %s, and is not replacing %s",
				n.Name, n.Role, cmp.Or(w.Old, "any"))}
		}
		return cmp.Or(n.checkAddress(w), n.pending(s))
	}
	n := s.node(w.Node)
	switch {
	case w.Old == w.Node && n != nil && w.Begun:
		return nil
	case w.Old == w.Node && n != nil && n.Newest && n.Role == Voter && n.Silent <= alive:
		// The newest member got its disk by this command, or needs no other one.
		return cmp.Or(n.checkAddress(w), error(doneBefore{errJoinedLast}))
	case w.Old == w.Node && n != nil && (n.Name == s.Node || n.Silent <= alive):
		return &badRequest{fmt.Sprintf("node %s lives and has its log: there is nothing to "+
			"replace; if it is to have another disk, stop it first", n.Name)}
	case w.Old != w.Node && n != nil && old == nil:
		return n.checkAddress(w)
	case old != nil && old.Role == leaving:
		return notYet{fmt.Errorf("node %s leaves", old.Name)}
	case w.Old == s.Node:
		return &badRequest{fmt.Sprintf("node %s leads: hand the lead over first, with "+
			"`exchange cluster transfer`", w.Old)}
	}
	if err := m.Replace(ctx, w.Old, w.Node, w.Address); err != nil {
		return err
	}
	c.server.log.Warn("a node of the cluster is replaced", "node", w.Old, "by", w.Node, "address",
		w.Address, "operator", c.operator)
	c.note("had node %s at %s begin to replace node %s", w.Node, w.Address, w.Old)
	return (&NodeStanding{Name: w.Node, Role: Awaited}).pending(s)
}

// remove removes a node from the cluster.
func remove(ctx context.Context, c *call, m members, s *Standing, w *MembershipRequest) error {
	if s.node(w.Node) == nil && w.Begun {
		return nil
	}
	if err := m.Remove(ctx, w.Node); err != nil {
		return err
	}
	c.server.log.Warn("a node is removed from the cluster", "node", w.Node, "operator", c.operator)
	c.note("removed node %s from the cluster", w.Node)
	return nil
}
