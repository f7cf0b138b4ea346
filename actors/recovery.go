package actors

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/metrics"
	"exchange/actors/owner"
	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/state"
	"exchange/persistence"
)

// A Base holds the parts below an engine: a store that this process owns, its state, and the keys
// that open its secrets.
type Base struct {
	Hold   *owner.Hold
	Side   *committed.Side
	Meter  *metrics.Engine
	Sealer *seal.Sealer
	Keys   *Keyring
	// Cluster is the node whose running fold it uses; nil: recovered for this engine alone.
	Cluster *Cluster
	last    uint64 // the journal's last sequence
}

// A Cluster is the part that an engine shares with its node.
type Cluster struct {
	Replica persistence.Replica
	Work    *committed.Workers
	// Settle waits until everything released is folded.
	Settle func() error
}

// recoverState folds snapshot and journal of a store that this process owns. It skips nothing: an
// invalid record is an error with its position.
func recoverState(ctx context.Context, o *Options, own *owner.Hold) (*Base, error) {
	r := &Base{Hold: own, Meter: metrics.NewEngine()}
	var err error
	r.Side, err = committed.Recover(ctx,
		&committed.RecoverOptions{Store: o.Store, Last: own.Last, Log: o.Log,
			Meter: r.Meter, Snapshot: o.Snapshot, Retention: o.Retention,
			StepRows: o.Tests.StepRows,
			Candles:  o.Tests.Candles, OwnBytes: o.Limits.OwnBytes, Preview: o.seen})
	o.seen = nil
	if errors.Is(err, persistence.ErrCorrupt) {
		// Another process may have taken over since, and written in between: then nothing is
		// damaged.
		if lost := o.Store.Check(ctx, own.Token); errors.Is(lost, persistence.ErrFenced) {
			return nil, fmt.Errorf("while starting: %w", lost)
		}
	}
	return r, err
}

// reconcile writes the records that the configuration needs, and a new history's id if needed.
func (r *Base) reconcile(ctx context.Context, o *Options) error {
	records, err := Configured(r.Side.State(), o)
	if err != nil {
		return err
	}
	before, next := r.Side.State().History(), r.newHistory(o)
	if len(next) > 0 && r.last > 0 {
		// a crash may leave either in the store
		if err := o.Remember(before, next[0].History); err != nil {
			return err
		}
	}
	if err := r.append(ctx, o, append(next, records...)); err != nil {
		return err
	}
	own, err := origin(ctx, o.Store)
	if err != nil {
		return err
	}
	return o.Remember(append(own, r.Side.State().History())...)
}

// Remember stores histories of the store.
func (o *Options) Remember(ids ...persistence.HistoryID) (err error) {
	for i := 0; o.Histories != nil && i < len(ids) && err == nil; i++ {
		err = o.Histories.Remember(ids[i])
	}
	return err
}

// CheckHistory returns ErrAbsent or ErrForeign if the store cannot be the one that this host
// remembers. seq is the journal's last sequence; has contains the histories up to it and the
// store's own id.
func (o *Options) CheckHistory(seq uint64, has []persistence.HistoryID) error {
	if o.Histories == nil {
		return nil
	}
	known, err := o.Histories.Known()
	switch {
	case err != nil || len(known) == 0:
		return err
	case seq == 0 && o.NewExchange:
		return o.Histories.Forget()
	case seq == 0:
		return fmt.Errorf("%w: %v is empty, and this data folder expects history %x there: "+
			"bring its disk or its files back; serve --new begins a new exchange",
			persistence.ErrAbsent, o.Store, known[len(known)-1])
	case !slices.ContainsFunc(has, func(id persistence.HistoryID) bool {
		return slices.Contains(known, id)
	}):
		return foreignError(o.Store, has, known)
	}
	return nil
}

// foreignError reports a store other than the remembered one.
func foreignError(store persistence.Store, has, known []persistence.HistoryID) error {
	return fmt.Errorf("%w: %v has history %x, and this data folder expects history %x there: "+
		"name the store or the data folder that belongs to the other; if another host has "+
		"restored a backup there, remove owner.id from this data folder", persistence.ErrForeign,
		store, has[len(has)-1], known[len(known)-1])
}

// origin returns the store's own id, if it has one.
func origin(ctx context.Context, store persistence.Store) ([]persistence.HistoryID, error) {
	beat, err := store.Beat(ctx)
	var id persistence.HistoryID
	if n, e := hex.Decode(id[:], []byte(beat.Origin)); err != nil || e != nil || n != len(id) {
		return nil, err
	}
	return []persistence.HistoryID{id}, nil
}

// newHistory returns the record that begins a history. A new store needs one, and a restored store,
// which has no id until its first start. So does a store without HEAD, as it may be an older copy,
// and one whose codes were mailed under a lost server key. It is the start's first record, and the
// first append writes a missing HEAD. So a crash before either leaves the store unchanged.
func (r *Base) newHistory(o *Options) []event.Record {
	s := r.Side.State()
	before, headless, keyless := s.History(), o.Store.HeadMissing(), len(r.lostKeys()) > 0
	if !before.IsZero() && !headless && !keyless {
		return nil
	}
	begin := event.Record{Kind: event.KindHistory, TimeUs: max(o.nowUs(), s.TimeUs())}
	rand.Read(begin.History[:])
	if s.Seq() == 0 {
		o.Log.Warn("the store is empty: a new exchange begins", "store", o.Store.String(),
			"history", begin.History.String())
	} else {
		o.Log.Warn("a new history begins: codes mailed earlier for withdrawals have expired",
			"restored", before.IsZero(), "head_missing", headless, "key_lost", keyless, "history",
			begin.History.String())
	}
	return []event.Record{begin}
}

// Configured returns the records for the configuration's new currencies and pairs, which give them
// their numbers. The configuration must contain each pair with orders, and each currency with
// balances.
func Configured(s *state.State, o *Options) ([]event.Record, error) {
	numbers := make(map[string]uint16)
	for i, c := range s.Currencies() {
		numbers[c.Code] = uint16(i + 1)
	}
	known := make(map[string]bool)
	var records []event.Record
	now := max(o.nowUs(), s.TimeUs())
	for i := range o.Currencies {
		c := &o.Currencies[i]
		known[c.Code] = true
		if c.Number = numbers[c.Code]; c.Number == 0 {
			if len(numbers) == math.MaxUint16 {
				return nil, fmt.Errorf("%w: there are %d currencies already", ErrConfig,
					len(numbers))
			}
			c.Number = uint16(len(numbers) + 1)
			numbers[c.Code] = c.Number
			records = append(records, event.Record{Kind: event.KindCurrency, TimeUs: now,
				Currency: event.Currency{Number: c.Number, Code: c.Code}})
		}
	}
	for i, c := range s.Currencies() {
		if !known[c.Code] && !c.Held().IsZero() {
			return nil,
				fmt.Errorf(
					"%w: currency %s (number %d) is not configured, but accounts hold %v of it: "+
						"put it back", ErrConfig, c.Code, i+1, c.Held())
		}
	}
	pairs := make(map[string]*directory.PairRules)
	for i := range o.Pairs {
		pairs[o.Pairs[i].Name] = &o.Pairs[i]
	}
	for _, p := range s.Pairs() {
		rules := pairs[p.Name]
		if rules == nil {
			if n := p.OpenOrders(); n > 0 {
				return nil,
					fmt.Errorf(
						"%w: pair %s is not configured, but %d orders are open in it: put it "+
							"back, cancel them first", ErrConfig, p.Name, n)
			}
			continue
		}
		if numbers[rules.Base] != p.Base || numbers[rules.Quote] != p.Quote {
			return nil, fmt.Errorf("%w: pair %s is configured of %s and %s, it began as another",
				ErrConfig, p.Name, rules.Base, rules.Quote)
		}
		delete(pairs, p.Name)
	}
	if s.AccountByName(directory.FeeAccount) == nil &&
		slices.ContainsFunc(o.Pairs, func(p directory.PairRules) bool {
			return p.Fees != state.FeeRates{}
		}) {
		records = append(records, event.Record{Kind: event.KindAccount, TimeUs: now,
			Account: event.Account{ID: uint32(len(s.Accounts()) + 1), Name: directory.FeeAccount}})
	}
	return newPairs(s, o, pairs, numbers, records, now)
}

// newPairs adds the records of the pairs that the state lacks. numbers has the currencies' numbers.
func newPairs(s *state.State, o *Options, missing map[string]*directory.PairRules,
	numbers map[string]uint16, records []event.Record, now int64) ([]event.Record, error) {
	number := len(s.Pairs())
	for i := range o.Pairs {
		p := &o.Pairs[i]
		if missing[p.Name] == nil {
			continue
		}
		if number++; number > math.MaxUint16 {
			return nil, fmt.Errorf("%w: there are %d pairs already", ErrConfig, number-1)
		}
		records = append(records, event.Record{Kind: event.KindPair, TimeUs: now,
			NewPair: event.Pair{Number: uint16(number), Name: p.Name, Base: numbers[p.Base],
				Quote: numbers[p.Quote]}})
	}
	return records, nil
}

// precheck finds errors of the configuration and the keys before the start claims the store. So a
// process with a wrong configuration, or without the right key, does not stop the serving exchange.
// It folds the whole store, because the newest records count, too, and keeps that for the recovery,
// unless the start has to wait. sealer is nil if no key exists or is needed yet.
func precheck(ctx context.Context, o *Options) (sealer *seal.Sealer, err error) {
	sealer, missing := o.Sealer(true) // it makes no key: the store may contain sealed secrets
	if missing != nil && !errors.Is(missing, fs.ErrNotExist) {
		return nil, missing
	}
	if o.Store.Exclusive() {
		return sealer, nil // no other process serves, and recovery checks
	}
	for tries := 0; ; tries++ {
		o.seen, err = committed.NewPreview(ctx, o.Store)
		if !errors.Is(err, persistence.ErrCorrupt) ||
			tries == precheckTries {
			break // otherwise the owner may have replaced or trimmed the part being read
		}
		select {
		case <-ctx.Done():
		case <-time.After(foreseePause):
		}
	}
	if err != nil {
		return nil, fmt.Errorf("looking at the store before it is taken over: %w", err)
	}
	own, err := origin(ctx, o.Store)
	if err == nil {
		err = o.CheckHistory(o.seen.State().Seq(), append(own, o.seen.Histories()...))
	}
	if err != nil {
		return nil, err
	}
	return sealer, Fits(o.seen.State(), o, NewKeyring(sealer, o), missing)
}

const (
	precheckTries = 3 // after the first
	foreseePause  = 500 * time.Millisecond
)

// Fits returns why a state cannot be served with a configuration and a key. missing is the error
// for a missing key.
func Fits(s *state.State, o *Options, keys *Keyring, missing error) error {
	if keys.sealer == nil && len(s.Keys()) > 0 && !keys.SkipLost() {
		return missing
	}
	if err := checkServable(s, o, keys); err != nil {
		return err
	}
	_, err := Configured(s, o)
	return err
}

// checkServable returns an error for the first key whose secret cannot be opened, or that of
// Options.Check. A start calls it before it writes.
func checkServable(s *state.State, o *Options, keys *Keyring) error {
	if err := keys.openAll(s); err != nil {
		return err
	}
	if o.Check == nil {
		return nil
	}
	return o.Check(s, func(k *state.Key) ([]byte, error) {
		return openSecret(&k.Key, s.Account(k.Account).Name, keys.sealer)
	})
}

// lostKeys returns the API keys to revoke because no server key opens their secrets.
func (r *Base) lostKeys() (list []*state.Key) {
	if !r.Keys.SkipLost() {
		return nil
	}
	for _, k := range r.Side.State().Keys() {
		if r.Keys.lost(k) {
			list = append(list, k)
		}
	}
	return list
}

// revokeLost revokes the API keys of Options.RevokeLost. It may stop anywhere: a start with that
// option continues with the rest, and any other is refused.
func (r *Base) revokeLost(ctx context.Context, o *Options) error {
	lost := r.lostKeys()
	now := max(o.nowUs(), r.Side.State().TimeUs())
	var records []event.Record
	for _, k := range lost {
		records = append(records, event.Record{Kind: event.KindKeyRevoked, TimeUs: now,
			Operator:   revokeLostOperator,
			KeyRevoked: event.KeyRevoked{Number: k.Number, Lost: true}})
	}
	if err := r.appendAll(ctx, o, records); err != nil {
		return err
	}
	if r.Keys.requireAll(); len(lost) > 0 {
		o.Log.Warn("API keys were revoked, because no secret key opens what is sealed of them; "+
			"their owners get a mail, if there is an address", "keys", len(lost))
	}
	return nil
}

// revokeLostOperator replaces an operator's name in the records of revokeLost.
const revokeLostOperator = "a start that revokes lost keys"

// resealBatch bounds the records of one append of reseal.
const resealBatch = 500

// reseal seals with the server's first key the secrets of all API keys sealed with another. It is
// the second half of a rotation, and may stop anywhere: the next start continues.
func (r *Base) reseal(ctx context.Context, o *Options, sealer *seal.Sealer) error {
	s, n := r.Side.State(), 0
	now := max(o.nowUs(), s.TimeUs())
	var records []event.Record
	flush := func() error {
		n += len(records)
		err := r.append(ctx, o, records)
		records = records[:0]
		return err
	}
	for _, k := range s.Keys() {
		if k.Revoked || k.SealedBy == sealer.ID() {
			continue
		}
		secret, err := openSecret(&k.Key, s.Account(k.Account).Name, sealer)
		if err != nil {
			return err
		}
		resealed := k.Key
		resealed.SealedBy, resealed.Sealed = sealer.ID(), sealer.Seal(secret, resealed.Bound())
		if records = append(records, event.Record{Kind: event.KindKey, TimeUs: now,
			Key: resealed}); len(records) == resealBatch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if n > 0 {
		o.Log.Info("the secrets of API keys were sealed with the current key", "keys", n, "by",
			fmt.Sprintf("%016x", sealer.ID()))
	}
	return nil
}

// appendAll writes records of the start in chunks.
func (r *Base) appendAll(ctx context.Context, o *Options, records []event.Record) error {
	for some := range slices.Chunk(records, appendBatch) {
		if err := r.append(ctx, o, some); err != nil {
			return err
		}
	}
	return nil
}

// appendBatch bounds the records of one append of appendAll.
const appendBatch = 500

// append writes records of the start as one batch, and folds them.
func (r *Base) append(ctx context.Context, o *Options, records []event.Record) error {
	if len(records) == 0 {
		return nil
	}
	data := event.BeginBatch(nil)
	for i := range records {
		data = records[i].Append(data)
	}
	prev, next := r.last, r.last+uint64(len(records))
	data = event.EndBatch(data, r.Hold.Token.Epoch(), prev, uint32(len(records)))
	begin := time.Now()
	for said := false; ; said = true {
		err := o.Store.Append(ctx, r.Hold.Token, prev, next, data)
		if err == nil {
			break
		}
		if ctx.Err() != nil || persistence.Definite(err) {
			return fmt.Errorf("writing the records of the start: %w", err)
		}
		if time.Since(begin) > o.Timing.StallMax {
			// the cause may be temporary
			return fmt.Errorf("writing the records of the start: %w after %v: %v", ErrStalled,
				o.Timing.StallMax, err)
		}
		if !said {
			o.Log.Warn("the store does not take the records of the start, trying again", "error",
				err, "records", len(records))
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryMost):
		}
	}
	r.last = next
	if r.Cluster != nil {
		r.Side.Release(data, next)
		return r.Cluster.Settle()
	}
	return r.Side.Fold(prev, next, data)
}

// Prepare writes the records of the start: those required by the configuration, new histories, and
// revoked or resealed keys.
func (r *Base) Prepare(ctx context.Context, o *Options) error {
	r.last = r.Hold.Last
	if err := r.reconcile(ctx, o); err != nil {
		return err
	}
	if err := r.appendAll(ctx, o, disconnected(r.Side.State(), o)); err != nil {
		return err
	}
	if err := r.revokeLost(ctx, o); err != nil {
		return err
	}
	return r.reseal(ctx, o, r.Sealer)
}

// disconnected returns the records that set the due times of switches whose sessions were alive at
// the previous engine's end: the start counts as these sessions' end.
func disconnected(s *state.State, o *Options) (records []event.Record) {
	now := o.nowUs()
	for _, a := range s.Accounts() {
		for _, armed := range a.Switches() {
			if armed.DueUs == 0 {
				armed.DueUs = now + int64(armed.Seconds)*1e6
				records = append(records, event.Record{Kind: event.KindSwitch, TimeUs: now,
					Switch: armed})
			}
		}
	}
	return records
}
