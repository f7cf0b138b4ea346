package metrics

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Stage is a part of a command's way from its handler and back.
type Stage uint8

// The stages, in their order. The usual order passes all of them. A command that enters no book,
// such as one refused for funds, has no StageMatch; its stageQueue ends with its decision.
const (
	// handler → wallet → book: in the mailboxes, and the wallet's own decision
	stageQueue  Stage = iota
	StageMatch        // the book's decision, its record encoded
	stageGather       // in the forming batch, while the previous append is in flight
	stageAppend       // in the batch being written by the store
	// durable, until it is answered: settlements and the message to the fold go first
	stageRelease
	StageAnswer // answered, until its handler runs again
	Stages
)

var stageNames = [Stages]string{"queue", "match", "gather", "append", "release", "answer"}

func (s Stage) String() string { return stageNames[s] }

// TraceOneIn is the number of commands per traced one: the clock costs more than all other
// counting.
const TraceOneIn = 64

// A Trace holds the times at which a command reached the ends of its stages, by Now; 0: not
// reached, or not traced. The owner of the command owns it.
type Trace struct {
	Sent     int64 // by its handler; 0: this command is not traced
	Matching int64 // its book started
	Decided  int64 // it is in a batch
	Answered int64
}

// numbers covers every uint8: counting must never stop the writer.
const numbers = 256

// Reasons is above the number of refusal reasons of admission.
const Reasons = 16

// An Operation is a call of the store.
type Operation uint8

// The operations whose failures are counted. The engine retries each, except the lookup of a
// deposit's reference: the operator retries that.
const (
	OperationAppend Operation = iota
	OperationApply
	OperationSnapshot
	OperationTrim // including the archive before it
	OperationReference
	operationCount
)

var operationNames = [operationCount]string{"append", "apply", "snapshot", "trim", "reference"}

func (o Operation) String() string { return operationNames[o] }

// A SnapshotStage is a part of making a snapshot.
type SnapshotStage uint8

// The stages, in their order.
const (
	StageImage  SnapshotStage = iota // the imager makes it
	StageUpload                      // the store writes it
	StageTrim                        // the journal is archived and trimmed
	snapshotStageCount
)

var snapshotStageNames = [snapshotStageCount]string{"image", "upload", "trim"}

func (s SnapshotStage) String() string { return snapshotStageNames[s] }

// A Span is the newest run of occasional work.
type Span struct {
	beginUs atomic.Int64 // microseconds since the Unix epoch; 0: never
	endUs   atomic.Int64 // before beginUs while it runs
}

// Begin notes the start of a run.
func (s *Span) Begin() { s.beginUs.Store(time.Now().UnixMicro()) }

// End notes the end of a run.
func (s *Span) End() { s.endUs.Store(time.Now().UnixMicro()) }

// Times returns when the newest run started, and when one last ended; zero: never.
func (s *Span) Times() (begin, end time.Time) {
	// Read the end first, so that a run which just started has not ended.
	end = moment(s.endUs.Load())
	return moment(s.beginUs.Load()), end
}

func moment(us int64) (t time.Time) {
	if us != 0 {
		t = time.UnixMicro(us)
	}
	return t
}

// A List is one kind of lists in the history.
type List uint8

// The lists.
const (
	ListTrades List = iota
	ListOrders
	ListDeposits
	ListWithdrawals
	ListCandles
	ListActions
	ListReferences
	listCount
)

var listNames = [listCount]string{"trades", "orders", "deposits", "withdraws", "candles",
	"actions", "references"}

func (l List) String() string { return listNames[l] }

// A Journal holds the counters of durable records. The journal's writer holds the lock once a
// batch, while it counts; a reader holds it while it reads. So the writer pays for two atomic
// operations instead of a dozen, each of which would cost as much as all the counting.
type Journal struct {
	sync.Mutex
	Records [numbers]uint64 // by event.Kind
	Refused [numbers]uint64 // by event.Refusal's Reason
	Trades  uint64
	// expired orders, and orders removed to prevent a self-trade
	Expired, Prevented uint64

	BatchRecords Distribution // records
	BatchBytes   Distribution // bytes
	Append       Distribution // nanoseconds until durable, including all tries
}

// An Engine holds the counters of one engine.
type Engine struct {
	Journal Journal

	// Of traced commands. The journal's writer adds, at release; a command's handler adds
	// StageAnswer.
	Stages [Stages]*Histogram

	_ [64]byte // other goroutines add to the fields below

	// Handlers add: by the number of the reason, when they refuse a command or a read before an
	// actor sees it; and when they stop waiting.
	TurnedAway      [Reasons]atomic.Uint64
	UnknownOutcomes atomic.Uint64 // of commands
	UnansweredReads atomic.Uint64
	Damaged         [listCount]atomic.Uint64 // reads of the history that failed at damage

	_ [64]byte

	// The journal's writer, the projector, the goroutine that uploads a snapshot and lookups add,
	// each to its own operation.
	Failures [operationCount]atomic.Uint64

	// The projector adds.
	Apply *Histogram // nanoseconds, including all tries

	// Set by recovery, before the engine has other goroutines; afterwards by the goroutine that
	// uploads a snapshot.
	Snapshot       *Histogram    // nanoseconds of uploads that succeeded
	SnapshotSeq    atomic.Uint64 // of the newest snapshot; 0: none
	SnapshotTimeUs atomic.Int64  // when it was taken, microseconds since the Unix epoch
	SnapshotBytes  atomic.Int64
	Trimmed        atomic.Uint64 // the journal is trimmed at least up to here

	// The newest snapshot, successful or not. The committed actor begins it. The goroutine that
	// uploads it adds the stages and ends it.
	Snapshotting  Span
	SnapshotTimes [snapshotStageCount]atomic.Int64 // nanoseconds

	Auditing Span // the goroutine of an audit

	// Set by recovery, before the engine has other goroutines; afterwards by the committed actor.
	Watermark atomic.Uint64 // the store's, as cached by the committed actor
	Outbox    atomic.Int64  // mails
	Open      atomic.Int64  // orders in all books

	// Set by the start, before any goroutine reads them.
	RecoveryNs      int64
	RecoveryRecords uint64
}

// NewEngine makes the counters of an engine, all 0.
func NewEngine() *Engine {
	e := &Engine{Apply: NewHistogram(RequestBounds), Snapshot: NewHistogram(snapshotBounds)}
	e.Journal.BatchRecords, e.Journal.BatchBytes = newDistribution(recordBounds),
		newDistribution(byteBounds)
	e.Journal.Append = newDistribution(RequestBounds)
	for i := range e.Stages {
		e.Stages[i] = NewHistogram(stepBounds)
	}
	return e
}

// SnapshotTaken notes the newest snapshot; seq is 0 if there is none.
func (e *Engine) SnapshotTaken(seq uint64, timeUs int64, bytes int) {
	e.SnapshotSeq.Store(seq)
	e.SnapshotTimeUs.Store(timeUs)
	e.SnapshotBytes.Store(int64(bytes))
}

// SnapshotStage notes the duration of a stage of the newest snapshot.
func (e *Engine) SnapshotStage(s SnapshotStage, took time.Duration) {
	e.SnapshotTimes[s].Store(int64(took))
}

// Traced counts the stages of a traced command that is durable and about to be answered. The append
// of its batch lasted from appending to durable.
func (e *Engine) Traced(t *Trace, appending, durable int64) {
	decision := t.Decided
	if t.Matching != 0 {
		decision = t.Matching
		e.Stages[StageMatch].Observe(t.Decided - t.Matching)
	}
	e.Stages[stageQueue].Observe(decision - t.Sent)
	e.Stages[stageGather].Observe(appending - t.Decided)
	e.Stages[stageAppend].Observe(durable - appending)
	e.Stages[stageRelease].Observe(Now() - durable)
}
