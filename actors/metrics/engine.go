package metrics

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Stage is a part of a command's way from its handler and back.
type Stage uint8

// The stages, in their order. The usual order goes through all of them. A command that meets no
// book, such as one that is refused for funds, has no StageMatch; its stageQueue ends when it is
// decided.
const (
	// handler → wallet → book: in the mailboxes, and the wallet's own decision
	stageQueue  Stage = iota
	StageMatch        // the book's decision, its record encoded
	stageGather       // in the forming batch, while the append before is on its way
	stageAppend       // in the batch that the store is writing
	// durable, until it is answered: settlements and the message to the fold go before
	stageRelease
	StageAnswer // answered, until its handler runs again
	Stages
)

var stageNames = [Stages]string{"queue", "match", "gather", "append", "release", "answer"}

func (s Stage) String() string { return stageNames[s] }

// TraceOneIn is how many commands there are for each one that is traced: the clock costs more than
// all other counting.
const TraceOneIn = 64

// A Trace has the times at which a command came to the ends of its stages, by Now; 0: it did not,
// or it is not traced. The owner of the command owns it.
type Trace struct {
	Sent     int64 // by its handler; 0: this command is not traced
	Matching int64 // its book began
	Decided  int64 // it is in a batch
	Answered int64
}

// numbers is such that a uint8 cannot be out of range: counting must never end the writer.
const numbers = 256

// Reasons is above the number of reasons to turn a command or a read away.
const Reasons = 16

// An Operation is a call of the store.
type Operation uint8

// The operations whose failures are counted. The engine tries each again, except the look for a
// deposit's reference: the operator tries that again.
const (
	OperationAppend Operation = iota
	OperationApply
	OperationSnapshot
	OperationTrim // the archive before it included
	OperationReference
	operationCount
)

var operationNames = [operationCount]string{"append", "apply", "snapshot", "trim", "reference"}

func (o Operation) String() string { return operationNames[o] }

// A SnapshotStage is a part of the way of a snapshot.
type SnapshotStage uint8

// The stages, in their order.
const (
	StageImage  SnapshotStage = iota // the imager makes it
	StageUpload                      // the store takes it
	StageTrim                        // the journal is archived and trimmed
	snapshotStageCount
)

var snapshotStageNames = [snapshotStageCount]string{"image", "upload", "trim"}

func (s SnapshotStage) String() string { return snapshotStageNames[s] }

// A Span is the newest run of work that is done now and then.
type Span struct {
	beginUs atomic.Int64 // microseconds since the Unix epoch; 0: it has never run
	endUs   atomic.Int64 // before beginUs while it runs
}

// Begin notes that it begins now.
func (s *Span) Begin() { s.beginUs.Store(time.Now().UnixMicro()) }

// End notes that it has ended.
func (s *Span) End() { s.endUs.Store(time.Now().UnixMicro()) }

// Times returns when the newest run began, and when one last ended; the zero time: none has.
func (s *Span) Times() (begin, end time.Time) {
	// The end is read before the beginning, so what has just begun has not ended.
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

// A Journal has the numbers of durable records. The journal's writer holds the lock once a batch,
// while it counts; a reader holds it while it reads. So the writer pays for two atomic operations
// instead of a dozen, each of which would cost as much as all the counting.
type Journal struct {
	sync.Mutex
	Records [numbers]uint64 // by event.Kind
	Refused [numbers]uint64 // by event.Refusal's Reason
	Trades  uint64
	// orders that expired, and orders that were taken out before they traded with their own account
	Expired, Prevented uint64

	BatchRecords Distribution // records
	BatchBytes   Distribution // bytes
	Append       Distribution // nanoseconds until it was durable, all tries included
}

// An Engine has the numbers of one engine.
type Engine struct {
	Journal Journal

	// Of traced commands. The journal's writer adds, at release; a command's handler adds
	// StageAnswer.
	Stages [Stages]*Histogram

	_ [64]byte // other goroutines add to the fields below

	// Handlers add: by the number of the reason, when they turn a command or a read away before an
	// actor has seen it; and when they stop waiting.
	TurnedAway      [Reasons]atomic.Uint64
	UnknownOutcomes atomic.Uint64 // of commands
	UnansweredReads atomic.Uint64
	Damaged         [listCount]atomic.Uint64 // reads of the history that ended at damage

	_ [64]byte

	// The journal's writer, the projector, the goroutine that uploads a snapshot and look-ups add,
	// each to its own operation.
	Failures [operationCount]atomic.Uint64

	// The projector adds.
	Apply *Histogram // nanoseconds, all tries included

	// Recovery sets these, before the engine has other goroutines; afterwards the goroutine that
	// uploads a snapshot does.
	Snapshot       *Histogram    // nanoseconds of uploads that succeeded
	SnapshotSeq    atomic.Uint64 // of the newest snapshot; 0: there is none
	SnapshotTimeUs atomic.Int64  // when it was taken, microseconds since the Unix epoch
	SnapshotBytes  atomic.Int64
	Trimmed        atomic.Uint64 // up to where the journal is trimmed, at least

	// The newest snapshot, successful or not. The committed actor begins it. The goroutine that
	// uploads it adds the stages and ends it.
	Snapshotting  Span
	SnapshotTimes [snapshotStageCount]atomic.Int64 // nanoseconds

	Auditing Span // the goroutine of an audit

	// Recovery sets these, before the engine has other goroutines; afterwards the committed actor
	// does.
	Watermark atomic.Uint64 // the store's, as far as the committed actor knows
	Outbox    atomic.Int64  // mails
	Open      atomic.Int64  // orders in all books

	// The start sets these, before any goroutine reads them.
	RecoveryNs      int64
	RecoveryRecords uint64
}

// NewEngine makes the numbers of an engine, all 0.
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

// SnapshotStage notes how long a stage of the newest snapshot took.
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
