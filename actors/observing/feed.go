package observing

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"exchange/core/event"
	"exchange/core/state"
	"exchange/core/wire"
	"exchange/persistence"
	"exchange/persistence/line"
)

// Parts of a feed, in this order; a page contains some.
const (
	feedBegin = iota + 1 // whether it resumes; sequence and digest that the rest follows
	feedPiece            // bytes of an image
	feedImage            // the image is complete
	feedBatch            // prev, next, digest, batch
)

// A feed is the sender of one observer's feed.
type feed struct {
	*observer
	q    *line.Question
	at   uint64 // sequence up to which batches were sent
	out  []byte // pending bytes
	kept []byte // reused memory of batches
}

// feed sends an observer an image, unless it resumes, and all following batches.
func (x *observer) feed(q *line.Question, p *wire.Reader) error {
	f := &feed{observer: x, q: q}
	seq, digest, resumes := p.Uint(), p.Uint(), p.Flag()
	if !p.End() {
		return fmt.Errorf("%w: a feed begins with %x", line.ErrMalformed, q.Body)
	}
	err := error(nil)
	if resumes {
		err = f.resume(seq, digest)
	} else {
		err = f.image()
	}
	for err == nil && q.Ctx.Err() == nil {
		err = f.next()
	}
	return err
}

// flush sends the pending bytes.
func (f *feed) flush() error {
	if len(f.out) == 0 {
		return nil
	}
	err := f.q.Send(f.out)
	if f.out = f.out[:0]; cap(f.out) > 4*chunkBytes {
		f.out = nil
	}
	return err
}

// start announces the sequence that the batches follow.
func (f *feed) start(resumed byte, seq, digest uint64) {
	f.at = seq
	f.out = wire.AppendUints(append(f.out, feedBegin, resumed), seq, digest)
}

// digestOf returns a digest that identifies a batch.
func digestOf(batch []byte) uint64 {
	sum := sha256.Sum256(batch)
	return binary.BigEndian.Uint64(sum[:])
}

// resume continues after a batch that the observer has.
func (f *feed) resume(seq, digest uint64) error {
	if end, _ := f.store.Known(); seq > end {
		return f.missing(seq, end)
	}
	has, err := f.digest(seq)
	switch {
	case err != nil || has == 0:
		return fmt.Errorf("%w: its journal has no batch to sequence %d", errStartOver, seq)
	case has != digest:
		return fmt.Errorf("%w: its journal has another batch to sequence %d", errStartOver, seq)
	}
	f.start(1, seq, digest)
	return f.flush()
}

// missing returns why the journal lacks an observer's sequence: this member lags behind, or no
// member has it any more, because the cluster continues without lost records.
func (f *feed) missing(seq, end uint64) error {
	ctx, cancel := context.WithTimeout(f.q.Ctx, f.silence/4)
	defer cancel()
	why := fmt.Errorf("its journal ends at sequence %d", end)
	if reached, err := f.store.Reach(ctx); err == nil && reached < seq {
		return fmt.Errorf("%w: %w", errStartOver, why)
	}
	return why
}

// digest returns the digest of the batch that ends at a sequence; 0: the journal has none.
func (f *feed) digest(seq uint64) (uint64, error) {
	if seq == 0 {
		return 1, nil // of the empty journal
	}
	_, next, batch, err := persistence.First(f.q.Ctx, f.store, seq-1)
	if err != nil || next != seq {
		return 0, err
	}
	return max(1, digestOf(batch)), nil
}

// image sends the newest image.
func (f *feed) image() error {
	own, err := f.claimImage()
	if err != nil {
		return err
	}
	defer f.releaseImage(own)
	image, seq, err := persistence.ReadSnapshot(f.q.Ctx, f.store, 0)
	if errors.Is(err, persistence.ErrNoSnapshot) {
		image, seq, err = nil, 0, nil
	}
	if err != nil {
		return err
	}
	digest, err := f.digest(seq)
	if err != nil {
		digest = 0
	}
	f.start(0, seq, digest)
	f.mu.Lock()
	own.readAt = time.Now()
	f.mu.Unlock()
	if image != nil {
		var failed error
		err := state.WithholdImage(image, func(piece []byte) bool {
			f.out = wire.AppendText(append(f.out, feedPiece), string(piece))
			failed = f.flush()
			f.mu.Lock()
			own.sent += len(piece)
			f.mu.Unlock()
			return failed == nil
		})
		if err = errors.Join(err, failed); err != nil {
			return err
		}
	}
	f.mu.Lock()
	delete(f.slow, f.from)
	f.mu.Unlock()
	f.out = append(f.out, feedImage)
	return f.flush()
}

// An imagePatience defines a slow image transfer, which may be aborted for another: it takes longer
// than grace, at fewer bytes per second than pace.
type imagePatience struct {
	grace time.Duration
	pace  int
}

var usualPatience = imagePatience{grace: 10 * time.Second, pace: 1 << 20}

// An imageTransfer is an image in flight to an observer. There is one at a time, because a member
// holds all of it in memory.
type imageTransfer struct {
	to     *feed
	readAt time.Time     // when the image was read, zero before; guarded by Server.mu
	sent   int           // bytes; guarded by Server.mu
	over   chan struct{} // closed at its end
}

var errTransfer = errors.New("an image transfer to another observer is in progress")

// claimImage claims the image transfer for the feed, and aborts a slow one for it. An aborted
// observer aborts no other before it has an image: two slow ones would alternate forever.
func (f *feed) claimImage() (*imageTransfer, error) {
	own := &imageTransfer{to: f, over: make(chan struct{})}
	late := time.NewTimer(f.silence)
	defer late.Stop()
	for {
		f.mu.Lock()
		at := f.transfer
		if at == nil {
			f.transfer = own
		}
		slow := at != nil && !f.slow[f.from] && at.isSlow(f.patience)
		if slow {
			f.slow[at.to.from] = true
		}
		f.mu.Unlock()
		switch {
		case at == nil:
			return own, nil
		case !slow:
			return nil, errTransfer
		}
		f.refused.Warn(f.log, "an observer reads its image too slowly while another one waits",
			at.to.from, nil, "observer", at.to.from)
		at.to.conn.Close()
		select {
		case <-at.over:
		case <-late.C:
			return nil, errTransfer
		case <-f.q.Ctx.Done():
			return nil, f.q.Ctx.Err()
		}
	}
}

// isSlow reports whether a transfer may be aborted for another one. The caller holds Server.mu.
func (i *imageTransfer) isSlow(p imagePatience) bool {
	took := time.Since(i.readAt)
	return !i.readAt.IsZero() && took >= p.grace && float64(i.sent) < took.Seconds()*float64(p.pace)
}

func (f *feed) releaseImage(own *imageTransfer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.transfer = nil
	close(own.over)
}

// chunkBytes is the part of the journal read at once. It is sent after the read, so that no
// observer blocks the journal.
const chunkBytes = 256 << 10

var errChunk = errors.New("enough for now")

// next sends the available batches, or waits for some.
func (f *feed) next() error {
	if end, _ := f.store.Known(); end <= f.at {
		leads, err := f.store.Follow(f.q.Ctx, f.at)
		if err != nil {
			return err
		}
		if leads {
			f.await()
		}
	}
	err := f.store.Read(f.q.Ctx, f.at, func(prev, next uint64, data []byte) error {
		if prev != f.at {
			return fmt.Errorf("BUG: a batch (%d, %d] follows %d", prev, next, f.at)
		}
		var err error
		if f.kept, err = event.WithholdBatch(f.kept, data); err != nil {
			return err
		}
		f.out = wire.AppendUints(append(f.out, feedBatch), prev, next, max(1, digestOf(data)),
			uint64(len(f.kept)))
		f.out, f.at = append(f.out, f.kept...), next
		if len(f.out) >= chunkBytes {
			return errChunk
		}
		return nil
	})
	if err != nil && !errors.Is(err, errChunk) {
		return err
	}
	return f.flush()
}

// leaderPoll is the interval at which a leader polls for batches: its Follow does not wait.
const leaderPoll = 3 * time.Millisecond

// await waits for a batch at the leader.
func (f *feed) await() {
	poll := time.NewTicker(leaderPoll)
	defer poll.Stop()
	for f.store.Leads() {
		if end, _ := f.store.Known(); end > f.at {
			return
		}
		select {
		case <-poll.C:
		case <-f.q.Ctx.Done():
			return
		}
	}
}
