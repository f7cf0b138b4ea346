package replicated

import (
	"context"
	"fmt"
	"slices"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
	"exchange/persistence/internal/machine"
)

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
	switch {
	case len(n.own) == 0:
		return 0
	case slices.Contains(n.own, n.applies):
		return n.applies
	}
	return n.own[0]
}

// Market returns the market part that is applied here for the next reign, and that of the newest.
func (s *store) Market() (next, reigning []byte) {
	v := s.seen.Load()
	return v.market, v.reigning
}

// SetMarket lets the nodes agree on a market part, under this node's newest claim. The entry is of
// the newest format that may be written, because the text may be.
func (s *store) SetMarket(ctx context.Context, text []byte, built bool) error {
	if !machine.IsMarket(text) {
		return fmt.Errorf("%w: a market part of %d bytes: it must have 1 to %d",
			persistence.ErrInvalid, len(text), machine.MaxMarket)
	}
	tok, reigns := s.reigns()
	if !reigns {
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
