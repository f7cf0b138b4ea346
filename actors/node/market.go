package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"exchange/actors"
	"exchange/persistence"
)

// The market part of a term's options: what the nodes have agreed on, whatever the file of the
// node that leads says.

// termOptions returns the options of a term, with the market part that they have as text; nil: the node
// has none. One that does not fit the state, because a pair that it lacks has got orders since,
// does not count: that of the newest term does, and misfit says why. The fold stands still.
func (n *Node) termOptions() (o *actors.Options, misfit, err error) {
	next, current := n.replica.Market()
	o, err = n.optionsFor(next)
	if err != nil { // this node's program or file is to be changed
		return nil, nil, err
	}
	misfit = n.fit(o)
	if misfit == nil || current == nil || !errors.Is(misfit, actors.ErrConfig) {
		return o, nil, misfit
	}
	earlier, err := n.optionsFor(current)
	if err != nil || n.fit(earlier) != nil {
		return nil, nil, misfit
	}
	if bytes.Equal(next, current) {
		misfit = nil
	}
	return earlier, misfit, nil
}

// optionsFor returns a copy of the options with an applied market part, and with what that lacks because
// it is older than the format that may be written; nil: the node's own.
func (n *Node) optionsFor(applied []byte) (*actors.Options, error) {
	if n.opts.Market == nil {
		return n.withMarket(nil)
	}
	text, err := n.opts.Market.Text(applied, n.replica.Standing().Format)
	if err != nil {
		return nil, err
	}
	return n.withMarket(text)
}

// fit returns why the state cannot be served with options.
func (n *Node) fit(o *actors.Options) error {
	return actors.Fits(n.committed.State(), o, n.keys,
		nil)
}

// withMarket returns a copy of the options with a market part; nil: the node's own.
func (n *Node) withMarket(market []byte) (*actors.Options, error) {
	o := n.opts
	o.Currencies, o.Pairs = slices.Clone(o.Currencies), slices.Clone(o.Pairs)
	if market != nil {
		if err := o.Market.Use(market, &o); err != nil {
			return nil, err
		}
	}
	o.Agreed = market
	return &o, nil
}

// proposeMarket tells the nodes the market part that this node's term is built with, if they do not
// know.
func (n *Node) proposeMarket(ctx context.Context, market []byte) error {
	next, current := n.replica.Market()
	if market == nil || bytes.Equal(next, market) && bytes.Equal(current, market) {
		return nil
	}
	if err := n.replica.SetMarket(ctx, market, true); err != nil {
		return fmt.Errorf("telling the nodes the market part: %w", err)
	}
	return nil
}

// completeMarket is completed once for each format that may be written. The goroutine that follows calls
// it during a term, again and again.
func (n *Node) completeMarket(ctx context.Context) {
	format := n.replica.Standing().Format
	if n.engine.Load() == nil || n.completedFormat == format || !n.replica.Leads() {
		return
	}
	patience, cancel := context.WithTimeout(ctx, n.opts.Timing.OwnerStale)
	defer cancel()
	whole, err := n.proposeCompleted(patience, format)
	if err != nil {
		n.opts.Log.Warn("the nodes do not know all of the market part yet", "error", err)
	} else if whole {
		n.completedFormat = format
	}
}

// proposeCompleted tells the nodes what the market part of this node's term has more than the one that
// they know, as far as a format has it, which all their programs read. The term has decided by it
// from its beginning. It returns false if another one waits for the next term, which tells them.
func (n *Node) proposeCompleted(ctx context.Context, format uint8) (bool, error) {
	if n.opts.Market == nil {
		return true, nil
	}
	n.marketMu.Lock()
	defer n.marketMu.Unlock()
	next, current := n.replica.Market()
	if next == nil || !bytes.Equal(next, current) {
		return false, nil
	}
	text, err := n.opts.Market.Text(next, format)
	if err != nil {
		return false, err
	}
	return true, n.proposeMarket(ctx, text)
}

// ApplyMarket lets the nodes agree on another market part, which counts from the next term on.
// change makes it of the applied one, as text of the format that may be written; nil: it stays. No
// other one is applied meanwhile. A *RequestError has the error of change, or says why the state
// cannot be served with it. Another error leaves it unknown. Only a node that leads can.
func (n *Node) ApplyMarket(ctx context.Context,
	change func(applied []byte, format uint8) ([]byte, error)) error {
	if n.opts.Market == nil {
		return fmt.Errorf("%w: this node has no market part", persistence.ErrInvalid)
	}
	n.marketMu.Lock()
	defer n.marketMu.Unlock()
	next, _ := n.replica.Market()
	market, err := change(next, n.replica.Standing().Format)
	if err == nil && market == nil {
		return nil
	}
	var o *actors.Options
	if err == nil {
		o, err = n.withMarket(market)
	}
	if err == nil {
		var misfit error
		if err := n.onSide(func() {
			_, misfit = actors.Configured(n.committed.State(),
				o)
		}); err != nil {
			return err
		}
		err = misfit
	}
	if err != nil {
		return actors.Refuse(err.Error())
	}
	return n.replica.SetMarket(ctx, market, false)
}
