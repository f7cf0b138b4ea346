package replicated

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"exchange/persistence"
	"exchange/persistence/internal/durable"
	"exchange/persistence/internal/link"
	"exchange/persistence/internal/machine"
)

// Copies makes and takes copies of the local store. A node that joins gets one if the beginning of
// the journal is forgotten. A copy says by itself whether it is whole.
type Copies interface {
	// Write writes a copy of a local store that is in use. A copy of a sequence below least is of
	// no use: if there is no newer one, Write returns an error before the first byte.
	Write(ctx context.Context, local persistence.Store, least uint64, w io.Writer) error
	// Fill reads a copy to its end, and makes of it a store beside the local one, in the place of
	// what an earlier Fill has made. It returns the sequence of the copy. When it returns, the
	// store is whole and durable.
	Fill(ctx context.Context, r io.Reader) (seq uint64, err error)
	// Swap closes the local store, lets the newest Fill's take its place in one step, and opens it.
	Swap(ctx context.Context, local persistence.Store) (persistence.Store, error)
}

// copyFile marks a folder whose local store may be a copy, while there is no log. A crash between
// the copy and the log leaves both: the next start begins again.
const copyFile = "COPY"

// againTicks is how long a node waits until it asks for another copy.
const againTicks = 20

func (w *opening) mark() string { return w.files.PathJoin(w.Folder, copyFile) }

func (w *opening) marked() (bool, error) {
	_, err := w.files.Stat(w.mark())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// setMark makes the mark durable.
func (w *opening) setMark() error {
	if err := w.files.MkdirAll(w.Folder, 0o700); err != nil {
		return err
	}
	f, err := w.files.Create(w.mark(), "raft")
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return durable.SyncFolder(w.files, w.Folder)
}

// unmark takes the mark away, because there is a log.
func (w *opening) unmark() error {
	there, err := w.marked()
	if err != nil || !there {
		return err
	}
	if err := w.files.Remove(w.mark()); err != nil {
		return err
	}
	return durable.SyncFolder(w.files, w.Folder)
}

// serve writes a copy for a node that joins. The start that asks is the one that has joined, as far
// as is applied here: so both are on one line of the journal, and none that an operator has left
// behind.
func (w *opening) serve(ctx context.Context, to string, q link.Want, out io.Writer) error {
	s := w.store.Load()
	if s == nil || w.Copies == nil {
		return errors.New("this node has no copy to give")
	}
	if !slices.ContainsFunc(s.seen.Load().members, func(m machine.Member) bool {
		return m.Name == to && m.Role == machine.Learner && m.Nonce == q.Nonce
	}) {
		return fmt.Errorf("this start of node %s does not join, as far as is known here", to)
	}
	w.Logger.Info("another node gets a copy of this one's store", "node", to)
	return w.Copies.Write(ctx, s.local, q.Least, out)
}

// fill makes the local store a copy of another node's, at or above the sequence that the log is
// offered behind. Meanwhile that may move, if the others do not keep their logs so long: then
// another copy is needed. The log is made behind the newest offer, when the copy is there.
func (w *opening) fill(ctx context.Context) error {
	if w.Copies == nil {
		return errors.New("the beginning of the journal is forgotten, and this node takes no copy")
	}
	if err := w.setMark(); err != nil {
		return err
	}
	for tries := 0; ; tries++ {
		from := w.source(tries)
		w.Logger.Info("this node gets a copy of another one's store", "from", from)
		end, err := w.former.offer.end()
		if err != nil {
			return err
		}
		seq, err := w.fetch(ctx, from, end)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, persistence.ErrRemoved) {
			return err
		}
		if err == nil {
			if end, err = w.former.offer.end(); err == nil && seq < end {
				err = fmt.Errorf("the copy is of sequence %d, and the others have forgotten the "+
					"journal up to %d meanwhile", seq, end)
			}
		}
		if err == nil {
			w.Local, err = w.Copies.Swap(ctx, w.Local)
			return err
		}
		w.Logger.Warn("there is no copy of another node's store yet", "from", from, "error", err)
		if err := w.meanwhile(ctx, againTicks, nil); err != nil {
			return err
		}
	}
}

// source returns the node that is asked for a copy: one that follows rather than the one that
// leads, and another one with each try.
func (w *opening) source(tries int) string {
	var list, leads []string
	for _, name := range w.former.names {
		switch word, ok := w.former.heard[name]; {
		case !ok || word.Stage != begun:
		case word.Leads:
			leads = append(leads, name)
		default:
			list = append(list, name)
		}
	}
	if list = append(list, leads...); len(list) == 0 {
		return ""
	}
	return list[tries%len(list)]
}

// fetch gets a copy at or above a sequence, and talks to the others meanwhile.
func (w *opening) fetch(ctx context.Context, from string, least uint64) (seq uint64, err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var r io.ReadCloser
		q := link.Want{Nonce: w.former.nonce, Least: least}
		if r, err = w.link.Fetch(ctx, from, q); err == nil {
			defer r.Close()
			seq, err = w.Copies.Fill(ctx, r)
		}
	}()
	if ended := w.meanwhile(ctx, 0, done); ended != nil {
		end()
		<-done
		return 0, ended
	}
	return seq, err
}

// meanwhile talks to the others, for some ticks or until done is closed. ErrRemoved: this node is
// to join no more.
func (w *opening) meanwhile(ctx context.Context, ticks int, done <-chan struct{}) error {
	for n := 0; done != nil || n < ticks; {
		select {
		case r := <-w.frames:
			w.former.receive(r.from, r.frame)
			if by := w.former.removedBy(); by != "" {
				return fmt.Errorf("%w: node %s leads, and does not let it join any more",
					persistence.ErrRemoved, by)
			}
		case <-w.ticker.C:
			w.former.tick()
			n++
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// tellBehind tells members that this node, which leads, has forgotten what they lack, or what it
// believes that they lack.
func (n *node) tellBehind() {
	if n.ticks%sayTicks != 0 || n.raw.BasicStatus().RaftState != raft.StateLeader {
		return
	}
	first := n.trim.begins + 1
	n.raw.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		if name := n.nameOf(id); name != "" && id != n.id && p.Next < first {
			if p.Match > 0 { // otherwise it is still on its way
				n.logger.Error("a node lacks entries that this one has forgotten: replace it",
					"node", name, "from", p.Match+1, "before", first)
			}
			f := n.frame(frameBehind)
			n.send(name, binary.BigEndian.AppendUint64(f.begin(), first))
		}
	})
}

// isBehind takes tellBehind's word. If nothing is missing, the one that leads does not know how far
// this node is: a node that joins may have its log from above the entry that raft tries first. This
// node tells that it has what is applied here. Otherwise it cannot get what it lacks. It votes on:
// what it has acknowledged is there. Only a node without a log gets a copy, because nothing is
// expected of it. The word of a node that does not lead is dropped.
func (n *node) isBehind(from uint64, payload []byte) {
	last, err := n.log.LastIndex()
	s := n.raw.BasicStatus()
	if len(payload) != 8 || err != nil || s.Lead != from {
		return
	}
	first := binary.BigEndian.Uint64(payload)
	if last+1 >= first {
		n.deliver(&pb.Message{Type: pb.MsgAppResp.Enum(), From: new(n.id), To: new(s.Lead),
			Term: new(s.GetTerm()), Index: new(n.applied)})
		return
	}
	if n.ticks < n.saysBehind {
		return
	}
	n.saysBehind = n.ticks + sayTicks/2
	what := "stop it, replace it by itself, empty its folders, and start it: exchange cluster " +
		"replace NODE NODE=HOST:PORT"
	if slices.ContainsFunc(n.machine.Members(), func(m machine.Member) bool {
		return m.ID == n.id && m.Role == machine.Learner
	}) {
		what = "stop it, empty its folders, and start it: it joins anew"
	}
	n.logger.Error("the node that leads has forgotten entries that this node lacks, beyond "+
		"cluster.log_max: "+what, "from", last+1, "before", first)
}
