package committed

import (
	"context"
	"fmt"
	"time"

	"exchange/actors/directory"
	"exchange/persistence"
)

// A Client is the client that asks for a list.
type Client struct {
	Key     *directory.Key // whose nonce the list takes; nil: the list is public
	Nonce   uint64
	Address uint64 // of a client without a key, as counted by limits
}

// scanClient returns the account or the address that limits the client's long queries.
func (a *Client) scanClient() scanClient {
	if a.Key != nil {
		return scanClient{account: a.Key.Account.ID}
	}
	return scanClient{address: a.Address}
}

// A visit is one use of the door. It holds a slot for reads in flight, and one of its account if it
// is signed, until the store has answered too. So slots bound the queries at a slow store, and an
// orderly stop waits for them.
type visit struct {
	door     *Door
	by       Client
	followUp bool   // it completes the answer to a command
	paced    bool   // its long queries take turns with those of other clients
	signed   bool   // the nonce and the account's slot are taken
	slot     bool   // the account's slot is held
	scan     scan   // of a paced visit
	inQuery  bool   // a query of the store is running
	after    uint64 // lowest sequence at which its questions may be answered
	// horizon of the newest answer, if the history is remote
	horizon *persistence.Horizon
}

// enter begins the visit of a client.
func (d *Door) enter(by Client) (visit, error) {
	after, err := d.beginRead(false)
	return visit{door: d, by: by, paced: true, after: after,
		scan: scan{turns: d.side.scans, client: by.scanClient()}}, err
}

// enterOperator begins the visit of an operator.
func (d *Door) enterOperator() (visit, error) {
	after, err := d.beginRead(false)
	return visit{door: d, after: after}, err
}

// enterFollowUp begins a visit that completes the answer to a command.
func (d *Door) enterFollowUp() (visit, error) {
	_, err := d.beginRead(true)
	return visit{door: d, followUp: true, after: d.host.Answered()}, err
}

// end releases the slots.
func (v *visit) end() {
	v.scan.end()
	if v.slot {
		v.door.private.end(v.by.Key.Account.ID)
	}
	v.door.endRead(v.followUp)
}

// ask asks a question and waits for its answer. The first question of a signed visit takes the
// nonce. After ErrTimeout the caller must not use the question, because an actor may still fill it
// in. No query may be running, because it may hold a turn that others wait for.
func (v *visit) ask(q Question) error {
	if v.inQuery {
		panic(fmt.Sprintf("BUG: a visit asks %T while its query of the store is running", q))
	}
	d := v.door
	r := newRead(d, q, v.followUp)
	r.after = v.after
	throughWallet := v.by.Key != nil && !v.signed
	if v.by.Key != nil {
		if o, ok := q.(accountScoped); ok {
			o.of(v.by.Key.Account.ID)
		}
		if throughWallet {
			if err := v.sign(r); err != nil {
				r.free()
				return err
			}
		}
	}
	if throughWallet {
		d.host.ToWallet(v.by.Key.Account, r)
	} else {
		d.side.Send(r)
	}
	if !d.scheduler.Await(r.reply, d.dead, r.timer, d.patience()) {
		if r.leave() {
			d.meter.UnansweredReads.Add(1)
			return ErrTimeout
		}
		<-r.reply // it arrived just now
	}
	v.slot = v.slot || r.slot
	err := r.Err
	v.horizon = r.horizon
	r.free()
	return err
}

func (v *visit) history() persistence.History {
	d := v.door
	if v.horizon == nil {
		return d.history
	}
	return countingHistory{d.side.remoteHistory.At(v.horizon), d.meter}
}

// sign makes a read the visit's signed read, which goes through its account's wallet.
func (v *visit) sign(r *Read) error {
	d, key := v.door, v.by.Key
	if err := d.host.Confirmed(); err != nil {
		return err
	}
	if most := d.limits.PerAccount; most > 0 {
		if !d.private.begin(key.Account.ID, most) {
			return d.host.CountRefusal(RefusedAccountBusy)
		}
		r.slot = true
	}
	r.key, r.nonce, v.signed = key, v.by.Nonce, true
	return nil
}

// storeTimeout bounds one query of the store.
const storeTimeout = 5 * time.Second

// query makes one query of the history as of the newest answer, or later. A remote history is cut
// at that answer. A long query of a client takes turns with others. A visit has one query at a
// time: a second one would wait for the turn of the first.
func (v *visit) query(ask func(ctx context.Context, h persistence.History) error) error {
	if v.inQuery {
		panic("BUG: a visit asks the store while its query of the store is running")
	}
	v.inQuery = true
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer func() {
		cancel()
		v.scan.releaseTurn()
		v.inQuery = false
	}()
	if v.paced {
		patient := ctx
		ctx = persistence.WithPace(ctx, func() error { return v.scan.takeTurn(patient) })
	}
	return ask(ctx, v.history())
}

// A HistoryError is an error of the store's part of a list.
type HistoryError struct{ cause error }

func (e *HistoryError) Error() string { return e.cause.Error() }

// NoHistory returns a HistoryError for a cause outside the store.
func NoHistory(cause error) *HistoryError { return &HistoryError{cause} }

// Unwrap returns the store's error.
func (e *HistoryError) Unwrap() error { return e.cause }
