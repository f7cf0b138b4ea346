package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"exchange/actors"
	"exchange/config"
	"exchange/gateway/operator"
)

// Another configuration is applied while the exchange runs, as a whole or not at all.

// A rereading reads the configuration of the command line, on each request. It holds the level of
// the log.
type rereading struct {
	load  func() (*config.Config, error)
	level *slog.LevelVar
}

type reloadOutcome struct {
	done *operator.Reloaded
	err  error
}

// A reloadRequest asks for a reload. It has room for the answer.
type reloadRequest chan reloadOutcome

// newRenewal keeps the configuration as it was read: the caller may change it later. at is the view
// of the cluster, or nil.
func newRenewal(cfg *config.Config, from rereading, at *clusterView, log *slog.Logger) *renewal {
	running := *cfg
	r := &renewal{cfg: cfg, log: log, source: from, running: &running,
		requests: make(chan reloadRequest)}
	if at != nil {
		r.agreed, r.reread = at.market.agreedText, at.market.reread
	}
	return r
}

// Reload implements operator.Reloader.
func (r *renewal) Reload(ctx context.Context) (*operator.Reloaded, error) {
	request := make(reloadRequest, 1)
	select {
	case r.requests <- request:
	case <-ctx.Done():
		return nil, errNotReloaded
	}
	select {
	case outcome := <-request:
		return outcome.done, outcome.err
	case <-ctx.Done():
		return nil, errors.New("outcome unknown: the configuration is still being taken up")
	}
}

var errNotReloaded = fmt.Errorf("%w: the exchange starts, ends, or takes up a configuration "+
	"already", operator.ErrNotNow)

// configure applies the configuration as it is now, and returns its changes. An error is the reason
// why it does not apply.
func (r *renewal) configure() (changes []config.Change, err error) {
	next, err := r.source.load()
	if err != nil {
		r.gateway.Reconfigured(false)
		r.log.Error("the configuration stays as it was: the new one cannot be used", "error", err)
		return nil, actors.NewRequestError("the configuration stays as it was: " + err.Error())
	}
	changes = r.baseline().Changes(next)
	engine := r.engine.Load()
	for i := range changes {
		if c := &changes[i]; c.Engine && engine == nil && c.Refusal == "" {
			c.Refusal = "cannot be taken up while the exchange starts: reload when it is ready"
		}
	}
	if refused := config.Refused(changes); len(refused) > 0 {
		r.gateway.Reconfigured(false)
		return nil, r.refused(refused, len(changes))
	}
	if err := reconfigure(next, changes, engine); err != nil {
		r.gateway.Reconfigured(false)
		r.log.Error("the configuration stays as it was", "error", err)
		return nil, fmt.Errorf("the configuration stays as it was: %w", err)
	}
	// at the previous level or the new one, whichever logs more
	r.source.level.Set(min(r.source.level.Level(), logLevel(next.Log.Level)))
	for _, c := range changes {
		r.log.Info("an option has changed", "key", c.Key, "from", c.Before, "to", c.After,
			"origin", c.Origin)
	}
	r.apply(next, changes)
	r.gateway.Reconfigured(true)
	r.log.Info("the configuration was reloaded", "changes", len(changes))
	if r.running = next; r.reread != nil {
		r.reread(next)
	}
	return changes, nil
}

// baseline returns the configuration in effect. In a cluster its market part is the applied one.
func (r *renewal) baseline() *config.Config {
	if r.agreed == nil {
		return r.running
	}
	if text := r.agreed(); text != nil {
		if merged, err := r.running.WithMarket(text); err == nil {
			return merged
		}
	}
	return r.running
}

// maxRefused bounds the refused options that are listed.
const maxRefused = 30

// refused logs why a configuration does not apply, and returns an error for the operator.
func (r *renewal) refused(list []config.Change, all int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "the configuration stays as it was, because %d of %d changes need more:",
		len(list), all)
	r.log.Error("the configuration stays as it was: some changes need more than a reload",
		"changes", all, "refused", len(list))
	for i, c := range list {
		if i == maxRefused {
			fmt.Fprintf(&b, "\n  - %d more", len(list)-i)
			break
		}
		r.log.Error("a change is refused", "key", c.Key, "from", c.Before, "to", c.After,
			"origin", c.Origin, "reason", c.Refusal)
		fmt.Fprintf(&b, "\n  - %s", c)
	}
	return actors.NewRequestError(b.String())
}

// reconfigure makes the engine apply its changes. After an error nothing has changed. engine is nil
// if none of them is the engine's.
func reconfigure(next *config.Config, changes []config.Change, engine *actors.Engine) error {
	if !slices.ContainsFunc(changes, func(c config.Change) bool { return c.Engine }) {
		return nil
	}
	var o actors.Options
	setMarket(next, &o)
	return engine.Reconfigure(o.Limits, o.Pairs)
}

// apply makes the other parts of the process apply their changes, and publishes all to clients.
func (r *renewal) apply(next *config.Config, changes []config.Change) {
	r.source.level.Set(logLevel(next.Log.Level))
	r.gateway.SetDepositInstructions(depositInstructions(next))
	if r.agreed == nil { // otherwise the nodes agree on them
		r.gateway.SetLimits(gatewayLimits(next))
	}
	if slices.ContainsFunc(changes, func(c config.Change) bool {
		return strings.HasPrefix(c.Key, "pairs")
	}) {
		warnOfDust(next, r.log)
	}
}

// noteSignal notes in the log of actions the changes reloaded by a signal: fees are money. The note
// of a command has its operator's name.
func (r *renewal) noteSignal(done *operator.Reloaded) {
	engine := r.engine.Load()
	if engine == nil || len(done.Applied) == 0 {
		return
	}
	if err := engine.Note("SIGHUP", done.InWords())(); err != nil {
		r.log.Warn("the log of actions may lack a reload", "error", err)
	}
}

// depositInstructions returns those of each currency.
func depositInstructions(cfg *config.Config) map[string]string {
	texts := map[string]string{}
	for _, c := range cfg.Currencies {
		texts[c.Code] = c.DepositInstructions
	}
	return texts
}
