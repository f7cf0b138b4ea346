package machine

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"exchange/persistence"
)

// A State is the result of the entries up to one index of the log. The zero State is that of an
// empty log without members. One goroutine at a time uses it.
type State struct {
	epoch      uint32
	token      persistence.Token
	owner      string
	heartbeat  persistence.Heartbeat
	beats      uint64 // confirmations of the owner
	accepted   uint64 // persistence.Beat.Accepted
	last       uint64 // end of the journal
	digest     uint64 // of its last batch; 0: it has none yet
	trimmed    uint64 // end of the trimmed part of the journal
	floor      uint64 // index up to which every node has the log, by the trims so far
	reads      map[string]uint64
	chain      uint64
	lost       bool   // the journal may have lost its end, and nothing was appended since
	market     []byte // part of the configuration, as text; nil: none was agreed on
	termMarket []byte // the part that the newest term was built with
	format     uint8  // see Format; 0: First
	lastID     uint64 // the newest ID that was assigned to a member
	members    []Member
}

// Beat returns the engine's beat.
func (s *State) Beat() persistence.Beat {
	b := persistence.Beat{Token: s.token, Owner: s.owner, Heartbeat: s.heartbeat,
		Accepted: s.accepted,
		End:      persistence.Mark{Seq: s.last, Digest: s.digest}}
	if s.beats > 0 {
		b.Count = strconv.FormatUint(s.beats, 10)
	}
	return b
}

// Epoch returns the number of the newest owner.
func (s *State) Epoch() uint32 { return s.epoch }

// Trimmed returns the sequence up to which the journal is trimmed.
func (s *State) Trimmed() uint64 { return s.trimmed }

// Floor returns an index up to which every node has the log.
func (s *State) Floor() uint64 { return s.floor }

// Lost reports whether the journal may have lost its end, and nothing was appended since.
func (s *State) Lost() bool { return s.lost }

// Market returns the market part of the configuration that the nodes have agreed on for the next
// term, and the one that the newest term was built with; nil: none. The caller does not change
// them.
func (s *State) Market() (next, term []byte) { return s.market, s.termMarket }

// Reads calls fn for each key's highest nonce of a read.
func (s *State) Reads(fn func(key string, nonce uint64)) {
	for key, nonce := range s.reads {
		fn(key, nonce)
	}
}

// Chain is a digest of all entries that were applied, and of their outcomes.
func (s *State) Chain() uint64 { return s.chain }

// Clone returns a copy that shares nothing with s.
func (s *State) Clone() *State {
	c := *s
	c.reads, c.members = maps.Clone(s.reads), slices.Clone(s.members)
	return &c
}

// Apply applies one entry. The caller applies all entries of the log, each once, in their order.
func (s *State) Apply(e *Entry) Answer {
	a := s.apply(e)
	a.owner, a.Seq = s.owner, s.last
	var h xxhash.Digest
	h.Reset()
	h.Write(append(u64(nil, s.chain), byte(a.Outcome)))
	h.Write(e.head())
	s.chain = h.Sum64()
	return a
}

func (s *State) apply(e *Entry) Answer {
	switch {
	case e.Kind == Acquire:
		return s.acquire(e)
	case e.Kind.ChangesCluster():
		before := s.members
		a := Answer{Outcome: s.change(e)}
		if a.Outcome != Done {
			s.members = before
		}
		return a
	}
	if e.Token != s.token || !s.Beat().HasOwner() {
		return Answer{Outcome: Fenced}
	}
	switch e.Kind {
	case Append:
		return s.append(e)
	case Check:
		s.beats++
	case Release:
		s.token = persistence.Released(e.Unique)
	case Begin:
		if s.digest != 0 || s.last != 0 && s.last != e.Next {
			return Answer{Outcome: notEmpty}
		}
		s.last, s.accepted = e.Next, s.nextAccepted(e)
	case Trim:
		s.trimmed = max(s.trimmed, min(e.Next, s.last))
		s.floor = max(s.floor, e.Floor)
	case Market:
		s.setMarket(e)
	case Reads:
		if s.reads == nil {
			s.reads = map[string]uint64{}
		}
		for _, n := range e.Nonces {
			s.reads[n.Key] = max(s.reads[n.Key], n.Nonce)
		}
	}
	return Answer{Outcome: Done}
}

// setMarket applies an entry of the kind Market. The newest term's part stays beside the next
// one's, which may turn out not to fit. The entry's bytes belong to its reader.
func (s *State) setMarket(e *Entry) {
	if !bytes.Equal(s.market, e.Batch) {
		s.market = bytes.Clone(e.Batch)
	}
	if e.Next == 1 {
		s.termMarket = s.market
	}
}

func (s *State) append(e *Entry) Answer {
	switch {
	case s.last == e.Next && s.digest == e.Digest:
		return Answer{Outcome: Already}
	case s.last != e.Prev:
		return Answer{Outcome: gap}
	}
	s.last, s.digest, s.lost = e.Next, e.Digest, false
	return Answer{Outcome: Done}
}

func (s *State) acquire(e *Entry) Answer {
	if now := s.Beat(); e.After != nil {
		switch {
		case e.After.Token != now.Token, !e.Insist && e.After.Count != now.Count:
			return Answer{Outcome: held}
		case !e.Insist && now.Lacks(e.After.End, e.After.Accepted):
			return Answer{Outcome: short, end: now.End}
		}
	}
	s.epoch++
	s.token = persistence.Token(fmt.Sprintf("%d:%s", s.epoch, e.Unique))
	s.owner, s.heartbeat, s.beats = e.Owner, e.Heartbeat, 0
	if e.Insist {
		s.accepted = s.nextAccepted(e)
	}
	return Answer{Outcome: Done, Token: s.token}
}

func (s *State) nextAccepted(e *Entry) uint64 {
	return persistence.NextAccepted(s.accepted, time.UnixMilli(e.NowMs))
}
