package actors

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"exchange/persistence"
)

// The market part of a reign's options: what the nodes have agreed on, whatever the file of the
// node that leads says.

// agreed returns the options of a reign, and the market part that they have as text; nil: the node
// has none. One that does not fit the state, because a pair that it lacks has got orders since,
// does not count: that of the newest reign does. The fold stands still.
func (n *Node) agreed() (o *Options, market []byte, err error) {
	if n.opts.Market == nil {
		if o, err = n.with(nil); err == nil {
			err = n.fit(o)
		}
		return o, nil, err
	}
	next, reigning := n.replica.Market()
	if next == nil {
		next = n.opts.Market.Own
	}
	if o, err = n.with(next); err != nil { // this node's program or file is to be changed
		return nil, nil, err
	}
	misfit := n.fit(o)
	if misfit == nil || reigning == nil || !errors.Is(misfit, ErrConfig) {
		return o, next, misfit
	}
	earlier, err := n.with(reigning)
	if err != nil || n.fit(earlier) != nil {
		return nil, nil, misfit
	}
	if !bytes.Equal(next, reigning) {
		n.opts.Log.Error("the market part that was applied does not fit what the exchange holds "+
			"now: that of the reign before counts again", "error", misfit)
	}
	return earlier, reigning, nil
}

// fit returns why the state cannot be served with options.
func (n *Node) fit(o *Options) error { return fits(n.committed.State(), o, n.keys, nil) }

// with returns a copy of the options with a market part; nil: the node's own.
func (n *Node) with(market []byte) (*Options, error) {
	o := n.opts
	o.Currencies, o.Pairs = slices.Clone(o.Currencies), slices.Clone(o.Pairs)
	if market != nil {
		if err := o.Market.Use(market, &o); err != nil {
			return nil, err
		}
	}
	return &o, nil
}

// decree tells the nodes the market part that this node's reign is built with, if they do not know.
func (n *Node) decree(ctx context.Context, market []byte) error {
	next, reigning := n.replica.Market()
	if market == nil || bytes.Equal(next, market) && bytes.Equal(reigning, market) {
		return nil
	}
	if err := n.replica.SetMarket(ctx, market, true); err != nil {
		return fmt.Errorf("telling the nodes the market part: %w", err)
	}
	return nil
}

// ApplyMarket lets the nodes agree on another market part, which counts from the next reign on. A
// *RequestError says why the state cannot be served with it. Another error leaves it unknown. Only
// a node that reigns can.
func (n *Node) ApplyMarket(ctx context.Context, market []byte) error {
	if n.opts.Market == nil {
		return fmt.Errorf("%w: this node has no market part", persistence.ErrInvalid)
	}
	o, err := n.with(market)
	if err == nil {
		var misfit error
		if err := n.onSide(func() { _, misfit = configured(n.committed.State(), o) }); err != nil {
			return err
		}
		err = misfit
	}
	if err != nil {
		return Refuse(err.Error())
	}
	return n.replica.SetMarket(ctx, market, false)
}
