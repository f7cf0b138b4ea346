package actors

import (
	"bytes"
	"context"
	"maps"
	"math/rand/v2"
	"slices"

	"exchange/actors/seal"
	"exchange/actors/simulation"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/persistence"
	"exchange/persistence/backup"
	"exchange/persistence/memory"
)

// A simulation has several histories: a backup is restored, and what came after it happens anew, as
// something else, under the same ids. What was mailed before is still in people's hands.

// A keptBackup is what an operator has kept.
type keptBackup struct {
	data      []byte
	seq       uint64
	serverKey []byte // that its secrets are sealed with
}

// headOf is the HEAD that a life finds: its host's, or that in the folder of an embedded store. Now
// and then it was lost.
func (s *sim) headOf(l *life) *memory.Head {
	head := &s.head
	if s.server {
		head = &l.host.head
	}
	if s.ending {
		head.There = true // the last starts have nothing to write
	} else if s.begun > 1 && s.rng.IntN(10) == 0 {
		s.say("  the HEAD is lost")
		*head = memory.Head{}
	}
	return head
}

// newModel is the exchange before its first record.
func (s *sim) newModel() *simulation.Model {
	usual := map[string]simulation.Rates{}
	for _, p := range s.options.Pairs {
		usual[p.Name] = simulation.Rates{Maker: p.Fees.Maker, Taker: p.Fees.Taker}
	}
	m := simulation.NewModel(s.options.Limits.MaxFills, usual)
	m.CodeValid = s.options.Withdraw.CodeValid
	return m
}

// backUp keeps a backup of an engine at rest.
func (s *sim) backUp(l *life) {
	image := l.engine.committed.state.AppendTo(nil)
	var b bytes.Buffer
	store := memory.Open(s.disk, persistence.Retention{})
	if err := backup.Write(context.Background(), &b, store, image, l.engine.Authority(), func(int) {}); err != nil {
		s.violate("a backup at %d: %w", s.model.Seq, err)
		return
	}
	s.say("  a backup is kept, of %d records", s.model.Seq)
	s.outcomes["backups"]++
	s.kept = &keptBackup{b.Bytes(), s.model.Seq, l.serverKey}
}

// restorable says whether there is a backup whose secrets the server's keys open.
func (s *sim) restorable() bool {
	return s.kept != nil && slices.ContainsFunc(s.serverKeys, func(key []byte) bool {
		return bytes.Equal(key, s.kept.serverKey)
	})
}

// restore ends all engines, and fills another store from the backup.
func (s *sim) restore() {
	for len(s.lives) > 0 {
		s.outcomes["engines, killed"]++
		s.kill(s.lives[0])
	}
	for range 2 { // nobody is left who looks at answers of before
		for _, p := range s.waiting() {
			s.resume(p, false)
		}
		s.advance(2 * s.options.Timing.Request)
	}
	s.outcomes["restores"]++
	s.disk.Durable = nil // calls that are late land on what was before
	s.disk = memory.NewDisk()
	store := s.openStore()
	store.Head = &s.head
	var kept *backup.Backup
	keys, err := seal.New(s.serverKeys...)
	if err == nil {
		kept, err = backup.Open(bytes.NewReader(s.kept.data), keys)
	}
	if err == nil {
		_, err = kept.Load(context.Background(), store, func(int) {})
		kept.Close()
	}
	if err != nil {
		s.violate("the backup at %d: %w", s.kept.seq, err)
		return
	}
	s.disk.Durable = s.durable
	s.restored, s.unnamed = true, true
	s.rewind(s.kept.seq)
}

// rewind makes the model what it was after a record. Clients keep what they were told.
func (s *sim) rewind(seq uint64) {
	s.batches = slices.DeleteFunc(s.batches, func(b durableBatch) bool { return b.next > seq })
	s.reference = nil
	clear(s.records)
	clear(s.damaged)
	s.told = 0
	clear(s.restedBy) // other orders may get their ids
	clear(s.barred)   // what a freeze or the end of a key was, may be undone
	m := s.newModel()
	m.Sweeps, m.ReadNonces = s.model.Sweeps, maps.Clone(s.model.ReadNonces)
	s.model = m
	for _, b := range s.batches {
		opened, err := event.OpenBatch(b.data)
		for rest := opened.Records; err == nil && len(rest) > 0; {
			var r event.Record
			if rest, err = r.Decode(rest); err == nil {
				err = m.Apply(&r)
			}
		}
		if err != nil {
			s.violate("the records up to the backup at %d: %w", seq, err)
			return
		}
	}
	if m.Seq != seq {
		s.violate("a backup at %d is in the midst of a batch", seq)
	}
}

// A mailedCode is a code as its reader has it, and all that it was mailed for.
type mailedCode struct {
	text     string
	history  event.HistoryID
	withdraw uint64
	issue    int
	account  uint32
	currency uint16
	amount   money.Amount
	address  string
	timeUs   int64
}

// codeFor is mostly the newest code of a withdraw; now and then an older one, that of an earlier
// history too, another one's, or a wrong one.
func (s *sim) codeFor(r *rand.Rand, id uint64) mailedCode {
	list := s.codes[id]
	switch n := r.IntN(6); {
	case n == 0 || len(list) == 0:
		return mailedCode{text: "wrong"}
	case n == 1:
		return pick(r, list)
	case n == 2:
		if others := s.codes[s.withdrawOf(r, 0)]; len(others) > 0 {
			return pick(r, others)
		}
	}
	return list[len(list)-1]
}

// checkCode wants a withdraw that was just confirmed to be the one that its code was mailed for.
func (s *sim) checkCode(q *request, seq uint64) {
	w := s.model.Withdraws[q.id]
	want := mailedCode{q.code.text, s.model.History, w.ID, w.Issue, w.Account, w.Currency, w.Amount, w.Address, w.TimeUs}
	if q.code != want {
		s.violate("record %d confirms withdraw %d with the code of another, or of another history: %+v, not %+v",
			seq, w.ID, q.code, want)
	}
}

// mailed looks at a mail that has arrived.
func (s *sim) mailed(l *life, m *Mail) {
	id, again := m.MessageID(), *m
	again.Code = "" // the server may have another key since
	if before, there := s.messages[id]; there && before != again {
		s.violate("engine %d mails %+v under the Message-ID of %+v", l.number, again, before)
	}
	s.messages[id] = again
	if m.Code == "" {
		return
	}
	w := &m.Withdraw
	s.codes[w.ID] = append(s.codes[w.ID], mailedCode{m.Code, m.History, w.ID, int(w.Issue), w.Account, w.Currency, w.Amount,
		w.Address, w.TimeUs})
	if !l.engine.codeFits(w, m.Code) {
		s.violate("engine %d mails a code for withdraw %d that does not fit it", l.number, w.ID)
	}
	for _, what := range slices.Sorted(maps.Keys(boundTo)) {
		other := *w
		if boundTo[what](&other); l.engine.codeFits(&other, m.Code) {
			s.violate("the code of withdraw %d is good for one with another %s", w.ID, what)
		}
	}
	other := m.History
	other[0]++
	if l.engine.sealer.CodeFits(other, w, m.Code) {
		s.violate("the code of withdraw %d is good in another history", w.ID)
	}
}

// boundTo is what a code must not fit when it is another.
var boundTo = map[string]func(*state.Withdraw){
	"id": func(w *state.Withdraw) { w.ID++ }, "issue": func(w *state.Withdraw) { w.Issue++ },
	"account": func(w *state.Withdraw) { w.Account++ }, "currency": func(w *state.Withdraw) { w.Currency++ },
	"amount": func(w *state.Withdraw) { w.Amount++ }, "address": func(w *state.Withdraw) { w.Address += "x" },
	"time": func(w *state.Withdraw) { w.TimeUs++ },
}
