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
// them need not fit together exactly. Counts begin with the process. Distributions of durations are
// in nanoseconds.
type Stats struct {
	Meter *metrics.Engine // read only; what it counts under its lock is below

	Ready       bool // see Engine.Ready
	Maintenance bool

	Records    []Count // durable ones, by kind
	Refused    []Count // durable refusals, by reason
	TurnedAway []Count // commands and reads that no actor has seen, by reason
	Trades     uint64
	Orders     uint64 // accepted ones
	Cancels    uint64 // of orders, each order of a cancel-all counted
	// Orders that were triggered, that expired, and that were taken out before they traded with
	// their own account.
	Triggered uint64
	Expired   uint64
	Prevented uint64

	CommandsInFlight, ReadsInFlight int64
	Mailboxes                       []Count // messages waiting; all books are one

	BatchRecords, BatchBytes, Append metrics.Distribution

	Stalled       bool          // the store does not take writes
	AppendWaiting time.Duration // how long the append in flight has been waiting; 0: none is
	Confirmed     time.Duration // since the store last confirmed that this process owns it

	FoldLag        uint64 // records that are durable and not in both the fold and the imager
	ProjectionLag  uint64 // records that the store's projections do not have
	ProjectionRows int64  // rows that they do not have

	SnapshotLag uint64        // records after the newest snapshot
	SnapshotAge time.Duration // of the newest snapshot, or of the process if there is none
	// JournalKept counts the records since the newest trim of the journal, or since the snapshot
	// that the start began with. A healthy journal has those of one or two snapshots.
	JournalKept uint64

	Rewriting bool // the store rewrites its file, as far as it was seen
}

// A Count is a number of something.
type Count struct {
	Name string // in the form a_b
	N    uint64
}

// Stats returns the current numbers. Any goroutine may call it at any time: it takes no actor's
// turn.
func (e *Engine) Stats() Stats {
	m, now := e.meter, time.Now()
	// The counter that lags is read before the one ahead, so that no difference is negative.
	folded, watermark, snapshot, trimmed := e.committed.Folded(), m.Watermark.Load(),
		m.SnapshotSeq.Load(), m.Trimmed.Load()
	released := e.committed.Released()
	s := Stats{Meter: m, Ready: e.Ready() == nil, Maintenance: e.maintenance.Load() != nil,
		TurnedAway:       turnedAwayCounts(m),
		CommandsInFlight: e.commandsInFlight(), ReadsInFlight: e.ReadsInFlight(),
		Mailboxes:      e.mailboxCounts(),
		AppendWaiting:  e.journal.stalledFor(metrics.At(now)),
		Confirmed:      max(0, time.Duration(metrics.At(now)-e.own.Checked())),
		FoldLag:        behind(released, min(folded, e.committed.ImagerFolded())),
		ProjectionLag:  behind(released, watermark),
		ProjectionRows: e.committed.Unsaved(),
		SnapshotLag:    behind(released, snapshot),
		JournalKept:    behind(released, trimmed)}
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

// StoreSize names the store, and returns how many bytes it takes; -1: it does not tell.
func (e *Engine) StoreSize(ctx context.Context) (store string, bytes int64) {
	bytes = -1
	if s, tells := e.opts.Store.(persistence.Sizer); tells {
		if n, err := s.Size(ctx); err == nil {
			bytes = n
		}
	}
	return e.opts.Store.String(), bytes
}

// A Survey is what monitoring shows that takes longer than Stats.
type Survey struct {
	*committed.Totals
	// bytes that the store's server uses, and may use; 0: it does not tell, or it is no server's
	// memory
	Memory, MemoryMost int64
	Silent             bool // the store has not answered
}

// Survey adds up what accounts and pairs have, and asks the store. No order and no read waits for
// it. Errors are those of Totals.
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

// journal takes the counts under the lock of the journal's writer, and names them afterwards.
func (s *Stats) journal(j *metrics.Journal) {
	j.Lock()
	kinds, refused := j.Records, j.Refused
	s.Expired, s.Prevented = j.Expired, j.Prevented
	s.Trades, s.BatchRecords, s.BatchBytes, s.Append = j.Trades, j.BatchRecords.Clone(),
		j.BatchBytes.Clone(), j.Append.Clone()
	j.Unlock()
	s.Orders = kinds[event.KindOrder] + kinds[event.KindInstructed] + kinds[event.KindStop]
	s.Cancels = kinds[event.KindCancel] + kinds[event.KindSwept]
	s.Triggered = kinds[event.KindTriggered]
	for k, n := range kinds {
		// a number without a kind is left out
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

// turnedAwayFor are the errors of admission, which are never wrapped, each at the number under
// which it is counted.
var turnedAwayFor = [...]struct {
	err  error
	name string
}{{ErrStopping, "stopping"}, {ErrStalled, "stalled"}, {ErrBusy, "busy"},

	{ErrAccountBusy, "account_busy"}, {ErrBehind, "behind"},
	{ErrPaused, "paused"}, {ErrMaintenance, "maintenance"}, {ErrNotConfirmed, "not_confirmed"},
	{ErrNoMail, "no_mail"}}

// TurnAway counts an error of admission, and returns it.
func (e *Engine) TurnAway(err error) error { return TurnAway(e.meter, err) }

// TurnAway counts an error of admission, and returns it.
func TurnAway(m *metrics.Engine, err error) error {
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

// mailboxCounts adds up mailboxes of one name.
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
