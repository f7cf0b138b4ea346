package operator

import (
	"bufio"
	"context"
	"fmt"
	"time"

	"exchange/actors/audit"
	"exchange/actors/rows"
	"exchange/core/money"
	"exchange/gateway/api"
)

type actionLine struct {
	Sequence uint64 `json:"sequence"`
	Time     string `json:"time"`
	Who      string `json:"who"`
	What     string `json:"what"`
	Words    string `json:"words"` // What, said for people
}

type actionsAnswer struct {
	Actions []actionLine `json:"actions"`
}

// listActions returns the log of operators' actions, newest first.
func listActions(c *call) (any, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	var before uint64
	if text := c.query("before"); len(text) > 0 {
		var ok bool
		if before, ok = api.Integer(text); !ok || before == 0 {
			return nil, &badRequest{"before: the sequence of an action"}
		}
	}
	actions, err := c.engine.Actions(before, limit)
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
	// Dir returns the folder, for people.
	Dir() string
	// Open opens the archive for an audit. Each part must be authentic if authenticated is true. An
	// error names the key that is missing.
	Open(authenticated bool) (audit.Archive, error)
	// Failures returns how often the journal was not archived. Any goroutine may call it.
	Failures() uint64
}

type totalAnswer struct {
	Currency  string        `json:"currency"`
	Deposited money.Balance `json:"deposited"`
	Withdrawn money.Balance `json:"withdrawn"`
	Adjusted  money.Balance `json:"adjusted"`
	Balances  money.Balance `json:"balances"`
	Reserved  money.Balance `json:"reserved"`
}

type auditAnswer struct {
	Sequence    uint64        `json:"sequence"`
	From        uint64        `json:"replayed_from"`
	Records     uint64        `json:"records"`
	Accounts    int           `json:"accounts"`
	OpenOrders  int           `json:"open_orders"`
	Withdrawals int           `json:"pending_withdraws"`
	Wallets     int           `json:"projections_compared"`
	Changed     int           `json:"projections_changed_meanwhile"`
	Rows        int           `json:"rows_compared"`
	Trimmed     int           `json:"rows_trimmed"`
	PausedMs    int64         `json:"paused_ms"`
	Totals      []totalAnswer `json:"totals"`
	Differences []string      `json:"differences"`
}

type auditRequest struct {
	Archive string `json:"archive"`
	Without bool   `json:"without_authentication"`
}

// A progressLine says how far an audit is.
type progressLine struct {
	At uint64 `json:"at"`
	Of uint64 `json:"of"`
}

// auditBooks streams its progress and then its findings. A body {"archive": DIR} starts at the
// archive's beginning; the folder must be the one that the server archives to.
// {"without_authentication": true} takes the archive's parts as they are.
func auditBooks(c *call) (any, error) {
	var q auditRequest
	if err := c.parse(&q); err != nil {
		return nil, err
	}
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
				if !o.write(progressLine{at, of}) {
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

// archive opens the folder that an audit names, nil if it names none.
func (c *call) archive(dir string, authenticated bool) (audit.Archive, error) {
	if dir == "" {
		if !authenticated {
			return nil, &badRequest{"without_authentication is about an archive, and none is named"}
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

func newAuditAnswer(r *audit.Report) auditAnswer {
	a := auditAnswer{Sequence: r.Sequence, From: r.From, Records: r.Records, Accounts: r.Accounts,
		OpenOrders: r.OpenOrders, Withdrawals: r.Withdrawals,
		Wallets: r.Wallets, Changed: r.Changed, Rows: r.Rows, Trimmed: r.Trimmed,
		PausedMs: r.Paused.Milliseconds(), Totals: []totalAnswer{},
		Differences: append([]string{}, r.Differences...)}
	for _, t := range r.Totals {
		a.Totals = append(a.Totals, totalAnswer{t.Code, t.Deposited, t.Withdrawn, t.Adjusted,
			t.Balances, t.Reserved})
	}
	return a
}

// writeBackup streams a backup of everything: the state at one sequence, and the history up to it.
func writeBackup(c *call) (any, error) {
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
		// A backup that breaks off lacks its proof, and each reader notices.
		_, err := guarded(log, path, func() (any, error) {
			if err := write(patience, w); err != nil {
				return nil, err
			}
			return nil, w.Flush()
		})
		tasks.ended(&tasks.known.Backup, began, err, "all of it was sent", true)
		if err != nil {
			log.Error("a backup broke off", "error", err)
		}
	})
	return nil, errStreamed
}
