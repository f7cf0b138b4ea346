package actors

import (
	"fmt"

	"exchange/actors/directory"
	"exchange/core/state"
)

// Limits and the rules of pairs change while the engine runs, as they do over a restart: they
// decide on what comes, and touch nothing that is there. Fees decide on later trades, a stop's
// collar on its trigger. Orders beyond a limit that was lowered stay. No record depends on them:
// each has what was decided, with its fees. So each actor may see the change at another time,
// between two of its commands.

// configures names the configuration in the log of actions.
const configures = "configuration"

// Reconfigure has other limits and rules of the pairs count. Pairs that are not named keep theirs.
// Of limits those of reads, of rows that wait, and of batches of the journal are as at the
// start. If the pairs have fees now, it opens the account that they go to. After an
// error nothing else has changed. One goroutine at a time calls it, and none of a cluster.
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
