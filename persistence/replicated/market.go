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

// An OwnMarket is the market part of a node's configuration file. It takes effect only through
// SetMarket. Its methods may be called from any goroutine.
type OwnMarket struct{ digests atomic.Pointer[[]uint64] }

// Set replaces the part by its text in each format of entries, newest first.
func (o *OwnMarket) Set(texts [][]byte) {
	var list []uint64
	for _, text := range texts {
		list = append(list, codec.Digest(text))
	}
	o.digests.Store(&list)
}

// get returns the digests; nil: none is set.
func (o *OwnMarket) get() []uint64 {
	if o == nil {
		return nil
	}
	if list := o.digests.Load(); list != nil {
		return *list
	}
	return nil
}

// reportMarket passes the applied market part to onMarket.
func (n *node) reportMarket() {
	if market, _ := n.machine.Market(); market != nil {
		n.marketDigest = codec.Digest(market)
		n.onMarket(market)
	}
}

// ownMarket returns the digest of the market part of this node's file; 0: none. If the part equals
// the applied one, the digest is in that one's format.
func (n *node) ownMarket() uint64 {
	own := n.fileMarket.get()
	switch {
	case len(own) == 0:
		return 0
	case slices.Contains(own, n.marketDigest):
		return n.marketDigest
	}
	return own[0]
}

// Market returns the market part applied here for the next term, and that of the newest term.
func (s *store) Market() (next, current []byte) {
	v := s.view.Load()
	return v.market, v.termMarket
}

// SetMarket proposes a market part to all nodes, under this node's newest claim. The entry uses the
// newest format that may be written, because the text may use it.
func (s *store) SetMarket(ctx context.Context, text []byte, built bool) error {
	if !machine.IsMarket(text) {
		return fmt.Errorf("%w: a market part of %d bytes: it must have 1 to %d",
			persistence.ErrInvalid, len(text), machine.MaxMarket)
	}
	tok, owns := s.ownerToken()
	if !owns {
		return errNotLeading
	}
	e := &machine.Entry{Kind: machine.Market, Format: s.view.Load().format, Token: tok,
		Batch: text, Digest: codec.Digest(text)}
	if built {
		e.Next = 1
	}
	_, err := s.propose(ctx, e)
	return err
}
