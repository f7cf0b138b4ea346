package operator

import (
	"context"
	"errors"
	"runtime"
	"time"

	"exchange/actors/committed"
	"exchange/actors/rows"
	"exchange/gateway/api"
)

var stateRoutes = []route{
	{"GET openapi.json", do(showDocument), byReceiver, "This document",
		"Each node answers itself."},
	{"GET status", do(showStatus), byEngine, "The exchange on one page",
		"The parts of the page are each of their own moment."},
	{"GET totals", do(showTotals), byEngine, "Sums over all accounts",
		"What all accounts have, by currency, at one sequence."},
	{"GET actions", do(listActions), byEngine, "What operators did",
		"The log of operators' actions, newest first."},
	{"POST config/reload", do(reloadConfig), byReceiver, "Take up the configuration",
		"The process that is asked takes up its own configuration, with its " +
			"certificates and tokens. A configuration that is refused changes " +
			"nothing."},
}

// The state of the exchange on one page. Each part is of its own moment, so that no order waits for
// the page.

const (
	shownNames = 10 // accounts named, of those frozen or held
	// actionsSearched is the number of newest actions searched for the stop of trading.
	actionsSearched = 1000
	// sizePatience bounds the wait for the store's size.
	sizePatience = 2 * time.Second
)

type statusAnswer struct {
	Version  string        `json:"version" doc:"Version of the program"`
	Commit   string        `json:"commit" doc:"Commit of the program; \"\": not known"`
	Go       string        `json:"go" doc:"Version of Go"`
	Started  string        `json:"started" doc:"When the process started"`
	Uptime   int64         `json:"uptime_seconds" doc:"Seconds since then"`
	Ready    bool          `json:"ready" doc:"Whether the exchange serves"`
	Store    storeSize     `json:"store" doc:"The store"`
	Cluster  *seat         `json:"cluster" doc:"Place in the cluster; null: there is one machine"`
	Sequence uint64        `json:"sequence" doc:"Sequence of the newest record"`
	Time     string        `json:"time" doc:"Time of the newest record; \"\": there is none"`
	Lag      projectionLag `json:"projection_lag" doc:"What the projections lack"`
	Snapshot snapshot      `json:"snapshot" doc:"The newest snapshot"`
	Closed   closedAll     `json:"maintenance" doc:"Maintenance"`
	Halted   []halted      `json:"halted" doc:"Halted pairs"`
	Frozen   someOf        `json:"frozen" doc:"Frozen accounts"`
	Held     someOf        `json:"held" doc:"Accounts whose withdrawals are held"`
	Ended    int           `json:"closed_accounts" doc:"Number of closed accounts"`
	Pending  pending       `json:"pending_withdraws" doc:"Pending withdrawals"`
	Switches int           `json:"switches" doc:"Number of armed dead man's switches"`
	Open     int64         `json:"open_orders" doc:"Number of open orders"`
	Mails    int64         `json:"mails_waiting" doc:"Number of mails that are not sent yet"`
	Backup   *taskEnded    `json:"last_backup" doc:"The newest backup; null: none that is known"`
	Audit    *taskEnded    `json:"last_audit" doc:"The newest audit; null: none that is known"`
}

type (
	storeSize struct {
		Name  string `json:"name"`
		Bytes *int64 `json:"bytes" doc:"Its size; null: unknown"`
	}
	// A seat is the answering node's role in its cluster.
	seat struct {
		Node     string `json:"node"`
		Role     string `json:"role"`
		Leader   string `json:"leader"`
		Term     uint64 `json:"term"`
		LogBytes uint64 `json:"log_bytes"`
	}
	projectionLag struct {
		Records uint64 `json:"records" doc:"Records"`
		Rows    int64  `json:"rows" doc:"Rows"`
	}
	snapshot struct {
		Lag   uint64 `json:"lag_records" doc:"Records after it"`
		Age   int64  `json:"age_seconds" doc:"Its age in seconds"`
		Bytes int64  `json:"bytes" doc:"Its size"`
	}
	closedAll struct {
		On      bool   `json:"on" doc:"Whether there is maintenance"`
		Since   string `json:"since"`
		Message string `json:"message"`
		Cancels bool   `json:"cancels,omitempty"`
	}
	halted struct {
		Pair  string `json:"pair"`
		Since string `json:"since"`
	}
	// someOf are accounts, of which only the first are named.
	someOf struct {
		Accounts int      `json:"accounts" doc:"Their number"`
		First    []string `json:"first" doc:"Names of the first of them"`
	}
	pending struct {
		New      int    `json:"new" doc:"Number of those that wait for their code"`
		Verified int    `json:"verified" doc:"Number of those that wait for an operator"`
		Oldest   string `json:"oldest" doc:"When the oldest was asked for; \"\": there is none"`
	}
)

// showStatus returns the page.
func showStatus(c *call, _ *nothing) (*statusAnswer, error) {
	now := &committed.Overview{}
	counts := &committed.AccountCounts{Names: shownNames, NowUs: time.Now().UnixMicro()}
	if err := c.ask(now); err != nil {
		return nil, err
	}
	for more := true; more; more = counts.After != 0 {
		if err := c.ask(counts); err != nil {
			return nil, err
		}
	}
	s, stats := c.server, c.engine.Stats()
	a := &statusAnswer{Version: api.Version, Commit: s.commit, Go: runtime.Version(),
		Started: clock(s.began.UnixMicro()), Uptime: int64(time.Since(s.began).Seconds()),
		Ready: stats.Ready, Sequence: now.Seq, Cluster: s.clusterRole(),
		Lag: projectionLag{stats.ProjectionLag, stats.ProjectionRows},
		Snapshot: snapshot{stats.SnapshotLag, int64(stats.SnapshotAge.Seconds()),
			stats.Meter.SnapshotBytes.Load()},
		Frozen:   someOf{counts.FrozenAccounts, append([]string{}, counts.FrozenNames...)},
		Held:     someOf{counts.HeldAccounts, append([]string{}, counts.HeldNames...)},
		Ended:    counts.Closed,
		Pending:  pending{New: now.New.Number, Verified: now.Verified.Number},
		Switches: counts.Switches, Open: stats.Meter.Open.Load(),
		Mails: stats.Meter.Outbox.Load()}
	if now.TimeUs != 0 {
		a.Time = clock(now.TimeUs)
	}
	for _, w := range []committed.Awaiting{now.New, now.Verified} {
		if at := clock(w.OldestUs); w.Number > 0 && (a.Pending.Oldest == "" ||
			at < a.Pending.Oldest) {
			a.Pending.Oldest = at
		}
	}
	patience, cancel := within(sizePatience)
	defer cancel()
	var bytes int64
	if a.Store.Name, bytes = c.engine.StoreSize(patience); bytes >= 0 {
		a.Store.Bytes = &bytes
	}
	a.Closed, a.Halted = c.closed(&now.Status)
	a.Backup, a.Audit = s.tasks.newest()
	return a, nil
}

// clusterRole returns the role of this node in its cluster; nil: the exchange runs on one machine.
func (s *Server) clusterRole() *seat {
	if s.cluster == nil {
		return nil
	}
	at := s.cluster.Standing()
	return &seat{at.Node, at.role(), at.Leader, at.Term, at.LogBytes}
}

// showMaintenance returns the state of maintenance, and its begin.
func showMaintenance(c *call, _ *nothing) (closedAll, error) {
	now := new(committed.StatusNow)
	if err := c.ask(now); err != nil {
		return closedAll{}, err
	}
	on, _ := c.closed(now.Status)
	return on, nil
}

// closed describes the halts and maintenance.
func (c *call) closed(now *committed.Status) (closedAll, []halted) {
	all, list := closedAll{On: now.Maintenance.On, Message: now.Maintenance.Message,
		Cancels: now.Maintenance.Cancels}, []halted{}
	if !all.On && len(now.Halted) == 0 {
		return all, list
	}
	since := c.haltTimes()
	if all.On {
		all.Since = since[""]
	}
	for _, number := range now.Halted {
		name := c.engine.Market(number).Name
		list = append(list, halted{name, since[name]})
	}
	return all, list
}

// haltTimes returns the time of each pair's halt, and, for "", the begin of maintenance, as far as
// the newest actions reach. If the history is unreadable, the caller answers without them:
// operators use this page when something is broken.
func (c *call) haltTimes() map[string]string {
	since, open := map[string]string{}, map[string]bool{}
	actions, err := c.engine.Actions(0, actionsSearched)
	if err != nil {
		return since
	}
	defer actions.Free()
	for i := range actions.Rows {
		pair, on, ok := rows.Closes(actions.Rows[i].What)
		switch {
		case !ok || open[pair]:
		case on:
			since[pair] = clock(actions.Rows[i].TimeUs)
		default:
			open[pair] = true
		}
	}
	return since
}

// TotalsAnswer holds the sums over all accounts at one sequence.
type TotalsAnswer struct {
	Sequence uint64        `json:"sequence"`
	Totals   []TotalAnswer `json:"totals"`
}

// totalsPatience bounds the wait for the sums, after a snapshot in progress.
const totalsPatience = 20 * time.Second

// showTotals adds up all accounts' holdings.
func showTotals(c *call, _ *nothing) (*TotalsAnswer, error) {
	patience, cancel := within(totalsPatience)
	defer cancel()
	t, err := c.engine.Totals(patience)
	if errors.Is(err, context.DeadlineExceeded) {
		err = committed.ErrTimeout
	}
	if err != nil {
		return nil, err
	}
	a := &TotalsAnswer{Sequence: t.Seq, Totals: []TotalAnswer{}}
	for i, x := range t.Currencies {
		a.Totals = append(a.Totals, TotalAnswer{c.engine.CurrencyCode(uint16(i + 1)), x.Deposited,
			x.Withdrawn, x.Adjusted, x.Balance, x.Reserve})
	}
	return a, nil
}
