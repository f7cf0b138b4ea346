package actors

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"

	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/persistence"
	"exchange/persistence/backup"
	"exchange/persistence/memory"
	"exchange/prove/spec"
)

// A simulation has several histories. After the restore of a backup the exchange gives the ids
// after the backup to other orders and withdrawals. Owners still have the mails of the earlier
// history.

// A keptBackup is a backup that an operator has kept.
type keptBackup struct {
	data      []byte
	seq       uint64
	serverKey []byte // that seals its secrets
}

// headAt returns the HEAD of a host, or the one in the folder of an embedded store.
func (s *sim) headAt(h *host) *memory.Head {
	if s.server {
		return &h.head
	}
	return &s.head
}

// headOf returns the HEAD that a life finds. Sometimes it was lost, or is unreadable.
func (s *sim) headOf(l *life) *memory.Head {
	head := s.headAt(l.host)
	if s.begun == 1 || s.ending { // the last starts have nothing to write
		return head
	}
	switch s.rng.IntN(24) {
	case 0, 1:
		s.say("  the HEAD is lost")
		head.Lose()
	case 2:
		s.say("  the HEAD is damaged")
		head.Damage()
	}
	return head
}

// keptOut opens a store with its HEAD, and reports whether that refuses the start. HEAD must refuse
// it if the file is unreadable, or ahead of a store that was restored since. Otherwise it must not,
// because no crash leaves the file ahead of the journal. Then an operator removes the file.
func (s *sim) keptOut(k *link) bool {
	head, end, err := k.Store.Head, s.disk.Last(), k.Store.Whole()
	if err != nil && !errors.Is(err, persistence.ErrCorrupt) {
		s.violate("engine %d: the store opens with %w, not as a damaged one", k.l.number, err)
	}
	older := k.l.host.restores != s.outcomes["restores"]
	switch refuse := err != nil; {
	case head.Damaged():
		if !refuse {
			s.violate("engine %d opens a store whose HEAD cannot be read", k.l.number)
		}
		s.outcomes["starts refused, HEAD cannot be read"]++
	case older && head.Acknowledged() > end:
		if !refuse {
			s.violate("engine %d opens a store that ends at %d, and up to %d was acknowledged",
				k.l.number, end, head.Acknowledged())
		}
		s.outcomes["starts refused, HEAD says more"]++
	case !older && refuse:
		s.violate("engine %d: nothing was lost, and its HEAD keeps it out: %w", k.l.number, err)
	case !refuse:
		s.losesLast(k, older)
	}
	if err == nil {
		return false
	}
	s.say("  engine %d does not start: %v", k.l.number, err)
	head.Lose()
	return true
}

// losesLast wants a copy of the store without its last batch to be refused, if that was
// acknowledged and the file contains it.
func (s *sim) losesLast(k *link, older bool) {
	lost := s.disk.WithoutLast()
	if older || lost == nil || k.Store.Head.Acknowledged() < s.disk.Last() {
		return
	}
	m := memory.Open(lost, persistence.Retention{})
	m.Head = k.Store.Head
	if err := m.Whole(); !errors.Is(err, persistence.ErrCorrupt) {
		s.violate("record %d was acknowledged, and a store without it is opened: %v",
			s.disk.Last(), err)
	}
	s.outcomes["stores without their last batch, refused"]++
}

// cutHeads simulates a power failure of the HEAD of an embedded store, or of all hosts: it may lag
// then.
func (s *sim) cutHeads() {
	heads := []*memory.Head{&s.head}
	if s.server {
		heads = nil
		for _, h := range s.hosts {
			heads = append(heads, &h.head)
		}
	}
	for _, head := range heads {
		if lost := s.rng.IntN(head.Unsynced() + 1); lost > 0 {
			s.say("  a HEAD has lost its newest %d writes", lost)
			s.outcomes["writes of HEAD lost in crashes"] += lost
			head.PowerCut(lost)
		} else {
			head.PowerCut(0)
		}
	}
}

// newModel returns the exchange before its first record.
func (s *sim) newModel() *spec.Exchange {
	rules := map[string]spec.Rules{}
	for _, p := range s.options.Pairs {
		rules[p.Name] = spec.Rules{
			Usual: spec.Rates{Maker: p.Fees.Maker, Taker: p.Fees.Taker}, Tick: p.PriceTick,
			Step: p.AmountStep, Band: p.PriceBand, LeastValue: p.MinimumOrderValue,
			StopCollar: p.StopCollar}
	}
	m := spec.New(s.options.Limits.MaxFills, rules)
	m.CodeValid = s.options.Withdrawal.CodeValid
	m.KeptIDs = spec.KeptIDs(ledger.KeptIDs)
	m.SwitchGrace = s.options.Timing.SwitchGrace
	return m
}

// backUp keeps a backup of an engine at rest.
func (s *sim) backUp(l *life) {
	image := l.engine.committed.State().AppendTo(nil)
	var b bytes.Buffer
	store := memory.Open(s.disk, persistence.Retention{})
	if err := backup.Write(context.Background(), &b, store, image, l.engine.Authority(),
		func(int) {}); err != nil {
		s.violate("a backup at %d: %w", s.model.Seq, err)
		return
	}
	s.say("  a backup is kept, of %d records", s.model.Seq)
	s.outcomes["backups"]++
	s.kept = &keptBackup{b.Bytes(), s.model.Seq, l.serverKey}
}

// restorable reports whether a backup exists whose secrets the server's keys open.
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
	for range 2 { // no client remains with earlier answers
		for _, p := range s.waiting() {
			s.resume(p, false)
		}
		s.advance(2 * s.options.Timing.Request)
	}
	s.outcomes["restores"]++
	s.disk.Durable = nil // late calls land on the old store
	s.disk = memory.NewDisk()
	store := s.openStore()
	at := pick(s.rng, s.hosts)
	store.Head, store.Fill = s.headAt(at), true
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
	at.restores = s.outcomes["restores"]
	for _, h := range s.hosts { // an operator removes others' HEAD after a restore
		if s.server && h != at && s.rng.IntN(4) == 0 {
			h.head.Lose()
		} else if !s.server {
			h.restores = at.restores
		}
	}
	s.rewind(s.kept.seq)
}

// rewind resets the model to a record. Clients keep their answers.
func (s *sim) rewind(seq uint64) {
	s.batches = slices.DeleteFunc(s.batches, func(b durableBatch) bool { return b.next > seq })
	s.reference = nil
	clear(s.records)
	clear(s.equal)
	clear(s.damaged)
	s.highestAnswered = 0
	clear(s.restedBy) // other orders may get their ids
	clear(s.barred)   // a freeze or a revocation may be undone
	m := s.newModel()
	m.CancelAlls, m.Batches, m.ReadNonces = s.model.CancelAlls, s.model.Batches,
		s.model.ReadNonces
	s.model = m
	for _, b := range s.batches {
		if err := m.ApplyBatch(b.prev, b.next, b.data, func(*event.Record, string) {}); err != nil {
			s.violate("the records up to the backup at %d: %w", seq, err)
			return
		}
	}
	if m.Seq != seq {
		s.violate("a backup at %d is in the middle of a batch", seq)
	}
}

// A mailedCode is a code and everything that it was mailed for.
type mailedCode struct {
	text       string
	history    event.HistoryID
	withdrawal uint64
	issue      int
	account    uint32
	currency   uint16
	amount     money.Amount
	address    string
	timeUs     int64
}

// codeFor returns mostly the newest code of a withdrawal. Sometimes it returns an older one, also
// of an earlier history, another withdrawal's, or a wrong one.
func (s *sim) codeFor(r *rand.Rand, id uint64) mailedCode {
	list := s.codes[id]
	switch n := r.IntN(6); {
	case n == 0 || len(list) == 0:
		return mailedCode{text: "wrong"}
	case n == 1:
		return pick(r, list)
	case n == 2:
		if others := s.codes[s.withdrawalOf(r, 0, event.WithdrawalNew)]; len(others) > 0 {
			return pick(r, others)
		}
	}
	return list[len(list)-1]
}

// checkCode checks that a code confirmed the withdrawal that it was mailed for.
func (s *sim) checkCode(q *played, seq uint64) {
	w := s.model.Withdrawals[q.id]
	want := mailedCode{q.code.text, s.model.History, w.ID, w.Issue, w.Account, w.Currency, w.Amount,
		w.Address, w.TimeUs}
	if q.code != want {
		s.violate(
			"record %d confirms withdrawal %d with the code of another, or of another history: "+
				"%+v, not %+v",
			seq, w.ID, q.code, want)
	}
}

// mailed checks a mail that has arrived.
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
	w := &m.Withdrawal
	if first := s.model.Withdrawals[w.ID].FirstIssue; m.history == s.model.History &&
		int(w.Issue) < first {
		s.violate(
			"engine %d mails code %d for withdraw %d, and in this history the first that is good "+
				"is %d",
			l.number, w.Issue, w.ID, first)
	}
	s.codes[w.ID] = append(s.codes[w.ID],
		mailedCode{m.Code, m.history, w.ID, int(w.Issue), w.Account, w.Currency, w.Amount,
			w.Address, w.TimeUs})
	if !l.engine.codeMatches(w, m.Code) {
		s.violate("engine %d mails a code for withdraw %d that does not fit it", l.number, w.ID)
	}
	for _, what := range slices.Sorted(maps.Keys(boundTo)) {
		other := *w
		if boundTo[what](&other); l.engine.codeMatches(&other, m.Code) {
			s.violate("the code of withdrawal %d is good for one with another %s", w.ID, what)
		}
	}
	other := m.history
	other[0]++
	if l.engine.sealer.CodeFits(other, w, m.Code) {
		s.violate("the code of withdrawal %d is good in another history", w.ID)
	}
}

// boundTo are changes of a withdrawal that its code must not survive.
var boundTo = map[string]func(*state.Withdrawal){
	"id": func(w *state.Withdrawal) { w.ID++ }, "issue": func(w *state.Withdrawal) { w.Issue++ },
	"account":  func(w *state.Withdrawal) { w.Account++ },
	"currency": func(w *state.Withdrawal) { w.Currency++ },
	"amount":   func(w *state.Withdrawal) { w.Amount++ },
	"address":  func(w *state.Withdrawal) { w.Address += "x" },
	"time":     func(w *state.Withdrawal) { w.TimeUs++ },
}
