package replicated

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
	"exchange/persistence/internal/machine"
)

// An OwnMarket is the market part of the configuration that a node's file has. It counts for
// nothing by itself: see SetMarket. Its methods may be called from any goroutine.
type OwnMarket struct{ digests atomic.Pointer[[]uint64] }

// Set changes it: to the text of each format of entries, the newest first.
func (o *OwnMarket) Set(texts [][]byte) {
	var list []uint64
	for _, text := range texts {
		list = append(list, codec.Digest(text))
	}
	o.digests.Store(&list)
}

// get returns the digests; nil: there is none.
func (o *OwnMarket) get() []uint64 {
	if o == nil {
		return nil
	}
	if list := o.digests.Load(); list != nil {
		return *list
	}
	return nil
}

// tellAgreed tells of the market part that is applied.
func (n *node) tellAgreed() {
	if market, _ := n.machine.Market(); market != nil {
		n.applies = codec.Digest(market)
		n.agreed(market)
	}
}

// ownMarket returns the digest of the market part of this node's file, in the format of the applied
// one if they are equal; 0: it has none.
func (n *node) ownMarket() uint64 {
	own := n.own.get()
	switch {
	case len(own) == 0:
		return 0
	case slices.Contains(own, n.applies):
		return n.applies
	}
	return own[0]
}

// Market returns the market part that is applied here for the next term, and that of the newest.
func (s *store) Market() (next, current []byte) {
	v := s.seen.Load()
	return v.market, v.current
}

// SetMarket lets the nodes agree on a market part, under this node's newest claim. The entry is of
// the newest format that may be written, because the text may be.
func (s *store) SetMarket(ctx context.Context, text []byte, built bool) error {
	if !machine.IsMarket(text) {
		return fmt.Errorf("%w: a market part of %d bytes: it must have 1 to %d",
			persistence.ErrInvalid, len(text), machine.MaxMarket)
	}
	tok, owns := s.owns()
	if !owns {
		return errNotLeading
	}
	e := &machine.Entry{Kind: machine.Market, Format: s.seen.Load().format, Token: tok,
		Batch: text, Digest: codec.Digest(text)}
	if built {
		e.Next = 1
	}
	_, err := s.propose(ctx, e)
	return err
}
