package gateway

import (
	"strconv"

	"exchange/actors"
	"exchange/actors/metrics"
)

// The metrics of the engine. A help text has the meaning of the number and the sign to look closer.
var (
	ordersAccepted = describe("orders_accepted_total",
		"Orders whose records are durable. No change while requests come in is an outage.")
	ordersCancelled = describe("orders_cancelled_total",
		"Orders that were cancelled, each order of a cancel-all counted.")
	triggered = describe("orders_triggered_total",
		"Orders that entered the book by their triggers. Many at once are a cascade: "+
			"exchange_journal_records_total{kind=\"order\"} must go on growing beside it.")
	expired = describe("orders_expired_total",
		"Orders that were cancelled at their expire_time.")
	prevented = describe("self_trades_prevented_total",
		"Resting orders that were cancelled because an order of their own account met them.")
	tradesDone = describe("trades_total", "Trades whose records are durable.")
	refusals   = describe("commands_refused_total",
		"Commands that were refused in the journal, after their nonce was used. funds and "+
			"not_open are everyday; nonce in numbers is a client with a broken clock, "+
			"or somebody who replays; book_limit and account_limit say that a limit was met.",
		"reason")
	turnedAway = describe("requests_turned_away_total",
		"Commands and private reads that were turned away before they did anything, with a 503. "+
			"busy and account_busy: too much in flight; behind: the store's projections or the "+
			"committed state lag; stalled and not_confirmed: the store does not answer.", "reason")
	unanswered = describe("unanswered_total",
		"Commands and reads whose handler stopped waiting. Of a command the client was told that "+
			"its outcome is unknown: any is worth a look at the store.", "kind")
	records = describe("journal_records_total", "Durable records by kind.", "kind")
	stages  = describe("command_stage_duration_seconds",
		"Where a command's time goes, of one command in "+strconv.Itoa(metrics.TraceOneIn)+
			". queue: to its decision, through the mailboxes of wallet and book; match: the "+
			"book's decision; "+
			"gather: in the forming batch, while the append before is on its way; append: in the "+
			"store; release: until it is answered; answer: until its handler runs again. "+
			"queue and answer growing alone means that the processors are full.", "stage")
	batchRecords = describe("journal_batch_records",
		"Records of each append. Growing batches mean that orders come faster than the store "+
			"syncs: throughput is fine, latency grows.")
	batchBytes = describe("journal_batch_bytes",
		"Bytes of each append. At limits.batch_bytes a batch is cut.")
	appendDuration = describe("store_append_duration_seconds",
		"Until a batch was durable, all tries included: the floor of an order's latency. Watch "+
			"the 99th percentile; seconds are a sick disk or Redis.")
	applyDuration = describe("store_apply_duration_seconds",
		"Until the store had taken a step of projections, all tries included. It is behind the "+
			"journal and in nobody's way until exchange_projection_lag_rows nears its limit.")
	snapshotTime = describe("store_snapshot_duration_seconds",
		"Uploads of snapshots that succeeded. It grows with the state.")
	storeFailures = describe("store_failures_total",
		"Calls of the store that failed and are tried again; of reference by operators, because a "+
			"deposit was not made; of client_order_id by clients, who got a 503. Any growth is "+
			"worth a look at the log.", "operation")
	idLooks = describe("client_order_id_looks_total",
		"Looks for a client order id among closed orders. filter: memory has proved that there "+
			"is none; store: the store was asked. Many of the latter, long after a start, mean "+
			"that limits.client_order_id_filter_mb is too small.", "by")
	rowsDamaged = describe("history_damaged_total",
		"Reads of the history that ended at a damaged row, by list; the client got 503, and the "+
			"log names the row. Any is a reason to run exchange audit, and to restore a backup.",
		"list")
	storeStalled = describe("store_stalled",
		"1 while the store does not take writes; new commands are refused. After "+
			"timing.stall_max_ms the process ends.")
	storeWaiting = describe("store_append_waiting_seconds",
		"How long the append in flight has been waiting; 0 if there is none.")
	storeConfirmed = describe("store_confirmation_age_seconds",
		"Since the store last confirmed that this process owns it. Above timing.owner_stale_ms "+
			"private reads are refused.")
	mailboxes = describe("mailbox_messages",
		"Messages waiting for an actor; all books are one. committed growing steadily means that "+
			"the fold cannot follow.", "mailbox")
	commands = describe("commands_in_flight",
		"Commands between admission and release. At exchange_limits{limit=\"in_flight\"}, less a "+
			"share for cancels, new ones are turned away.")
	reading = describe("reads_in_flight",
		"Reads that wait for their answer, the store's included, and look-ups of why a command "+
			"was refused. Of each kind no more than exchange_limits{limit=\"reads\"} are taken.")
	foldLag = describe("fold_lag_records",
		"Durable records that the fold, or the second one for images, does not have yet. Beyond "+
			"exchange_limits{limit=\"fold_lag\"} commands are refused.")
	projectionLag = describe("projection_lag_records",
		"Durable records that the store's history does not have yet.")
	projectionRows = describe("projection_lag_rows",
		"Rows that the store's history does not have yet. Beyond "+
			"exchange_limits{limit=\"projection_lag\"} commands are refused.")
	openOrders = describe("open_orders", "Orders that rest in the books of all pairs.")
	outbox     = describe("outbox_mails",
		"Mails that are to be sent. Growing means that the mail server does not take them: "+
			"withdraws cannot be confirmed.")
	snapshotAge = describe("snapshot_age_seconds",
		"Age of the newest snapshot, or of the process if there is none. An idle exchange takes "+
			"none: watch exchange_snapshot_lag_records with it.")
	snapshotLag = describe("snapshot_lag_records",
		"Records after the newest snapshot: what a start has to fold. Far above "+
			"snapshot.max_records means that snapshots fail.")
	journalKept = describe("journal_kept_records",
		"Records since the journal was last trimmed, or since the snapshot that the start began "+
			"with. Those of two snapshots are usual; beyond that the journal is not archived, or "+
			"not trimmed, and the store grows.")
	snapshotBytes = describe("snapshot_bytes",
		"Size of the newest snapshot; 0 if there is none.")
	snapshotBegin = describe("snapshot_begin_timestamp_seconds",
		"When the newest snapshot began, in Unix time; 0 if none has since the start.")
	snapshotEnd = describe("snapshot_end_timestamp_seconds",
		"When a snapshot last ended, taken or failed, in Unix time. Before "+
			"exchange_snapshot_begin_timestamp_seconds one is under way.")
	snapshotStages = describe("snapshot_stage_seconds",
		"How long each stage of the newest snapshot took. image: the imager makes it; upload: "+
			"into the store; trim: the journal is archived and trimmed.", "stage")
	auditBegin = describe("audit_begin_timestamp_seconds",
		"When the newest audit began, in Unix time; 0 if none has since the start.")
	auditEnd = describe("audit_end_timestamp_seconds",
		"When an audit last ended, in Unix time. Before exchange_audit_begin_timestamp_seconds "+
			"one is under way.")
	storeRewriting = describe("store_rewriting",
		"1 while Redis rewrites its append-only file, as seen once a second; 0 of other stores.")
	recoveryDuration = describe("recovery_duration_seconds",
		"How long the last start took, until commands were taken.")
	recoveryRecords = describe("recovery_records",
		"Records that the last start folded from the journal.")
	inMaintenance = describe("maintenance",
		"1 while clients' commands are refused by an operator's wish. Watch that it is not "+
			"forgotten.")
)

var engineFamilies = []family{
	ordersAccepted, ordersCancelled, triggered, expired, prevented, tradesDone, refusals,
	turnedAway, unanswered, records, stages, batchRecords, batchBytes, appendDuration,
	applyDuration, snapshotTime, storeFailures,
	idLooks, rowsDamaged, storeStalled, storeWaiting, storeConfirmed, mailboxes, commands, reading,
	foldLag, projectionLag, projectionRows, openOrders, outbox, snapshotAge, snapshotLag,
	journalKept,
	snapshotBytes, snapshotBegin, snapshotEnd, snapshotStages, auditBegin, auditEnd, storeRewriting,
	recoveryDuration, recoveryRecords, inMaintenance,
}

// engine gives the numbers of the engine.
func (s sink) engine(e *actors.Stats) {
	s.commands(e)
	s.store(e)
	s.state(e)
}

func (s sink) counts(f family, list []actors.Count) {
	for _, c := range list {
		s.counter(f, c.N, c.Name)
	}
}

// commands gives the engine's work.
func (s sink) commands(e *actors.Stats) {
	s.counter(ordersAccepted, e.Orders)
	s.counter(ordersCancelled, e.Cancels)
	s.counter(triggered, e.Triggered)
	s.counter(expired, e.Expired)
	s.counter(prevented, e.Prevented)
	s.counts(records, e.Records)
	s.counter(tradesDone, e.Trades)
	s.counts(refusals, e.Refused)
	s.counts(turnedAway, e.TurnedAway)
	s.counter(unanswered, e.UnknownOutcomes, "command")
	s.counter(unanswered, e.UnansweredReads, "read")
	s.gauge(commands, float64(e.CommandsInFlight))
	s.gauge(reading, float64(e.ReadsInFlight))
	for _, c := range e.Mailboxes {
		s.gauge(mailboxes, float64(c.N), c.Name)
	}
	for i := range e.Stages {
		s.histogram(stages, e.Stages[i], nanoseconds, metrics.Stage(i).String())
	}
	s.histogram(batchRecords, e.BatchRecords, ones)
	s.histogram(batchBytes, e.BatchBytes, ones)
}

// store gives the store's state.
func (s sink) store(e *actors.Stats) {
	s.histogram(appendDuration, e.Append, nanoseconds)
	s.histogram(applyDuration, e.Apply, nanoseconds)
	s.histogram(snapshotTime, e.Snapshot, nanoseconds)
	for i, n := range e.Failures {
		s.counter(storeFailures, n, metrics.Operation(i).String())
	}
	s.counter(idLooks, e.FilteredLooks, "filter")
	s.counter(idLooks, e.StoreLooks, "store")
	for i, n := range e.Damaged {
		s.counter(rowsDamaged, n, metrics.List(i).String())
	}
	s.yes(storeStalled, e.Stalled)
	s.gauge(storeWaiting, e.AppendWaiting.Seconds())
	s.gauge(storeConfirmed, e.Confirmed.Seconds())
}

// state gives the engine's progress and its lags.
func (s sink) state(e *actors.Stats) {
	s.yes(inMaintenance, e.Maintenance)
	s.gauge(foldLag, float64(e.FoldLag))
	s.gauge(projectionLag, float64(e.ProjectionLag))
	s.gauge(projectionRows, float64(e.ProjectionRows))
	s.gauge(openOrders, float64(e.OpenOrders))
	s.gauge(outbox, float64(e.Outbox))
	s.gauge(snapshotAge, e.SnapshotAge.Seconds())
	s.gauge(snapshotLag, float64(e.SnapshotLag))
	s.gauge(journalKept, float64(e.JournalKept))
	s.gauge(snapshotBytes, float64(e.SnapshotBytes))
	s.moment(snapshotBegin, e.SnapshotBegin)
	s.moment(snapshotEnd, e.SnapshotEnd)
	for i, took := range e.SnapshotTimes {
		s.gauge(snapshotStages, took.Seconds(), metrics.SnapshotStage(i).String())
	}
	s.moment(auditBegin, e.AuditBegin)
	s.moment(auditEnd, e.AuditEnd)
	s.yes(storeRewriting, e.Rewriting)
	s.gauge(recoveryDuration, e.Recovery.Seconds())
	s.gauge(recoveryRecords, float64(e.RecoveryRecords))
}
