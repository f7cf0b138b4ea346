package actors

import (
	"fmt"

	"exchange/actors/directory"
	"exchange/core/state"
)

// Limits and the rules of pairs change at run time as over a restart: they apply to later commands
// only. Fees apply to later trades, a stop's collar to its trigger. Orders beyond a lowered limit
// stay. Records contain the decisions, with fees, and depend on no limit or rule. So each actor may
// see the change at its own time, between two commands.

// configures is the configuration's name in the log of actions.
const configures = "configuration"

// Reconfigure applies new limits and rules of the pairs. Pairs that are not named keep theirs.
// Limits of reads, of waiting rows, and of journal batches stay as at the start. It opens the fee
// account if the pairs now have fees. After an error nothing else has changed. One goroutine at a
// time calls it, and never in a cluster.
func (e *Engine) Reconfigure(limits Limits, pairs []directory.PairRules) error {
	if e.cluster != nil {
		panic("BUG: the nodes of a cluster agree on limits and rules")
	}
	for i := range pairs {
		if pairs[i].Fees == (state.FeeRates{}) {
			continue
		}
		if err := e.openFeeAccount(configures); err != nil {
			return fmt.Errorf("the account %s, which fees go to, cannot be opened: %w",
				directory.FeeAccount, err)
		}
	}
	for i := range pairs {
		if p := e.PairNamed(pairs[i].Name); p != nil {
			p.SetRules(pairs[i])
		}
	}
	was := e.limits()
	limits.Reads, limits.ReadsPerAccount = was.Reads, was.ReadsPerAccount
	limits.ProjectionLag, limits.BatchBytes = was.ProjectionLag, was.BatchBytes
	limits.OwnBytes = was.OwnBytes
	e.live.Store(&limits)
	return nil
}
