package operator

import (
	"bufio"
	"context"
	"fmt"
	"time"

	"exchange/actors/audit"
	"exchange/actors/rows"
	"exchange/core/money"
)

var reportRoutes = []route{
	{"POST audit", lines[ProgressLine, AuditAnswer](auditBooks), byEngine, "Audit the books",
		"Replays the journal and compares. Lines of progress come before the " +
			"findings. With `archive` it starts at the archive's beginning."},
	{"GET statement", lines[StatementLine, int](statement), byEngine, "An account's statement",
		"Every change of the account's balances, newest first, as far as the " +
			"history reaches."},
	{"GET trades", lines[tradeLine, int](exportTrades), byEngine, "All trades",
		"Pair by pair, oldest first. `end` is the number of rows, as in the other " +
			"exports."},
	{"GET export/orders", lines[orderLine, int](exportOrders), byEngine, "All orders",
		"Those that were accepted in a period, account by account, newest first."},
	{"GET export/deposits", lines[depositLine, int](exportDeposits), byEngine, "All deposits",
		"Account by account, newest first."},
	{"GET export/withdraws", lines[withdrawalLine, int](exportWithdrawals), byEngine,
		"All withdrawals", "Those that were asked for in a period, newest first."},
	{"GET export/balances", lines[balanceLine, BalancesEnd](exportBalances), byEngine,
		"All balances",
		"At one sequence, in order of the accounts' ids, without balances of 0."},
	{"GET backup", do(writeBackup).bytes(), byEngine, "A backup",
		"The state at one sequence, and the history up to it, as one file. A " +
			"incomplete backup lacks its proof, which `exchange restore` " +
			"notices."},
}

type actionLine struct {
	Sequence uint64 `json:"sequence" doc:"Sequence of the action's record"`
	Time     string `json:"time"`
	Who      string `json:"who" doc:"Operator"`
	What     string `json:"what" text:"-" doc:"The action, for programs"`
	Words    string `json:"words" doc:"The action, for people"`
}

type actionsAnswer struct {
	Actions []actionLine `json:"actions" doc:"The actions"`
}

// An ActionsQuery chooses actions.
type actionsQuery struct {
	page
	Before uint64 `json:"before" min:"1" is:"the sequence of an action"`
}

// listActions returns the log of operators' actions, newest first.
func listActions(c *call, q *actionsQuery) (*actionsAnswer, error) {
	actions, err := c.engine.Actions(q.Before, int(q.Limit))
	if err != nil {
		return nil, err
	}
	list := make([]actionLine, 0, len(actions.Rows))
	for _, a := range actions.Rows {
		list = append(list, actionLine{a.Seq, clock(a.TimeUs), a.Operator, a.What,
			rows.Say(a.What)})
	}
	actions.Free()
	return &actionsAnswer{list}, nil
}

// An Archive keeps trimmed parts of the journal.
type Archive interface {
	// Dir returns the folder, for display.
	Dir() string
	// Open opens the archive for an audit. With authenticated each part must be authentic. An error
	// names the missing key.
	Open(authenticated bool) (audit.Archive, error)
	// Failures returns the number of failed archivings of the journal. Any goroutine may call it.
	Failures() uint64
}

type TotalAnswer struct {
	Currency  string        `json:"currency"`
	Deposited money.Balance `json:"deposited" doc:"Sum of deposits"`
	Withdrawn money.Balance `json:"withdrawn" doc:"Sum of approved withdrawals"`
	Adjusted  money.Balance `json:"adjusted" doc:"Sum of corrections"`
	Balances  money.Balance `json:"balances"`
	Reserved  money.Balance `json:"reserved"`
}

type AuditAnswer struct {
	Sequence    uint64        `json:"sequence"`
	From        uint64        `json:"replayed_from" doc:"Sequence at which the replay began"`
	Records     uint64        `json:"records" doc:"Records that were replayed"`
	Accounts    int           `json:"accounts" doc:"Accounts that were compared"`
	OpenOrders  int           `json:"open_orders" doc:"Open orders that were compared"`
	Withdrawals int           `json:"pending_withdraws" doc:"Pending withdrawals that were compared"`
	Wallets     int           `json:"projections_compared" doc:"Projections that were compared"`
	Changed     int           `json:"projections_changed_meanwhile" doc:"Changed meanwhile"`
	Rows        int           `json:"rows_compared" doc:"Rows of the history that were compared"`
	Trimmed     int           `json:"rows_trimmed" doc:"Rows that are not kept any more"`
	PausedMs    int64         `json:"paused_ms" doc:"For how long trading paused, in milliseconds"`
	Totals      []TotalAnswer `json:"totals"`
	Differences []string      `json:"differences" doc:"Differences; empty: none"`
}

type AuditRequest struct {
	Archive string `json:"archive,omitempty" doc:"The server's folder; left out: none is read"`
	Without bool   `json:"without_authentication,omitempty"`
}

// A ProgressLine is the progress of an audit.
type ProgressLine struct {
	At uint64 `json:"at" doc:"Records that are replayed"`
	Of uint64 `json:"of" doc:"All records"`
}

// auditBooks streams its progress and then its findings. A body {"archive": DIR} starts at the
// archive's beginning; the folder must be the one that the server archives to.
// {"without_authentication": true} takes the archive's parts as they are.
func auditBooks(c *call, q *AuditRequest) (any, error) {
	from, err := c.archive(q.Archive, !q.Without)
	if err != nil {
		return nil, err
	}
	c.stream(func(ctx context.Context, o *lineWriter) (any, error) {
		patience, cancel := context.WithCancel(ctx)
		defer cancel()
		shown := time.Now()
		began := time.Now()
		report, err := c.engine.Audit(patience, from, func(at, of uint64) {
			if now := time.Now(); now.Sub(shown) > 200*time.Millisecond {
				shown = now
				if !o.write(ProgressLine{at, of}) {
					cancel()
				}
				o.flush()
			}
		})
		if err != nil {
			c.server.tasks.audited(began, nil, err)
			return nil, err
		}
		a := newAuditAnswer(report)
		c.server.tasks.audited(began, &a, nil)
		return a, nil
	})
	return nil, errStreamed
}

// archive opens an audit's folder, nil if it names none.
func (c *call) archive(dir string, authenticated bool) (audit.Archive, error) {
	if dir == "" {
		if !authenticated {
			return nil, &badRequest{"without_authentication needs archive"}
		}
		return nil, nil
	}
	a := c.server.archive
	switch {
	case a == nil:
		return nil, &badRequest{"the server runs without --archive: the first records may be gone"}
	case a.Dir() != dir:
		return nil, &badRequest{fmt.Sprintf("the server archives to %s, not to %s", a.Dir(), dir)}
	}
	from, err := a.Open(authenticated)
	if err != nil {
		return nil, &badRequest{err.Error()}
	}
	if !authenticated {
		c.engine.Log().Warn(
			"an audit takes the archive without authentication: a writer of its folder "+
				"decides what is compared", "archive", dir)
	}
	return from, nil
}

func newAuditAnswer(r *audit.Report) AuditAnswer {
	a := AuditAnswer{Sequence: r.Sequence, From: r.From, Records: r.Records, Accounts: r.Accounts,
		OpenOrders: r.OpenOrders, Withdrawals: r.Withdrawals,
		Wallets: r.Wallets, Changed: r.Changed, Rows: r.Rows, Trimmed: r.Trimmed,
		PausedMs: r.Paused.Milliseconds(), Totals: []TotalAnswer{},
		Differences: append([]string{}, r.Differences...)}
	for _, t := range r.Totals {
		a.Totals = append(a.Totals, TotalAnswer{t.Code, t.Deposited, t.Withdrawn, t.Adjusted,
			t.Balances, t.Reserved})
	}
	return a
}

// writeBackup streams a backup of everything: the state at one sequence, and the history up to it.
func writeBackup(c *call, _ *nothing) (any, error) {
	patience, cancel := context.WithTimeout(context.Background(), StreamTimeout)
	defer cancel()
	write, err := c.engine.Backup(patience)
	if err != nil {
		return nil, err
	}
	log, path, began, tasks := c.engine.Log(), string(c.ctx.Path()), time.Now(), &c.server.tasks
	c.ctx.SetContentType("application/octet-stream")
	c.ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		patience, cancel := context.WithTimeout(context.Background(), StreamTimeout)
		defer cancel()
		// An incomplete backup lacks its proof, and every reader refuses it.
		_, err := guarded(log, path, func() (any, error) {
			if err := write(patience, w); err != nil {
				return nil, err
			}
			return nil, w.Flush()
		})
		tasks.ended(&tasks.record.Backup, began, err, "all of it was sent", true)
		if err != nil {
			log.Error("a backup failed", "error", err)
		}
	})
	return nil, errStreamed
}
