package actors

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/prove/spec"
)

// Batches: several commands of one nonce, decided together by their wallet.

// sendBatch sends two to five orders, cancels and amends together, which often concern each other.
func (s *sim) sendBatch(r *rand.Rand, l *life, key *directory.Key, nonce uint64) {
	var batch []*played
	var list []*Command
	name := fewIDs(r)
	for range 2 + r.IntN(4) {
		q := &played{l: l, key: key, account: key.Account.ID, nonce: nonce}
		c := s.drawItem(r, q, name)
		q.what, q.reply = "of a batch: "+q.what, c.reply
		batch, list = append(batch, q), append(list, c)
	}
	for _, q := range batch {
		q.batch = batch
	}
	s.outcomes["batches"]++
	s.spawn(l, fmt.Sprintf("%d.client %s %d: a batch of %d, %s", l.number, key.Public, nonce,
		len(batch), batch[0].what), func() {
		for _, q := range batch {
			s.begin(q)
		}
		at := spec.KeyNonce{Key: key.Number, Nonce: nonce}
		s.model.Batches[at] = max(s.model.Batches[at], len(batch))
		errs := make([]error, len(list))
		if err := l.engine.DoAll(list, errs); err != nil {
			for i := range errs {
				errs[i] = err
			}
		}
		s.answeredAll(batch, list, errs)
	})
}

// drawItem draws a command of a batch. Its commands share a client order id now and then.
func (s *sim) drawItem(r *rand.Rand, q *played, name event.ClientID) *Command {
	shared := r.IntN(2) == 0
	switch r.IntN(6) {
	case 0:
		if q.named = name; !shared {
			q.named = s.nameOf(r, q.l, q.account)
		}
		q.what = fmt.Sprintf("cancel %v", q.named)
		return NewCancel(q.key, q.nonce, 0, q.named)
	case 1:
		q.order = s.orderOf(r, q.account)
		q.what = fmt.Sprintf("cancel %d", q.order)
		return NewCancel(q.key, q.nonce, q.order, event.ClientID{})
	case 2:
		a := s.drawAmend(r, q.l, q.account)
		if shared {
			a.Order, a.ClientID = 0, name
		}
		q.amend, q.order, q.named = &a, a.Order, a.ClientID
		q.what = fmt.Sprintf("amend %+v", a)
		return NewAmend(q.key, q.nonce, &a)
	}
	if q.req = s.drawOrder(r, q.l.engine, q.account); shared {
		q.req.ClientID = name
	}
	q.what = fmt.Sprintf("%v %v at %v in %s, %v", q.req.Side, q.req.Amount, q.req.Price,
		q.req.Pair.Name, q.req.ClientID)
	if q.req.Special != nil {
		q.what += fmt.Sprintf(", %+v", *q.req.Special)
	}
	return NewOrder(q.key, q.nonce, &q.req)
}

// answeredAll checks the answers of a batch: each as its own command's, and all of them together.
// Key, nonce and freeze apply to all, and in each pair the accepted records come in the order of
// the commands.
func (s *sim) answeredAll(batch []*played, list []*Command, errs []error) {
	newest, refusals := map[uint16]uint64{}, map[uint8]int{}
	known := 0
	for i, q := range batch {
		c := list[i]
		if c == nil {
			s.answered(q, nil, errs[i])
			continue
		}
		known++
		r := c.Record()
		pair, accepted := r.Pair, c.Outcome() == Accepted
		if !accepted && r.Kind == event.KindRefusal {
			refusals[r.Refusal.Reason]++
		}
		at := s.records[string(r.Append(nil))]
		if s.answered(q, c, nil); !accepted || len(at) == 0 {
			continue
		}
		if at[0] < newest[pair] {
			s.violate("%s: record %d comes before record %d, which an earlier command of the "+
				"batch has in its pair", q.what, at[0], newest[pair])
		}
		newest[pair] = at[0]
	}
	for _, reason := range []uint8{event.RefusedKey, event.RefusedNonce, event.RefusedFrozen} {
		if n := refusals[reason]; n > 0 && n < known {
			s.violate("%d of %d commands of a batch are refused for %s", n, known,
				event.RefusalName(reason))
		}
	}
}

// isFirst reports whether a command is the first answered one of its batch.
func (q *played) isFirst() bool {
	return q == q.batch[slices.IndexFunc(q.batch, func(o *played) bool { return o.checked })]
}
