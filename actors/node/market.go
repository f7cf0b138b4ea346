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

// The market part of a term's options is the one that the nodes have agreed on, whatever the
// leader's file contains.

// termOptions returns the options of a term, with their market part as text; nil: none. If the
// applied part does not fit the state, because a missing pair has got orders since, that of the
// newest term is used instead, and misfit is the reason. The fold must not move.
func (n *Node) termOptions() (o *actors.Options, misfit, err error) {
	next, current := n.replica.Market()
	o, err = n.optionsFor(next)
	if err != nil { // this node's program or file must be changed
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

// optionsFor returns a copy of the options with an applied market part, completed to the format
// that may be written; nil: the node's own.
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

// proposeMarket makes the market part of this node's term the agreed one, unless it is already.
func (n *Node) proposeMarket(ctx context.Context, market []byte) error {
	next, current := n.replica.Market()
	if market == nil || bytes.Equal(next, market) && bytes.Equal(current, market) {
		return nil
	}
	if err := n.replica.SetMarket(ctx, market, true); err != nil {
		return fmt.Errorf("proposing the market part to the nodes: %w", err)
	}
	return nil
}

// completeMarket runs proposeCompleted once for each format that may be written. journalFollower
// calls it repeatedly during a term.
func (n *Node) completeMarket(ctx context.Context) {
	format := n.replica.Standing().Format
	if n.engine.Load() == nil || n.completedFormat == format || !n.replica.Leads() {
		return
	}
	patience, cancel := context.WithTimeout(ctx, n.opts.Timing.OwnerStale)
	defer cancel()
	whole, err := n.proposeCompleted(patience, format)
	if err != nil {
		n.opts.Log.Warn("the market part is not completed at the nodes yet", "error", err)
	} else if whole {
		n.completedFormat = format
	}
}

// proposeCompleted completes the agreed market part with this term's additions of a format that all
// nodes read. The term has used them from its start. It returns false if another part waits for the
// next term, which completes it.
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

// ApplyMarket makes the nodes agree on another market part, in effect from the next term on. change
// derives it from the applied one, as text of the format that may be written; nil: no change. No
// other part is applied meanwhile. A *RequestError contains the error of change, or why the state
// cannot be served with the new part. After another error the outcome is unknown. Only the leader
// can do this.
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
		return actors.NewRequestError(err.Error())
	}
	return n.replica.SetMarket(ctx, market, false)
}
