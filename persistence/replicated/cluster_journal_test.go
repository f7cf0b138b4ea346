package replicated

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"exchange/core/event"
	"exchange/persistence/internal/machine"
	"exchange/prove/spec"
)

// A judge tracks the entries that nodes apply and the answers to clients. It checks each record
// when the first node applies it, and each answer when a client has it.
type judge struct {
	fail  func(format string, v ...any)
	began time.Time

	sync.Mutex
	entries    map[uint64]string // each index's entry and outcome
	highest    uint64
	model      *spec.Exchange
	records    map[string][]uint64 // sequences of unanswered records
	newestSeen uint64              // newest sequence that a client has seen
	notes      []string            // of answers to clients
	reads      map[string]uint64   // highest replicated nonce of reads, by key
}

func newJudge(fail func(string, ...any), maxFills int,
	rules map[string]spec.Rules) *judge {
	return &judge{fail: fail, began: time.Now(), entries: map[uint64]string{},
		records: map[string][]uint64{}, reads: map[string]uint64{},
		model: spec.New(maxFills, rules)}
}

// checkEntry takes an entry that a node has applied. The first node's outcome counts; all others
// must have the same.
func (j *judge) checkEntry(at int, index uint64, e *machine.Entry, a machine.Answer) {
	what := fmt.Sprintf("%d of kind %d, %x", a.Outcome, e.Kind, xxhash.Sum64(e.Encode()))
	j.Lock()
	defer j.Unlock()
	if first, ok := j.entries[index]; ok {
		if first != what {
			j.fail("entry %d was %s, and is %s at node %d", index, first, what, at)
		}
		return
	}
	if index < j.highest {
		j.fail("node %d applies entry %d, and no other has: %d is the highest", at, index,
			j.highest)
	}
	j.entries[index], j.highest = what, index
	if a.Outcome != machine.Done {
		return
	}
	switch e.Kind {
	case machine.Acquire:
		j.note("node %d applies the claim of epoch %d", at, a.Token.Epoch())
		j.model.Restarted()
	case machine.Reads:
		for _, n := range e.Nonces {
			j.reads[n.Key] = max(j.reads[n.Key], n.Nonce)
		}
	case machine.Append:
		j.batch(e)
	}
}

// top returns the highest entry that a node has applied.
func (j *judge) top() uint64 {
	j.Lock()
	defer j.Unlock()
	return j.highest
}

func (j *judge) batch(e *machine.Entry) {
	if err := j.model.ApplyBatch(e.Prev, e.Next, e.Batch, func(_ *event.Record, record string) {
		j.records[record] = append(j.records[record], j.model.Seq)
	}); err != nil {
		j.fail("%v", err)
	}
}

// note keeps a line that may explain a failure. The caller holds the lock.
func (j *judge) note(format string, v ...any) {
	j.notes = append(j.notes, fmt.Sprintf("%d us: ", time.Since(j.began).Microseconds())+
		fmt.Sprintf(format, v...))
}

// newest returns the newest notes.
func (j *judge) newest() string {
	j.Lock()
	defer j.Unlock()
	return strings.Join(j.notes[max(0, len(j.notes)-40):], "\n")
}

// takeAnswer takes an answer's record: a node must have applied it, and no other answer contained
// it.
func (j *judge) takeAnswer(who string, at int, r *event.Record) {
	record := string(r.Append(nil))
	j.Lock()
	defer j.Unlock()
	list := j.records[record]
	if len(list) == 0 {
		j.fail("%s receives %v, which no node has applied, or which was answered before", who,
			r.Kind)
		return
	}
	j.records[record] = list[1:]
	j.newestSeen = max(j.newestSeen, list[0])
	j.note("node %d answers %s with %v at %d", at, who, r.Kind, list[0])
}

// seenSeq returns the newest sequence that a client has seen: a read that begins now must show it.
func (j *judge) seenSeq() uint64 {
	j.Lock()
	defer j.Unlock()
	return j.newestSeen
}

// takeRead takes the sequence of an answer to a read that began when from was seen, and returns the
// account as it is at the answer. The caller holds the lock.
func (j *judge) takeRead(who string, at int, seq, from uint64) *spec.Account {
	j.note("node %d shows %s the state at %d; %d was seen when it asked", at, who, seq, from)
	if seq < from || seq > j.model.Seq {
		j.fail("%s is shown the state at %d; %d was seen before, and %d records are applied", who,
			seq, from, j.model.Seq)
	}
	j.newestSeen = max(j.newestSeen, seq)
	return j.model.Account(who)
}
