package observing

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"exchange/actors/duplex"
)

// A status is what a member tells of the cluster, and of itself.
type status struct {
	Watermark uint64 // of its rows
	Leader    string // "": none is known
	Term      uint64
	Format    uint8
	Peers     []peer
}

type peer struct{ Name, Address, Role string }

// A market has the market parts of Replica.Market; nil: there is none.
type market struct{ next, reigning []byte }

// Kinds of messages on talk.
const (
	talkStatus = iota + 1 // from a member
	talkMarket            // from a member
	talkReach             // a question, and its answer
)

// Outcomes of questions.
const (
	answerGood    = iota
	answerUnknown // there is no such key, or row
	answerFailed  // a text says why
	answerGap
	answerCorrupt
	answerInvalid
)

// A link is all connections to the member that is followed. All end with one of them.
type link struct {
	s          *Store
	node       string
	feed       net.Conn
	talk, rows *duplex.Line

	// guarded by s.mu
	told      bool // a status and the market have come
	status    bool
	watermark uint64
	number    uint64            // of the newest query
	queries   map[uint64]*query // by number
	served    time.Time         // when the member could answer last, or was asked first
	over      bool
}

// errLeads: the member leads, and another one may be followed instead.
var errLeads = errors.New("it leads, and the others are asked first")

// retry is the pause between two rounds of tries.
const retry = 200 * time.Millisecond

// run follows one member after the other, until ctx ends or no member can be followed any more.
func (s *Store) run(ctx context.Context) {
	defer close(s.ended)
	said, tries, gone := map[string]string{}, 0, false
	for turn := 0; ctx.Err() == nil; turn++ {
		for i, node := range s.candidates(turn) {
			followed, err := s.follow(ctx, node, i < len(s.o.Nodes)-1)
			if ctx.Err() != nil {
				return
			}
			if text := err.Error(); text != said[node] {
				said[node] = text
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

// candidates returns the members in the order in which they are tried: the one that leads is last.
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

// follow follows a member until something of it ends, and returns why. picky: not if it leads.
func (s *Store) follow(ctx context.Context, node string, picky bool) (followed bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &link{s: s, node: node, queries: map[uint64]*query{}}
	conns, err := l.dial(ctx)
	if err != nil {
		return false, err
	}
	talk := lineOptions(longestTalk, s.o.Silence)
	rows := lineOptions(longestRows, s.o.Silence)
	l.feed = conns[0]
	l.talk, l.rows = duplex.New(conns[1], talk), duplex.New(conns[2], rows)
	defer context.AfterFunc(ctx, func() {
		l.feed.Close()
		l.talk.Close()
		l.rows.Close()
	})()
	ends := make(chan error, 3)
	go func() {
		ends <- fmt.Errorf("talk: %w", l.talk.Run(func(m []byte) error {
			return l.receive(m, picky)
		}))
	}()
	go func() { ends <- fmt.Errorf("rows: %w", l.rows.Run(l.receiveRows)) }()
	go func() { ends <- l.follow(ctx) }()
	for range cap(ends) {
		if why := <-ends; err == nil {
			err = why
		}
		cancel()
		l.feed.Close() // the others end by themselves
		l.talk.Close()
		l.rows.Close()
		s.change(func() { followed = followed || s.link == l; l.end() })
	}
	return followed, err
}

// dial opens the three lanes.
func (l *link) dial(ctx context.Context) (conns []net.Conn, err error) {
	s := l.s
	ctx, cancel := context.WithTimeout(ctx, s.o.Silence)
	defer cancel()
	s.mu.Lock()
	resume := binary.BigEndian.AppendUint64(nil, s.end)
	resume = binary.BigEndian.AppendUint64(resume, s.digest)
	if s.began {
		resume = append(resume, 1)
	} else {
		resume = append(resume, 0)
	}
	s.mu.Unlock()
	for _, lane := range []byte{laneFeed, laneTalk, laneRows} {
		conn, err := s.o.Dial(ctx, l.node)
		if err == nil {
			conns = append(conns, conn)
			more := []byte(nil)
			if lane == laneFeed {
				more = resume
			}
			err = hello(patient{conn, s.o.Silence}, lane, s.process, more...)
		}
		if err != nil {
			for _, c := range conns {
				c.Close()
			}
			return nil, err
		}
	}
	return conns, nil
}

// end ends what waits for the member. The caller holds mu.
func (l *link) end() {
	if l.over {
		return
	}
	l.over = true
	if l.s.link == l {
		l.s.link = nil
	}
	for _, q := range l.queries {
		q.lose()
	}
	l.queries = nil
	if r := l.s.reaching; r != nil && l.s.link == nil { // the next member is asked
		if l.s.next != nil {
			next := l.s.next
			go func() { // its questions are answered with this one, which begins anew
				select {
				case <-r.done:
					next.seq, next.err = r.seq, r.err
					close(next.done)
				case <-l.s.ended:
				}
			}()
		}
		l.s.next, l.s.reaching = r, nil
	}
}

// errLost: the connection to the member is over.
var errLost = errors.New("the connection to the member that is followed is over")

// follow takes the member's feed.
func (l *link) follow(ctx context.Context) error {
	s := l.s
	r := bufio.NewReaderSize(patient{l.feed, s.o.Silence}, 64<<10)
	var into []byte
	image, begun := []byte(nil), false
	var began, digest uint64
	for {
		kind, payload, err := readFrame(r, into)
		if err != nil {
			return fmt.Errorf("feed: %w", err)
		}
		into = payload[:0]
		if kind != feedBeat {
			s.fed.Add(frameHead + uint64(len(payload)))
		}
		p := fixed{b: payload}
		switch {
		case kind == feedBeat && len(payload) == 0:
		case kind == feedRefused:
			return refusal(payload)
		case kind == feedBegin && !begun && image == nil:
			resumed := p.byte() == 1
			began, digest = p.uint(), p.uint()
			if !p.whole() || !s.mayBegin(resumed, began) {
				return errSense
			}
			if begun = resumed; !resumed {
				image = []byte{}
			}
			if begun {
				s.change(l.follows)
			}
		case kind == feedPiece && !begun && image != nil:
			image = append(image, payload...)
		case kind == feedImage && !begun && image != nil && len(payload) == 0:
			begun = true
			s.change(func() { s.begin(image, began, digest); l.follows() })
		case kind == feedBatch && begun:
			prev, next, digest := p.uint(), p.uint(), p.uint()
			if p.bad {
				return errSense
			}
			s.batches.Add(1)
			if err := s.take(ctx, batch{prev, next, slices.Clone(p.b)}, digest); err != nil {
				return err
			}
		default:
			return fmt.Errorf("feed: %w: a frame of kind %d and %d bytes", errSense, kind,
				len(payload))
		}
	}
}

// refusal returns why a feed is refused.
func refusal(payload []byte) error {
	if len(payload) == 0 {
		return errSense
	}
	why := fmt.Errorf("the member refuses: %.200s", payload[1:])
	if payload[0] == refusedGone {
		return fmt.Errorf("%w: %w", errStartOver, why)
	}
	return why
}

// fixed reads numbers of eight bytes.
type fixed struct {
	b   []byte
	bad bool
}

func (f *fixed) byte() (c byte) {
	if len(f.b) == 0 {
		f.bad = true
		return 0
	}
	c, f.b = f.b[0], f.b[1:]
	return c
}

func (f *fixed) uint() (n uint64) {
	if len(f.b) < 8 {
		f.bad = true
		return 0
	}
	n, f.b = binary.BigEndian.Uint64(f.b), f.b[8:]
	return n
}

func (f *fixed) whole() bool { return !f.bad && len(f.b) == 0 }

// mayBegin reports whether a feed may begin so: with an image, or behind what is here.
func (s *Store) mayBegin(resumed bool, seq uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return resumed == s.began && (!resumed || s.end == seq)
}

// begin takes the first image. The caller holds mu.
func (s *Store) begin(image []byte, seq, digest uint64) {
	if seq > 0 {
		s.image = image
	}
	s.began, s.began0, s.end, s.digest = true, seq, seq, digest
}

// follows says that the member is followed. The caller holds mu.
func (l *link) follows() {
	if !l.over {
		l.s.link = l
		l.s.links++
		l.s.beginRound()
		l.s.o.Log.Info("this observer follows a member", "member", l.node, "seq", l.s.end)
	}
}

// take takes a batch, and waits while too many wait for the fold.
func (s *Store) take(ctx context.Context, b batch, digest uint64) error {
	s.mu.Lock()
	fits := b.prev == s.end && b.next > b.prev
	s.mu.Unlock()
	if !fits {
		return fmt.Errorf("feed: %w: a batch (%d, %d]", errSense, b.prev, b.next)
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

// receive takes what the member says on talk.
func (l *link) receive(message []byte, picky bool) error {
	p := parse(message)
	switch kind := p.Byte(); kind {
	case talkStatus:
		var t status
		p.value(&t)
		if err := p.done(); err != nil {
			return err
		}
		if picky && !l.status && t.Leader == l.node {
			l.s.change(func() { l.s.standing = t })
			return errLeads
		}
		l.s.change(func() { l.takeStatus(t) })
		return nil
	case talkMarket:
		m := market{p.optional(), p.optional()}
		if err := p.done(); err != nil {
			return err
		}
		if l.s.o.Agreed != nil && m.next != nil {
			l.s.o.Agreed(m.next)
		}
		l.s.change(func() { l.s.market, l.told = m, l.status })
		return nil
	case talkReach:
		return l.reached(p)
	}
	return errSense
}

// takeStatus takes what the member tells of itself. The caller holds mu.
func (l *link) takeStatus(t status) {
	l.s.standing, l.status = t, true
	l.watermark = max(l.watermark, t.Watermark)
}

// optional reads bytes that may be missing.
func (p *parser) optional() []byte {
	if p.Byte() == 0 {
		return nil
	}
	return append([]byte{}, p.Bytes(maxMarket)...)
}

func appendOptional(dst, b []byte) []byte {
	if b == nil {
		return append(dst, 0)
	}
	return append(binary.AppendUvarint(append(dst, 1), uint64(len(b))), b...)
}

// reach asks for the sequence that is reached. The caller holds mu.
func (l *link) reach() error {
	return l.talk.Send(func(b []byte) []byte { return append(b, talkReach) })
}

// reached takes the answer.
func (l *link) reached(p *parser) error {
	outcome, seq, why := p.Byte(), p.Uint(), p.text()
	if err := p.done(); err != nil {
		return err
	}
	var err error
	if outcome != answerGood {
		err = fmt.Errorf("member %s: %s", l.node, why)
	}
	bad, useless := false, false
	l.s.change(func() {
		if bad = l.over || l.s.reaching == nil; !bad {
			l.s.reached(seq, err)
			useless = l.isUseless(err == nil && l.watermark >= l.s.dropped.Load())
		}
	})
	switch {
	case bad:
		return errSense
	case useless:
		return errUseless
	}
	return nil
}

// errUseless: the member lives, and is of no use: it hears of no node that leads, or its rows are
// behind those of the member before.
var errUseless = errors.New("it has answered no question for long, and another one is tried")

// isUseless notes whether the member could answer, and reports whether it could not for too long.
// The caller holds mu.
func (l *link) isUseless(answers bool) bool {
	now := time.Now()
	if answers || l.served.IsZero() {
		l.served = now
	}
	return now.Sub(l.served) > 2*l.s.o.Silence
}
