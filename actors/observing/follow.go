package observing

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"exchange/core/wire"
	"exchange/persistence/line"
)

// A link is the connection to the followed member.
type link struct {
	s       *Store
	node    string
	session *line.Session

	// guarded by s.mu
	hasMarket  bool // a status and the market part have arrived
	hasStatus  bool
	watermark  uint64
	lastAnswer time.Time // time of the member's last answer, or of the first request
	over       bool
}

// errLeads: the member is the leader, and others are preferred.
var errLeads = errors.New("it leads, and the others are tried first")

// retry is the pause after a round of attempts.
const retry = 200 * time.Millisecond

// run follows one member after another, until ctx ends or no member can be followed any more.
func (s *Store) run(ctx context.Context) {
	defer close(s.done)
	logged, tries, gone := map[string]string{}, 0, false
	for turn := 0; ctx.Err() == nil; turn++ {
		for i, node := range s.candidates(turn) {
			followed, err := s.follow(ctx, node, i < len(s.o.Nodes)-1)
			if ctx.Err() != nil {
				return
			}
			if text := err.Error(); text != logged[node] {
				logged[node] = text
				s.o.Log.Info("this observer does not follow a member", "member", node, "error", err)
			}
			if tries++; followed {
				tries, gone = 0, false
			}
			gone = gone || errors.Is(err, errStartOver)
		}
		if gone && tries >= len(s.o.Nodes) {
			s.fail(errStartOver)
			return
		}
		select {
		case <-time.After(retry):
		case <-ctx.Done():
		}
	}
}

// candidates returns the members in the order of attempts: the leader is last.
func (s *Store) candidates(turn int) []string {
	turn %= len(s.o.Nodes)
	list := append(slices.Clone(s.o.Nodes[turn:]), s.o.Nodes[:turn]...)
	s.mu.Lock()
	leader := s.standing.Leader
	s.mu.Unlock()
	if i := slices.Index(list, leader); i >= 0 {
		list = append(slices.Delete(list, i, i+1), leader)
	}
	return list
}

// follow follows a member until the connection ends, and returns why. picky: not if it leads.
func (s *Store) follow(ctx context.Context, node string, picky bool) (followed bool, err error) {
	session, err := s.dial(ctx, node)
	if err != nil {
		return false, err
	}
	l := &link{s: s, node: node, session: session}
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(ctx, func() { session.Close(ctx.Err()) })()
	var parts sync.WaitGroup
	parts.Go(func() { session.Close(l.feed(ctx)) })
	parts.Go(func() { session.Close(l.control(ctx, picky)) })
	err = session.Run()
	cancel()
	parts.Wait()
	s.change(func() { followed = l.detach() })
	return followed, err
}

// dial opens a connection to a member.
func (s *Store) dial(ctx context.Context, node string) (*line.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Silence)
	defer cancel()
	conn, err := s.o.Dial(ctx, node)
	if err != nil {
		return nil, err
	}
	if _, err := line.Greet(ctx, conn, Call, Version,
		binary.BigEndian.AppendUint64(nil, s.process)); err != nil {
		conn.Close()
		return nil, err
	}
	return newSession(conn, s.o.Silence, nil), nil
}

// detach marks the member as no longer followed, and reports whether it was. The caller holds mu.
func (l *link) detach() (followed bool) {
	l.over = true
	if followed = l.s.link == l; followed {
		l.s.link = nil
	}
	return followed
}

// feed reads the member's feed.
func (l *link) feed(ctx context.Context) error {
	s := l.s
	s.mu.Lock()
	body := wire.AppendFlag(wire.AppendUints(nil, s.end, s.digest), s.hasImage)
	s.mu.Unlock()
	answer, err := l.session.Ask(askFeed, feedWindow, body)
	f := feeding{link: l}
	for err == nil {
		var page []byte
		if page, err = answer.Next(ctx); err == nil {
			s.fed.Add(uint64(len(page)))
			err = f.take(ctx, page)
		}
	}
	return fmt.Errorf("feed: %w", err)
}

// feeding is the state of reading a feed.
type feeding struct {
	*link
	image            []byte // nil: no image is being received
	started          bool   // batches follow
	imageSeq, digest uint64 // of the image
}

// take handles a page.
func (f *feeding) take(ctx context.Context, page []byte) error {
	s := f.s
	p := wire.Read(page)
	for p.Len() > 0 {
		switch kind := p.Byte(); {
		case kind == feedBegin && !f.started && f.image == nil:
			resumed := p.Flag()
			f.imageSeq, f.digest = p.Uint(), p.Uint()
			if p.Check(s.mayBegin(resumed, f.imageSeq)); p.Bad() {
				break
			}
			if f.started = resumed; resumed {
				s.change(f.setFollowed)
			} else {
				f.image = []byte{}
			}
		case kind == feedPiece && !f.started && f.image != nil:
			f.image = append(f.image, p.Bytes(longest)...)
		case kind == feedImage && !f.started && f.image != nil:
			f.started = true
			s.change(func() { s.setImage(f.image, f.imageSeq, f.digest); f.setFollowed() })
			f.image = nil
		case kind == feedBatch && f.started:
			b, digest := batch{prev: p.Uint(), next: p.Uint()}, p.Uint()
			if b.data = slices.Clone(p.Bytes(longest)); p.Bad() {
				break
			}
			s.batches.Add(1)
			if err := s.take(ctx, b, digest); err != nil {
				return err
			}
		default:
			p.Check(false)
		}
	}
	if p.Bad() {
		return line.ErrMalformed
	}
	return nil
}

// mayBegin reports whether a feed may start with an image, or resume at seq.
func (s *Store) mayBegin(resumed bool, seq uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return resumed == s.hasImage && (!resumed || s.end == seq)
}

// setImage stores the first image. The caller holds mu.
func (s *Store) setImage(image []byte, seq, digest uint64) {
	if seq > 0 {
		s.image = image
	}
	s.hasImage, s.imageSeq, s.end, s.digest = true, seq, seq, digest
}

// setFollowed marks the member as followed. The caller holds mu.
func (l *link) setFollowed() {
	if !l.over {
		l.s.link = l
		l.s.links++
		l.s.o.Log.Info("this observer follows a member", "member", l.node, "seq", l.s.end)
	}
}

// take queues a batch, and waits while too many wait for the fold.
func (s *Store) take(ctx context.Context, b batch, digest uint64) error {
	s.mu.Lock()
	fits := b.prev == s.end && b.next > b.prev
	s.mu.Unlock()
	if !fits {
		return fmt.Errorf("%w: a batch (%d, %d]", line.ErrMalformed, b.prev, b.next)
	}
	err := s.until(ctx, func() (bool, error) {
		return s.bytes == 0 || s.bytes+len(b.data) <= s.o.buffer, nil
	})
	if err == nil {
		s.change(func() {
			s.waiting = append(s.waiting, b)
			s.bytes += len(b.data)
			s.end, s.digest = b.next, digest
		})
	}
	return err
}

// control reads the member's statuses. picky: not if it leads.
func (l *link) control(ctx context.Context, picky bool) error {
	answer, err := l.session.Ask(askControl, 1, nil)
	for err == nil {
		var page []byte
		if page, err = answer.Next(ctx); err == nil {
			err = l.applyStatus(page, picky)
		}
	}
	return fmt.Errorf("control: %w", err)
}

// applyStatus handles a status, and optionally the market.
func (l *link) applyStatus(page []byte, picky bool) error {
	s := l.s
	var now status
	var m *market
	p := wire.Read(page)
	if p.Value(&now); p.Len() > 0 {
		m = new(market)
		p.Value(m)
	}
	switch {
	case !p.End():
		return line.ErrMalformed
	case picky && !l.hasStatus && now.Leader == l.node:
		s.change(func() { s.standing = now })
		return errLeads
	case m != nil && s.o.Agreed != nil && m.Next != nil:
		s.o.Agreed(m.Next)
	}
	s.change(func() {
		s.standing, l.hasStatus = now, true
		l.watermark = max(l.watermark, now.Watermark)
		if m != nil {
			s.market, l.hasMarket = *m, true
		}
	})
	return nil
}

// reach asks for the reached sequence.
func (l *link) reach() (seq uint64, err error) {
	page, err := l.session.Call(context.Background(), askReach, nil) // until the session ends
	if err != nil {
		err = fmt.Errorf("member %s: %w", l.node, err)
	} else {
		p := wire.Read(page)
		seq = p.Uint()
	}
	unresponsive := false
	l.s.change(func() {
		unresponsive = l.isUnresponsive(err == nil && l.watermark >= l.s.dropped.Load())
	})
	if unresponsive {
		l.session.Close(errUnresponsive)
	}
	return seq, err
}

// errUnresponsive: the member is connected, but has seen no leader, or lags behind the previous
// member's rows.
var errUnresponsive = errors.New("member unresponsive; switching to another")

// isUnresponsive records whether the member could answer, and reports whether it could not for too
// long. The caller holds mu.
func (l *link) isUnresponsive(answers bool) bool {
	now := time.Now()
	if answers || l.lastAnswer.IsZero() {
		l.lastAnswer = now
	}
	return now.Sub(l.lastAnswer) > 2*l.s.o.Silence
}
