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

// copyFile marks a folder without a log whose local store may be a copy. After a crash between copy
// and log the next start copies again.
const copyFile = "COPY"

// copyRetryTicks is the wait before another copy is requested.
const copyRetryTicks = 20

func (w *startup) copyMark() string { return w.files.PathJoin(w.Folder, copyFile) }

func (w *startup) hasCopyMark() (bool, error) {
	_, err := w.files.Stat(w.copyMark())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// setCopyMark creates the mark durably.
func (w *startup) setCopyMark() error {
	if err := w.files.MkdirAll(w.Folder, 0o700); err != nil {
		return err
	}
	f, err := w.files.Create(w.copyMark(), "raft")
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return durable.SyncFolder(w.files, w.Folder)
}

// clearCopyMark removes the mark, because there is a log.
func (w *startup) clearCopyMark() error {
	there, err := w.hasCopyMark()
	if err != nil || !there {
		return err
	}
	if err := w.files.Remove(w.copyMark()); err != nil {
		return err
	}
	return durable.SyncFolder(w.files, w.Folder)
}

// writeCopy writes a copy for a joining node. Its nonce must be that of the applied join, so that
// both nodes share one history, not one that an operator has abandoned.
func (w *startup) writeCopy(ctx context.Context, to string, q link.Want, out io.Writer) error {
	s := w.store.Load()
	if s == nil || w.Copies == nil {
		return errors.New("this node sends no copies, or its store is not open yet")
	}
	if !slices.ContainsFunc(s.view.Load().members, func(m machine.Member) bool {
		return m.Name == to && m.Role == machine.Learner && m.Nonce == q.Nonce
	}) {
		return fmt.Errorf("this start of node %s is not the learner in the applied membership", to)
	}
	w.Logger.Info("sending a copy of this node's store", "node", to)
	return w.Copies.Write(ctx, s.local, q.Least, out)
}

// fetchStore replaces the local store by a copy of another node's, at or above the sequence of the
// offered state. If the others trim past the copy meanwhile, it fetches another one. The log is
// created after the copy, from the newest offer.
func (w *startup) fetchStore(ctx context.Context) error {
	if w.Copies == nil {
		return errors.New("the journal's beginning is trimmed, and this node accepts no copy")
	}
	if err := w.setCopyMark(); err != nil {
		return err
	}
	for tries := 0; ; tries++ {
		from := w.copySource(tries)
		w.Logger.Info("fetching a copy of another node's store", "from", from)
		end, err := w.formation.offer.endSeq()
		if err != nil {
			return err
		}
		seq, err := w.fetchCopy(ctx, from, end)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, persistence.ErrRemoved) {
			return err
		}
		if err == nil {
			if end, err = w.formation.offer.endSeq(); err == nil && seq < end {
				err = fmt.Errorf("the copy is of sequence %d, and the others have trimmed the "+
					"journal up to %d meanwhile", seq, end)
			}
		}
		if err == nil {
			w.Local, err = w.Copies.Swap(ctx, w.Local)
			return err
		}
		w.Logger.Warn("no copy of another node's store yet: retrying", "from", from, "error", err)
		if err := w.keepForming(ctx, copyRetryTicks, nil); err != nil {
			return err
		}
	}
}

// copySource returns the node to copy from: a follower before the leader, and another one with each
// try.
func (w *startup) copySource(tries int) string {
	var list, leads []string
	for _, name := range w.formation.names {
		switch m, ok := w.formation.messages[name]; {
		case !ok || m.Stage != stageActive:
		case m.Leads:
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

// fetchCopy fetches a copy at or above a sequence. Meanwhile it keeps exchanging frames.
func (w *startup) fetchCopy(ctx context.Context, from string, least uint64) (seq uint64,
	err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var r io.ReadCloser
		q := link.Want{Nonce: w.formation.nonce, Least: least}
		if r, err = w.link.Fetch(ctx, from, q); err == nil {
			defer r.Close()
			seq, err = w.Copies.Fill(ctx, r)
		}
	}()
	if ended := w.keepForming(ctx, 0, done); ended != nil {
		end()
		<-done
		return 0, ended
	}
	return seq, err
}

// keepForming exchanges frames with the others, for some ticks or until done is closed. ErrRemoved:
// the others no longer let this node join.
func (w *startup) keepForming(ctx context.Context, ticks int, done <-chan struct{}) error {
	for n := 0; done != nil || n < ticks; {
		select {
		case r := <-w.frames:
			w.formation.receive(r.from, r.frame)
			if by := w.formation.removedBy(); by != "" {
				return fmt.Errorf("%w: node %s leads, and no longer lets it join",
					persistence.ErrRemoved, by)
			}
		case <-w.ticker.C:
			w.formation.tick()
			n++
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// notifyBehind notifies members that this leader has trimmed entries that they seem to lack.
func (n *node) notifyBehind() {
	if n.tickCount%logTicks != 0 || n.raw.BasicStatus().RaftState != raft.StateLeader {
		return
	}
	first := n.trim.droppedTo + 1
	n.raw.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		if name := n.nameOf(id); name != "" && id != n.id && p.Next < first {
			if p.Match > 0 { // otherwise it is still joining
				n.logger.Error("a node lacks entries that this one has trimmed: replace it",
					"node", name, "from", p.Match+1, "before", first)
			}
			f := n.frame(frameBehind)
			n.send(name, binary.BigEndian.AppendUint64(f.begin(), first))
		}
	})
}

// receiveBehind handles notifyBehind's frame; one that the leader did not send is dropped. If no
// entry is missing, the leader does not know this node's last entry: a joining node's log may begin
// above the entry that raft tries first. Then this node acknowledges its applied index. Otherwise
// it can never catch up, but still votes, because it holds all that it acknowledged. Only a node
// without a log may install a copy, because it has acknowledged nothing.
func (n *node) receiveBehind(from uint64, payload []byte) {
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
	if n.tickCount < n.logBehindAt {
		return
	}
	n.logBehindAt = n.tickCount + logTicks/2
	what := "stop it, replace it by itself, empty its folders, and start it: exchange cluster " +
		"replace NODE NODE=HOST:PORT"
	if slices.ContainsFunc(n.machine.Members(), func(m machine.Member) bool {
		return m.ID == n.id && m.Role == machine.Learner
	}) {
		what = "stop it, empty its folders, and start it: it joins again"
	}
	n.logger.Error("the leader has trimmed entries that this node lacks, beyond "+
		"cluster.log_max: "+what, "from", last+1, "before", first)
}
