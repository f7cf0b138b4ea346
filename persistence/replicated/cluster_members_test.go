package replicated

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
	"exchange/persistence/memory"
)

// A diskCopy is a copy of a node's disk and local store, made while the node ran.
type diskCopy struct {
	disk  *disk
	local *memory.Disk
	id    uint64
	boot  uint64 // of the running start
}

func (n *clusterNode) name() string { return nodeNames[n.at] }

// store returns the node's store; nil: it takes no part.
func (n *clusterNode) store() *store {
	if l := n.life.Load(); l != nil {
		return l.store()
	}
	return nil
}

// empty gives a node that is down a new disk with an empty data folder.
func (n *clusterNode) empty() {
	d := newDisk()
	must(n.r.T, d.mem.MkdirAll(folder, 0o700))
	root, err := d.mem.OpenDir("")
	must(n.r.T, err)
	must(n.r.T, errors.Join(root.Sync(), root.Close()))
	n.r.mu.Lock()
	defer n.r.mu.Unlock()
	n.disk, n.local, n.copied, n.unfit = d, memory.NewDisk(), nil, false
}

// named returns the configured nodes: the voters, until there is a cluster.
func (r *liveCluster) named() (list []Node) {
	count := voters
	if r.begun {
		count = places
	}
	for _, name := range nodeNames[:count] {
		list = append(list, Node{Name: name, Address: addressOf(name)})
	}
	return list
}

func addressOf(name string) string { return name + ":7000" }

// other returns a voter that is not in but.
func (r *liveCluster) other(but ...*clusterNode) *clusterNode {
	list := slices.DeleteFunc(slices.Clone(r.voting),
		func(n *clusterNode) bool { return slices.Contains(but, n) })
	return list[r.draw(len(list))]
}

// spare returns a node that is no member.
func (r *liveCluster) spare() *clusterNode {
	list := slices.DeleteFunc(slices.Clone(r.nodes[:]),
		func(n *clusterNode) bool { return slices.Contains(r.voting, n) })
	return list[r.draw(len(list))]
}

// voterOf returns the ID of the voter with a name; 0: there is none.
func voterOf(members []machine.Member, name string) uint64 {
	for _, m := range members {
		if m.Name == name && m.Role == machine.Voter {
			return m.ID
		}
	}
	return 0
}

// change requests a membership change of leaders, until one of them has applied it. Answers may be
// lost, so the request is repeated; once made holds, it always holds.
func (r *liveCluster) change(what string, ask func(ctx context.Context, s *store) error,
	made func(members []machine.Member) bool) {
	r.Helper()
	r.rests.Store(3)
	defer r.rests.Store(0)
	r.until(what, func() bool {
		for _, n := range r.nodes {
			s := n.store()
			if s == nil || !s.Leads() {
				continue
			}
			if made(s.view.Load().members) {
				return true
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			ask(ctx, s) //nolint:errcheck // the members are checked
			cancel()
		}
		return false
	})
}

// settle waits until all voters have applied the membership.
func (r *liveCluster) settle() {
	r.Helper()
	r.until("all voters have applied the membership", func() bool {
		for _, n := range r.voting {
			s := n.store()
			if s == nil {
				return false
			}
			members := s.view.Load().members
			for _, other := range r.voting {
				if voterOf(members, other.name()) == 0 || len(members) != len(r.voting) {
					return false
				}
			}
		}
		return true
	})
}

// doubt restarts a voter with a spoiled disk. An entry was acknowledged by the voter and a second
// one, which is then down, and not by a third one, which is up. Without the spoiled voter's vote
// there is no majority, so nothing may be applied. Then the second one comes back, the others
// serve, and the spoiled voter must end by itself, for one of the reasons. doubt returns false if
// the voter takes part, which it may if the change is harmless.
func (r *liveCluster) doubt(n *clusterNode, harmless bool, spoil func(), reasons ...error) bool {
	r.Helper()
	lagging := r.other(n)
	holder := r.other(n, lagging)
	r.settle()
	r.cutOffWay(lagging, 0)
	r.serves(10)
	n.crash()
	holder.crash()
	r.heal()
	time.Sleep(20 * time.Millisecond) // frames in flight
	before := r.judge.top()
	n.unfit = true
	spoil()
	n.start()
	l := n.life.Load()
	time.Sleep(time.Duration(r.draw(400)) * time.Millisecond)
	refused := l.refusal()
	if top := r.judge.top(); top != before && !(harmless && refused == nil) {
		r.Errorf("entry %d is applied, %d was, and of the voters only those with node %d, whose "+
			"disk is unfit, are a majority", top, before, n.at)
	}
	holder.start()
	r.serves(10)
	if harmless {
		r.serves(20)
		if refused = l.refusal(); refused == nil {
			return false
		}
	}
	r.until(fmt.Sprintf("node %d is refused", n.at), func() bool { return l.refusal() != nil })
	refused = l.refusal()
	if !slices.ContainsFunc(reasons, func(e error) bool { return errors.Is(refused, e) }) {
		r.Errorf("node %d has ended: %v", n.at, refused)
	}
	if l.led.Load() && !harmless {
		r.Errorf("node %d leads, and its disk is unfit", n.at)
	}
	return true
}

// lose lets a node lose its disk. It must neither vote nor serve, and is replaced.
func (r *liveCluster) lose(n *clusterNode) {
	r.Helper()
	if r.draw(2) == 0 { // its process starts without the disk
		r.doubt(n, false, func() { n.empty(); n.unfit = true }, errReplaced)
	}
	n.crash()
	r.serves(10)
	r.counts["lost disks"]++
	r.replace(n)
}

// putBack starts a node with an older copy of its disk. Each other voter has received a newer start
// of the node: a later copy cannot be distinguished from the disk.
func (r *liveCluster) putBack(n *clusterNode) {
	r.Helper()
	r.settle()
	if n.copied == nil {
		s := n.store()
		r.mu.Lock()
		local := n.local.Copy()
		r.mu.Unlock()
		n.copied = &diskCopy{n.disk.killed(r.T), local, s.log.Identity().Node, s.log.Own().Boot}
		r.serves(10 + r.draw(50))
		if r.draw(2) == 0 {
			return // another fault comes first
		}
	}
	c := n.copied
	n.crash()
	n.start()
	for _, other := range r.voting {
		r.until("a newer start is received", func() (newer bool) {
			s := other.store()
			return other == n || s != nil && s.onNode(context.Background(), func(o *node) {
				newer = o.log.RecordedStart(c.id).Boot > c.boot
			}) == nil && newer
		})
	}
	r.doubt(n, false, func() { n.disk, n.local, n.copied = c.disk, c.local, nil },
		errOlderCopy, errLogTruncated, persistence.ErrCorrupt)
	n.crash()
	if n.start(); r.draw(2) == 0 {
		l := n.life.Load()
		r.until("a refused folder is refused again", func() bool { return l.refusal() != nil })
		if !errors.Is(l.refusal(), persistence.ErrCorrupt) {
			r.Errorf("node %d has ended: %v", n.at, l.refusal())
		}
	}
	n.crash()
	r.counts["put back"]++
	r.replace(n)
}

// replace replaces a node that is down, with a lost disk, by itself with an empty disk, or by
// another one.
func (r *liveCluster) replace(n *clusterNode) {
	r.Helper()
	by := n
	if r.draw(3) == 0 {
		by = r.spare()
	}
	n.empty()
	by.empty()
	old := uint64(0)
	r.change(fmt.Sprintf("node %d may be replaced by %d", n.at, by.at),
		func(ctx context.Context, s *store) error {
			return s.Replace(ctx, n.name(), by.name(), addressOf(by.name()))
		},
		func(members []machine.Member) bool {
			old = voterOf(members, n.name())
			return slices.ContainsFunc(members, func(m machine.Member) bool {
				return m.Name == by.name() && m.Replaces != 0 && m.Replaces == old
			})
		})
	r.oneChange(n, by)
	by.reads = newer
	by.start()
	switch r.draw(4) {
	case 0: // it crashes while it joins
		time.Sleep(time.Duration(r.draw(300)) * time.Millisecond)
		by.crash()
		by.start()
	case 1: // another one does
		time.Sleep(time.Duration(r.draw(300)) * time.Millisecond)
		other := r.other(n)
		other.crash()
		other.start()
	case 2:
		r.handOver(r.other(n), "")
	}
	r.change(fmt.Sprintf("node %d replaces %d", by.at, n.at),
		func(context.Context, *store) error { return nil },
		func(members []machine.Member) bool { return voterOf(members, by.name()) > old })
	r.voting[slices.Index(r.voting, n)] = by
	r.settle()
	r.counts["replaced"]++
}

// oneChange checks that no other node may join during a replacement.
func (r *liveCluster) oneChange(but ...*clusterNode) {
	for _, n := range r.nodes {
		s := n.store()
		if s == nil || !s.Leads() {
			continue
		}
		for _, third := range r.nodes {
			if slices.Contains(but, third) || slices.Contains(r.voting, third) {
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			if err := s.Add(ctx, third.name(), addressOf(third.name())); err == nil {
				r.Errorf("node %d may join while node %d is replaced", third.at, but[0].at)
			}
			cancel()
		}
	}
}

// add adds another node, and makes it a voter.
func (r *liveCluster) add() {
	r.Helper()
	n := r.spare()
	n.empty()
	n.reads = newer
	r.change(fmt.Sprintf("node %d may join", n.at), func(ctx context.Context, s *store) error {
		return s.Add(ctx, n.name(), addressOf(n.name()))
	}, func(members []machine.Member) bool {
		return slices.ContainsFunc(members,
			func(m machine.Member) bool { return m.Name == n.name() })
	})
	n.start()
	r.change(fmt.Sprintf("node %d is a voter", n.at), func(ctx context.Context, s *store) error {
		return s.Promote(ctx, n.name())
	}, func(members []machine.Member) bool { return voterOf(members, n.name()) != 0 })
	r.voting = append(r.voting, n)
	r.settle()
	r.counts["added"]++
}

// remove removes a voter, when there are enough; a leader not before it has handed the lead over.
// Meanwhile it may be cut off or down, or stand still. Its term ends, and its folder is not opened
// again.
func (r *liveCluster) remove(n *clusterNode) {
	r.Helper()
	r.settle()
	l, way := n.life.Load(), r.draw(5)
	comesBack := func() {}
	l.unfit.Store(true)
	id := voterOf(n.store().view.Load().members, n.name())
	if s := n.store(); s.Leads() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if err := s.Remove(ctx, n.name()); err == nil {
			r.Errorf("node %d leads, and is removed", n.at)
		}
		cancel()
	}
	n.unfit = true
	switch way { // it does not notice, and may believe that it leads
	case 0:
		r.cutOffWay(n, 0)
		comesBack = r.heal
	case 1:
		n.crash()
		comesBack = n.start
	case 2:
		comesBack = l.stop()
	case 3:
		comesBack = l.stopAll()
	}
	r.voting = slices.DeleteFunc(r.voting, func(v *clusterNode) bool { return v == n })
	r.change(fmt.Sprintf("node %d is removed", n.at), func(ctx context.Context, s *store) error {
		if s != n.store() {
			return s.Remove(ctx, n.name())
		} else if way == 4 {
			return s.Transfer(ctx, "")
		}
		return nil
	}, func(members []machine.Member) bool {
		return !slices.ContainsFunc(members, func(m machine.Member) bool { return m.ID == id })
	})
	r.settle()
	r.serves(10)
	if way == 0 && r.draw(2) == 0 {
		r.until("the term of a removed node ends", func() bool { return l.engine.Load() == nil })
	}
	comesBack()
	r.removed(n)
	n.crash()
	n.start() // it is not notified again
	r.removed(n)
	n.crash()
	n.empty()
	r.counts["removed"]++
}

// removed waits until a node has ended because it was removed.
func (r *liveCluster) removed(n *clusterNode) {
	r.Helper()
	l := n.life.Load()
	r.until(fmt.Sprintf("node %d, which was removed, ends", n.at), func() bool {
		return l.refusal() != nil && l.engine.Load() == nil
	})
	if !errors.Is(l.refusal(), persistence.ErrRemoved) {
		r.Errorf("node %d was removed, and has ended: %v", n.at, l.refusal())
	}
}

// flip flips a bit of a node's log, of its HEAD or STATE. The node is refused, or continues with
// all that it has acknowledged. In any case it is replaced, because it may read the bit later. Bits
// of the last record are spared: with HEAD's newest mark lost in the same power cut, such a record
// is a torn append (docs/storage.md, what a flipped bit does).
func (r *liveCluster) flip(n *clusterNode) {
	r.Helper()
	what := "flips without effect"
	spoil := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		dir, is := folder+"/"+logFolder, n.disk
		for last := is.lastEntry(r.T, dir); ; {
			n.disk = is.flip(r.T, r.rng, dir, dir+"/log")
			if has := n.disk.lastEntry(r.T, dir); has == 0 || has >= last {
				return
			}
		}
	}
	if r.doubt(n, true, spoil, errOlderCopy, errLogTruncated, persistence.ErrCorrupt) {
		what = "flips"
	}
	n.crash()
	r.counts[what]++
	r.replace(n)
}
