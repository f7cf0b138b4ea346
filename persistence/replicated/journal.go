package replicated

import (
	"context"
	"fmt"
	"strconv"

	pb "go.etcd.io/raft/v3/raftpb"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
	"exchange/persistence/internal/machine"
)

// Acquire makes the caller the owner, if this node leads. When it returns, this node has applied
// every earlier entry that can still take effect, and no earlier owner writes to the local store.
func (s *store) Acquire(ctx context.Context, c persistence.Claim) (persistence.Token, uint64,
	error) {
	id, err := codec.CheckClaim(c)
	if err != nil {
		return "", 0, err
	}
	e := &machine.Entry{Kind: machine.Acquire, Unique: id, Owner: c.Owner, Heartbeat: c.Heartbeat,
		Insist: c.Insist, NowMs: s.now().UnixMilli()}
	if c.After != nil {
		e.After = &persistence.Beat{Token: c.After.Token, Count: c.After.Count, End: c.After.End,
			Accepted: c.After.Accepted}
	}
	a, err := s.propose(ctx, e)
	if err != nil {
		return "", 0, err
	}
	s.writes.Lock() // waits for the writes of the previous owner
	defer s.writes.Unlock()
	if before := s.claimed.Load(); before == nil || before.Epoch() < a.Token.Epoch() {
		s.claimed.Store(&a.Token)
	}
	return a.Token, a.Seq, nil
}

// Beat returns the newest beat applied here.
func (s *store) Beat(context.Context) (persistence.Beat, error) { return s.view.Load().beat, nil }

// Check confirms the owner by an entry.
func (s *store) Check(ctx context.Context, tok persistence.Token) error {
	_, err := s.propose(ctx, &machine.Entry{Kind: machine.Check, Token: tok})
	return err
}

// Release gives up the engine.
func (s *store) Release(ctx context.Context, tok persistence.Token) error {
	_, err := s.propose(ctx, &machine.Entry{Kind: machine.Release, Token: tok,
		Unique: persistence.NewID()})
	return err
}

// Begin makes the journal of an empty store end at seq. It checks that the local store is empty;
// the machine checks that the journal is.
func (s *store) Begin(ctx context.Context, tok persistence.Token, seq uint64) error {
	if err := codec.CheckBegin(seq); err != nil {
		return err
	}
	if err := s.checkToken(tok); err != nil {
		return err
	}
	s.writes.RLock()
	defer s.writes.RUnlock()
	watermark, err := s.local.Watermark(ctx)
	if err != nil {
		return err
	}
	if watermark != 0 {
		return codec.NotEmpty("projections up to sequence " + strconv.FormatUint(watermark, 10))
	}
	if there, err := s.image(ctx, 0); err != nil {
		return err
	} else if there != nil {
		return codec.NotEmpty("a snapshot")
	}
	_, err = s.propose(ctx, &machine.Entry{Kind: machine.Begin, Token: tok, Next: seq,
		NowMs: s.now().UnixMilli()})
	return err
}

// Append makes a batch durable on a majority of the nodes.
func (s *store) Append(ctx context.Context, tok persistence.Token, prev, next uint64,
	batch []byte) error {
	if err := codec.CheckBatch(prev, next, batch); err != nil {
		return err
	}
	_, err := s.propose(ctx, &machine.Entry{Kind: machine.Append, Token: tok, Prev: prev,
		Next: next, Digest: codec.Digest(batch), Batch: batch})
	return err
}

// Read calls fn for each batch applied here whose last sequence is above after.
func (s *store) Read(ctx context.Context, after uint64, fn func(prev, next uint64,
	batch []byte) error) error {
	s.life.RLock()
	defer s.life.RUnlock()
	select {
	case <-s.done:
		return s.failure
	default:
	}
	v := s.view.Load()
	chain := codec.Chain{After: after, End: v.beat.End.Seq}
	if empty, err := chain.Empty(); empty || err != nil {
		return err
	}
	from := max(after, min(v.trimmed, s.held.Load())) // trimmed batches that are not held are gone
	var err, stopped error
	visit := func(e *machine.Entry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := chain.Next(e.Prev, e.Next, e.Digest, e.Batch); err != nil {
			return err
		}
		stopped = fn(e.Prev, e.Next, e.Batch)
		return stopped
	}
	if list := s.index.newest(from, v.beat.End.Seq); list != nil {
		err = forEach(list, visit)
	} else {
		err = s.readLog(from, v.applied, visit)
	}
	if err == nil {
		err = chain.Done()
	}
	if err == nil || stopped != nil {
		return stopped
	}
	return fmt.Errorf("%s: %w", s, err)
}

func forEach(list []*machine.Entry, fn func(*machine.Entry) error) error {
	for _, e := range list {
		if err := fn(e); err != nil {
			return err
		}
	}
	return nil
}

// readLog calls fn for each batch in the entries up to applied whose last sequence is above after.
func (s *store) readLog(after, applied uint64, fn func(*machine.Entry) error) error {
	marks := s.index.after(after)
	for len(marks) > 0 && marks[len(marks)-1].entry > applied {
		marks = marks[:len(marks)-1]
	}
	if len(marks) == 0 {
		return nil
	}
	return s.log.Read(marks[0].entry-1, marks[len(marks)-1].entry, func(entry *pb.Entry) error {
		if entry.GetIndex() != marks[0].entry {
			return nil // not a batch, or a refused append
		}
		marks = marks[1:]
		e, err := machine.Decode(entry.GetData(), s.maxFormat)
		if err == nil {
			err = fn(e)
		}
		if err != nil {
			return fmt.Errorf("entry %d: %w", entry.GetIndex(), err)
		}
		return nil
	})
}

// Trim lets this node's log drop the batches up to upTo, except those that the older of its two
// images or its archive needs. It also proposes upTo to all nodes, whatever this node needs. Under
// the node's own token it proposes only if this node's newest claim owns the engine.
func (s *store) Trim(ctx context.Context, tok persistence.Token, upTo uint64) error {
	own := tok == s.nodeToken
	if !own {
		if err := s.checkToken(tok); err != nil {
			return err
		}
	}
	needed, err := s.neededSeq(ctx)
	if err != nil {
		return err
	}
	allowed := min(upTo, needed, s.held.Load())
	err = s.onNode(ctx, func(n *node) { n.trim.allowedSeq = max(n.trim.allowedSeq, allowed) })
	if err != nil {
		return err
	}
	if own {
		var owns bool
		if tok, owns = s.ownerToken(); !owns {
			return nil
		}
	}
	_, err = s.propose(ctx, &machine.Entry{Kind: machine.Trim, Token: tok, Next: upTo})
	if own && isLostClaim(err) {
		return nil
	}
	return err
}
