package metrics

import (
	"sync"
	"sync/atomic"
)

// A Stage is a part of a command's way from its handler and back.
type Stage uint8

// The stages, in their order. The usual order goes through all of them. What does not meet a book,
// such as a refusal for funds, has no StageMatch, and its StageQueue ends when it is decided.
const (
	// handler → wallet → book: in the mailboxes, and the wallet's own decision
	StageQueue  Stage = iota
	StageMatch        // the book's decision, its record encoded
	StageGather       // in the forming batch, while the append before is on its way
	StageAppend       // in the batch that the store is writing
	// durable, until it is answered: settlements and the fold's message go before
	StageRelease
	StageAnswer // answered, until its handler runs again
	Stages
)

var stageNames = [Stages]string{"queue", "match", "gather", "append", "release", "answer"}

func (s Stage) String() string { return stageNames[s] }

// TraceOneIn is how many commands there are for each one that is traced: the clock costs more than
// all other counting.
const TraceOneIn = 64

// A Trace is when a command came to the ends of its stages, as Now tells; 0: it did not, or it is
// not traced. It belongs to the owner of its command.
type Trace struct {
	Sent     int64 // by its handler; 0: this command is not traced
	Matching int64 // its book began
	Decided  int64 // it is in a batch
	Answered int64
}

// Numbers are so many that a uint8 cannot be out of range: counting must never be what ends the
// writer.
const Numbers = 256

// Reasons are more than there are reasons to turn something away.
const Reasons = 16

// An Operation is a call of the store.
type Operation uint8

// The operations whose failures are counted. Each is tried again, but a look for a deposit's
// reference: that is for the operator to try again.
const (
	OperationAppend Operation = iota
	OperationApply
	OperationSnapshot
	OperationTrim // the archive before it included
	OperationReference
	Operations
)

var operationNames = [Operations]string{"append", "apply", "snapshot", "trim", "reference"}

func (o Operation) String() string { return operationNames[o] }

// A List is a kind of lists in the history.
type List uint8

// The lists.
const (
	ListTrades List = iota
	ListOrders
	ListDeposits
	ListWithdraws
	ListCandles
	ListActions
	ListReferences
	Lists
)

var listNames = [Lists]string{"trades", "orders", "deposits", "withdraws", "candles",
	"actions", "references"}

func (l List) String() string { return listNames[l] }

// A Journal has the numbers of what is durable. Its lock is held by the journal's writer, once for
// each batch at its release and while it counts, and by whoever reads: for the writer two atomic
// operations instead of a dozen, of which each would cost as much as all that is counted.
type Journal struct {
	sync.Mutex
	Records [Numbers]uint64 // by event.Kind
	Refused [Numbers]uint64 // by event.Refusal's Reason
	Trades  uint64

	BatchRecords Distribution // records
	BatchBytes   Distribution // bytes
	Append       Distribution // until it was durable, all tries included
}

// An Engine has the numbers of one engine.
type Engine struct {
	Journal Journal

	// The journal's writer adds, at release; a command's handler StageAnswer. Traced commands only.
	Stages [Stages]*Histogram

	_ [64]byte // what follows is others'

	// Handlers add, when they turn something away before an actor has seen it, by the number of the
	// reason; and when they stop waiting.
	TurnedAway      [Reasons]atomic.Uint64
	UnknownOutcomes atomic.Uint64 // of commands
	UnansweredReads atomic.Uint64
	Damaged         [Lists]atomic.Uint64 // reads of the history that ended at damage

	_ [64]byte

	// The journal's writer, the projector, the goroutine that uploads a snapshot and those that
	// look for references add, each its own.
	Failures [Operations]atomic.Uint64

	// The projector adds.
	Apply *Histogram // all tries included

	// Recovery sets these before there are others, then the goroutine that uploads a snapshot.
	Snapshot       *Histogram    // of uploads that succeeded
	SnapshotSeq    atomic.Uint64 // of the newest one; 0: there is none
	SnapshotTimeUs atomic.Int64  // when it was taken, microseconds since the Unix epoch
	SnapshotBytes  atomic.Int64

	// Recovery sets these before there are others, then the committed actor.
	Watermark atomic.Uint64 // the store's, as far as the committed actor knows
	Outbox    atomic.Int64  // mails

	// The start sets these, before anybody reads.
	RecoveryNs      int64
	RecoveryRecords uint64
}

// NewEngine makes the numbers of an engine, all 0.
func NewEngine() *Engine {
	e := &Engine{Apply: NewHistogram(RequestBounds), Snapshot: NewHistogram(SnapshotBounds)}
	e.Journal.BatchRecords, e.Journal.BatchBytes = NewDistribution(RecordBounds),
		NewDistribution(ByteBounds)
	e.Journal.Append = NewDistribution(RequestBounds)
	for i := range e.Stages {
		e.Stages[i] = NewHistogram(StepBounds)
	}
	return e
}

// SnapshotTaken notes the newest snapshot; seq is 0 if there is none.
func (e *Engine) SnapshotTaken(seq uint64, timeUs int64, bytes int) {
	e.SnapshotSeq.Store(seq)
	e.SnapshotTimeUs.Store(timeUs)
	e.SnapshotBytes.Store(int64(bytes))
}

// Traced counts the stages of a traced command that is durable and about to be answered. Its batch
// was being appended from one time to another.
func (e *Engine) Traced(t *Trace, appending, durable int64) {
	decision := t.Decided
	if t.Matching != 0 {
		decision = t.Matching
		e.Stages[StageMatch].Observe(t.Decided - t.Matching)
	}
	e.Stages[StageQueue].Observe(decision - t.Sent)
	e.Stages[StageGather].Observe(appending - t.Decided)
	e.Stages[StageAppend].Observe(durable - appending)
	e.Stages[StageRelease].Observe(Now() - durable)
}
