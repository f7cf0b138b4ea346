package metrics

import (
	"strconv"
	"time"

	"exchange/actors"
	"exchange/actors/metrics"
)

// engine gives the numbers of the engine.
func (s sink) engine(e *actors.Stats) {
	s.commands(e)
	s.store(e)
	s.state(e)
}

func (f family) perName(list []actors.Count) {
	for _, c := range list {
		f.counter(c.N, c.Name)
	}
}

// commands gives the engine's work.
func (s sink) commands(e *actors.Stats) {
	s.metric("orders_accepted_total",
		"Orders whose records are durable. No change while requests come in is an outage.").
		counter(e.Orders)
	s.metric("orders_cancelled_total",
		"Orders that were cancelled, each order of a cancel-all counted.").counter(e.OrderCancels)
	s.metric("orders_triggered_total",
		"Orders that entered the book by their triggers. Many at once are a cascade: "+
			"exchange_journal_records_total{kind=\"order\"} must keep growing beside it.").
		counter(e.Triggered)
	s.metric("orders_expired_total",
		"Orders that were cancelled at their expire_time.").counter(e.Expired)
	s.metric("self_trades_prevented_total",
		"Resting orders that were cancelled because an order of their own account met them.").
		counter(e.Prevented)
	s.metric("journal_records_total", "Durable records by kind.", "kind").perName(e.Records)
	s.metric("trades_total", "Trades whose records are durable.").counter(e.Trades)
	s.metric("commands_refused_total",
		"Commands that were refused in the journal, after their nonce was used. funds and "+
			"not_open are everyday; nonce in numbers is a client with a broken clock, "+
			"or somebody who replays; book_limit and account_limit say that a limit was met.",
		"reason").perName(e.Refused)
	s.metric("requests_turned_away_total",
		"Commands and private reads that were refused before they did anything, with a 503. "+
			"busy and account_busy: too much in flight; behind: the store's projections or the "+
			"committed state lag; stalled and not_confirmed: the store does not answer.", "reason").
		perName(e.TurnedAway)
	unanswered := s.metric("unanswered_total",
		"Commands and reads whose handler stopped waiting. For a command the client received "+
			"an unknown outcome: any is a reason to check the store.", "kind")
	unanswered.counter(e.Meter.UnknownOutcomes.Load(), "command")
	unanswered.counter(e.Meter.UnansweredReads.Load(), "read")
	s.metric("commands_in_flight",
		"Commands between admission and release. At exchange_limits{limit=\"in_flight\"}, less "+
			"a share for cancels, new ones are refused.").gauge(float64(e.CommandsInFlight))
	s.metric("reads_in_flight",
		"Reads that wait for their answer, the store's included, and look-ups of why a command "+
			"was refused. Of each kind no more than exchange_limits{limit=\"reads\"} are taken.").
		gauge(float64(e.ReadsInFlight))
	mailboxes := s.metric("mailbox_messages",
		"Messages waiting for an actor; all books are one. committed growing steadily means that "+
			"the fold cannot follow.", "mailbox")
	for _, c := range e.Mailboxes {
		mailboxes.gauge(float64(c.N), c.Name)
	}
	stages := s.metric("command_stage_duration_seconds",
		"Where a command's time goes, of one command in "+strconv.Itoa(metrics.TraceOneIn)+
			". queue: to its decision, through the mailboxes of wallet and book; match: the "+
			"book's decision; "+
			"gather: in the forming batch, while the append before is in flight; append: in the "+
			"store; release: until it is answered; answer: until its handler runs again. "+
			"queue and answer growing alone means that the processors are full.", "stage")
	for i := range e.Meter.Stages {
		stages.histogram(e.Meter.Stages[i].Read(), nanoseconds, metrics.Stage(i).String())
	}
	s.metric("journal_batch_records",
		"Records of each append. Growing batches mean that orders come faster than the store "+
			"syncs: throughput is fine, latency grows.").histogram(e.BatchRecords, ones)
	s.metric("journal_batch_bytes",
		"Bytes of each append. At limits.batch_bytes a batch is cut.").histogram(e.BatchBytes, ones)
}

// store gives the store's state.
func (s sink) store(e *actors.Stats) {
	s.metric("store_append_duration_seconds",
		"Until a batch was durable, all tries included: the floor of an order's latency. Watch "+
			"the 99th percentile; seconds are a sick disk or Redis.").
		histogram(e.Append, nanoseconds)
	s.metric("store_apply_duration_seconds",
		"Until the store had taken a step of projections, all tries included. It follows the "+
			"journal and delays nothing until exchange_projection_lag_rows nears its limit.").
		histogram(e.Meter.Apply.Read(), nanoseconds)
	s.metric("store_snapshot_duration_seconds",
		"Uploads of snapshots that succeeded. It grows with the state.").
		histogram(e.Meter.Snapshot.Read(), nanoseconds)
	failures := s.metric("store_failures_total",
		"Calls of the store that failed and are tried again; of reference by operators, because a "+
			"deposit was not made. Any growth is worth a look at the log.", "operation")
	for i := range e.Meter.Failures {
		failures.counter(e.Meter.Failures[i].Load(), metrics.Operation(i).String())
	}
	damaged := s.metric("history_damaged_total",
		"Reads of the history that ended at a damaged row, by list; the client got 503, and the "+
			"log names the row. Any is a reason to run exchange audit, and to restore a backup.",
		"list")
	for i := range e.Meter.Damaged {
		damaged.counter(e.Meter.Damaged[i].Load(), metrics.List(i).String())
	}
	s.metric("store_stalled",
		"1 while the store does not take writes; new commands are refused. After "+
			"timing.stall_max_ms the process ends.").yes(e.Stalled)
	s.metric("store_append_waiting_seconds",
		"How long the append in flight has been waiting; 0 if there is none.").
		gauge(e.AppendWaiting.Seconds())
	s.metric("store_confirmation_age_seconds",
		"Since the store last confirmed that this process owns it. Above timing.owner_stale_ms "+
			"private reads are refused.").gauge(e.Confirmed.Seconds())
}

// state gives the engine's progress and its lags.
func (s sink) state(e *actors.Stats) {
	s.metric("maintenance",
		"1 while clients' commands are refused on an operator's request. Watch that it is not "+
			"forgotten.").yes(e.Maintenance)
	s.metric("fold_lag_records",
		"Durable records that the fold, or the second one for images, does not have yet. Beyond "+
			"exchange_limits{limit=\"fold_lag\"} commands are refused.").gauge(float64(e.FoldLag))
	s.metric("projection_lag_records",
		"Durable records that the store's history does not have yet.").
		gauge(float64(e.ProjectionLag))
	s.metric("projection_lag_rows",
		"Rows that the store's history does not have yet. Beyond "+
			"exchange_limits{limit=\"projection_lag\"} commands are refused.").
		gauge(float64(e.ProjectionRows))
	s.metric("open_orders", "Orders that rest in the books of all pairs.").
		gauge(float64(e.Meter.Open.Load()))
	s.metric("outbox_mails",
		"Mails that are to be sent. Growing means that the mail server does not take them: "+
			"withdrawals cannot be confirmed.").gauge(float64(e.Meter.Outbox.Load()))
	s.metric("snapshot_age_seconds",
		"Age of the newest snapshot, or of the process if there is none. An idle exchange takes "+
			"none: watch exchange_snapshot_lag_records with it.").gauge(e.SnapshotAge.Seconds())
	s.metric("snapshot_lag_records",
		"Records after the newest snapshot: what a start has to fold. Far above "+
			"snapshot.max_records means that snapshots fail.").gauge(float64(e.SnapshotLag))
	s.metric("journal_kept_records",
		"Records since the journal was last trimmed, or since the snapshot that the start began "+
			"with. Those of two snapshots are usual; beyond that the journal is not archived, or "+
			"not trimmed, and the store grows.").gauge(float64(e.JournalKept))
	s.metric("snapshot_bytes",
		"Size of the newest snapshot; 0 if there is none.").
		gauge(float64(e.Meter.SnapshotBytes.Load()))
	begin, end := e.Meter.Snapshotting.Times()
	s.metric("snapshot_begin_timestamp_seconds",
		"When the newest snapshot began, in Unix time; 0 if none has since the start.").
		moment(begin)
	s.metric("snapshot_end_timestamp_seconds",
		"When a snapshot last ended, taken or failed, in Unix time. Before "+
			"exchange_snapshot_begin_timestamp_seconds one is under way.").moment(end)
	times := s.metric("snapshot_stage_seconds",
		"How long each stage of the newest snapshot took. image: the imager makes it; upload: "+
			"into the store; trim: the journal is archived and trimmed.", "stage")
	for i := range e.Meter.SnapshotTimes {
		took := time.Duration(e.Meter.SnapshotTimes[i].Load())
		times.gauge(took.Seconds(), metrics.SnapshotStage(i).String())
	}
	begin, end = e.Meter.Auditing.Times()
	s.metric("audit_begin_timestamp_seconds",
		"When the newest audit began, in Unix time; 0 if none has since the start.").
		moment(begin)
	s.metric("audit_end_timestamp_seconds",
		"When an audit last ended, in Unix time. Before exchange_audit_begin_timestamp_seconds "+
			"one is under way.").moment(end)
	s.metric("store_rewriting",
		"1 while Redis rewrites its append-only file, as seen once a second; 0 of other stores.").
		yes(e.Rewriting)
	s.metric("recovery_duration_seconds",
		"How long the last start took, until commands were taken.").
		gauge(time.Duration(e.Meter.RecoveryNs).Seconds())
	s.metric("recovery_records",
		"Records that the last start folded from the journal.").
		gauge(float64(e.Meter.RecoveryRecords))
}
