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
// does not count: the one before it does. The fold stands still.
func (n *Node) agreed() (o *Options, market []byte, err error) {
	if n.opts.Market == nil {
		o, err = n.fitting(nil)
		return o, nil, err
	}
	now, before := n.replica.Market()
	if now == nil {
		o, err = n.fitting(nil)
		return o, n.opts.Market.Own, err
	}
	if o, err = n.fitting(now); err == nil || before == nil || !errors.Is(err, ErrConfig) {
		return o, now, err
	}
	if earlier, failed := n.fitting(before); failed == nil {
		n.opts.Log.Error("the market part that was applied does not fit what the exchange holds "+
			"now: the one before it counts again", "error", err)
		return earlier, before, nil
	}
	return o, now, err
}

// fitting returns the options with a market part, nil: the node's own, if the state can be served
// with them.
func (n *Node) fitting(market []byte) (*Options, error) {
	o, err := n.with(market)
	if err == nil {
		err = fits(n.committed.State(), o, n.keys, nil)
	}
	return o, err
}

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

// decree lets the nodes agree on the market part of this node's reign, if it is another one.
func (n *Node) decree(ctx context.Context, market []byte) error {
	now, _ := n.replica.Market()
	if market == nil || bytes.Equal(now, market) {
		return nil
	}
	if err := n.replica.SetMarket(ctx, market); err != nil {
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
	return n.replica.SetMarket(ctx, market)
}
