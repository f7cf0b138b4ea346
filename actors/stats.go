package actors

import (
	"context"
	"slices"
	"strings"
	"time"

	"exchange/actors/committed"
	"exchange/actors/metrics"
	"exchange/core/event"
	"exchange/persistence"
)

// Stats are an engine's numbers at one moment, for monitoring. Each is read by itself, so two of
// them may disagree slightly. Counts begin with the process. Distributions of durations are in
// nanoseconds.
type Stats struct {
	Meter *metrics.Engine // read only; its locked counts are below

	Ready       bool // see Engine.Ready
	Maintenance bool

	Records      []Count // durable ones, by kind
	Refused      []Count // durable refusals, by reason
	TurnedAway   []Count // commands and reads refused before any actor, by reason
	Trades       uint64
	Orders       uint64 // accepted ones
	OrderCancels uint64 // of orders, each order of a cancel-all counted
	// Orders triggered, expired, and removed to prevent a trade with their own account.
	Triggered uint64
	Expired   uint64
	Prevented uint64

	CommandsInFlight, ReadsInFlight int64
	Mailboxes                       []Count // waiting messages; all books together

	BatchRecords, BatchBytes, Append metrics.Distribution

	Stalled       bool          // the store does not accept writes
	AppendWaiting time.Duration // age of the append in flight; 0: none
	Confirmed     time.Duration // since the store last confirmed this process's ownership

	FoldLag        uint64 // durable records missing in the fold or the imager
	ProjectionLag  uint64 // records missing in the store's projections
	ProjectionRows int64  // rows missing there

	SnapshotLag uint64        // records after the newest snapshot
	SnapshotAge time.Duration // of the newest snapshot, or of the process if there is none
	// JournalKept counts the records since the newest trim of the journal, or since the start's
	// snapshot. A healthy journal keeps those of one or two snapshots.
	JournalKept uint64

	Rewriting bool // the store rewrites its file, when last seen
}

// A Count is a number of something.
type Count struct {
	Name string // in the form a_b
	N    uint64
}

// Stats returns the current numbers. Any goroutine may call it at any time: it uses no actor's
// turn.
func (e *Engine) Stats() Stats {
	m, now := e.meter, time.Now()
	// The lagging counter is read before the leading one, so no difference is negative.
	folded, watermark, snapshot, trimmed := e.committed.Folded(), m.Watermark.Load(),
		m.SnapshotSeq.Load(), m.Trimmed.Load()
	released := e.committed.Released()
	s := Stats{Meter: m, Ready: e.Ready() == nil, Maintenance: e.maintenance.Load() != nil,
		TurnedAway:       turnedAwayCounts(m),
		CommandsInFlight: e.commandsInFlight(), ReadsInFlight: e.ReadsInFlight(),
		Mailboxes:      e.mailboxCounts(),
		AppendWaiting:  e.journal.stalledFor(metrics.At(now)),
		Confirmed:      max(0, time.Duration(metrics.At(now)-e.own.Checked())),
		FoldLag:        lagOf(released, min(folded, e.committed.ImagerFolded())),
		ProjectionLag:  lagOf(released, watermark),
		ProjectionRows: e.committed.Unsaved(),
		SnapshotLag:    lagOf(released, snapshot),
		JournalKept:    lagOf(released, trimmed)}
	s.journal(&m.Journal)
	s.Stalled = e.journal.stalled.Load() || s.AppendWaiting > e.opts.Timing.Stall
	s.SnapshotAge = max(0, now.Sub(time.UnixMicro(m.SnapshotTimeUs.Load())))
	if snapshot == 0 {
		s.SnapshotAge = time.Duration(metrics.At(now))
	}
	if r, ok := e.opts.Store.(persistence.Rewriter); ok {
		s.Rewriting = r.Rewriting()
	}
	return s
}

// StoreSize returns the store's name and size in bytes; -1: unknown.
func (e *Engine) StoreSize(ctx context.Context) (store string, bytes int64) {
	bytes = -1
	if s, sized := e.opts.Store.(persistence.Sizer); sized {
		if n, err := s.Size(ctx); err == nil {
			bytes = n
		}
	}
	return e.opts.Store.String(), bytes
}

// A Survey holds monitoring data that takes longer than Stats.
type Survey struct {
	*committed.Totals
	// bytes used by the store's server, and its limit; 0: unknown, or no server
	Memory, MemoryMost int64
	Silent             bool // the store has not answered
}

// Survey sums up accounts and pairs, and queries the store. It delays no order or read. Errors are
// those of Totals.
func (e *Engine) Survey(ctx context.Context) (*Survey, error) {
	t, err := e.Totals(ctx)
	if err != nil {
		return nil, err
	}
	s := &Survey{Totals: t}
	if b, bounded := e.opts.Store.(persistence.Bounded); bounded {
		s.Memory, s.MemoryMost, err = b.Memory(ctx)
		s.Silent = err != nil
	}
	return s, nil
}

// journal copies the counts under the journal writer's lock, and names them afterwards.
func (s *Stats) journal(j *metrics.Journal) {
	j.Lock()
	kinds, refused := j.Records, j.Refused
	s.Expired, s.Prevented = j.Expired, j.Prevented
	s.Trades, s.BatchRecords, s.BatchBytes, s.Append = j.Trades, j.BatchRecords.Clone(),
		j.BatchBytes.Clone(), j.Append.Clone()
	j.Unlock()
	s.Orders = kinds[event.KindOrder] + kinds[event.KindInstructed] + kinds[event.KindStop]
	s.OrderCancels = kinds[event.KindCancel] + kinds[event.KindSwitchCancel]
	s.Triggered = kinds[event.KindTriggered]
	for k, n := range kinds {
		// skip a number without a kind
		if name := event.Kind(k).String(); !strings.HasPrefix(name, "kind ") {
			s.Records = append(s.Records, Count{strings.ReplaceAll(name, " ", "_"), n})
		}
	}
	other := uint64(0)
	for reason, n := range refused {
		if name := event.RefusalName(uint8(reason)); name != "" {
			s.Refused = append(s.Refused, Count{name, n})
		} else {
			other += n
		}
	}
	s.Refused = append(s.Refused, Count{"other", other})
}

// turnedAwayFor lists the errors of admission, never wrapped, each at the number that counts it.
var turnedAwayFor = [...]struct {
	err  error
	name string
}{{ErrStopping, "stopping"}, {ErrStalled, "stalled"}, {ErrBusy, "busy"},

	{ErrAccountBusy, "account_busy"}, {ErrBehind, "behind"},
	{ErrPaused, "paused"}, {ErrMaintenance, "maintenance"}, {ErrNotConfirmed, "not_confirmed"},
	{ErrNoMail, "no_mail"}}

// CountRefusal counts an error of admission, and returns it.
func (e *Engine) CountRefusal(err error) error { return CountRefusal(e.meter, err) }

// CountRefusal counts an error of admission, and returns it.
func CountRefusal(m *metrics.Engine, err error) error {
	if err == nil {
		return nil
	}
	for i := range turnedAwayFor {
		if err == turnedAwayFor[i].err {
			m.TurnedAway[i].Add(1)
			break
		}
	}
	return err
}

func turnedAwayCounts(m *metrics.Engine) (list []Count) {
	for i := range turnedAwayFor {
		list = append(list, Count{turnedAwayFor[i].name, m.TurnedAway[i].Load()})
	}
	return list
}

// mailboxCounts sums up mailboxes by name.
func (e *Engine) mailboxCounts() (list []Count) {
	for _, q := range slices.Concat(e.queues, e.work.Queues) {
		n := uint64(max(0, q.Mailbox.UserMessageCount()))
		if last := len(list) - 1; last >= 0 && list[last].Name == q.Name {
			list[last].N += n
			continue
		}
		list = append(list, Count{q.Name, n})
	}
	return list
}
