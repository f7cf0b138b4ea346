package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"exchange/core/money"
	"exchange/core/state"
	"exchange/persistence"
)

// Each Apply takes up to loadRows rows, or loadBytes of the backup. Both bounds keep it below
// persistence.MaxRows, and the steps few: the watermark moves with each.
const (
	loadRows  = 50_000
	loadBytes = 32 << 20
)

// ErrNotEmpty: a backup is restored into an empty store only.
var ErrNotEmpty = errors.New("the store is not empty")

// empty returns nil if the store was never written to, otherwise ErrNotEmpty. It does not become
// the owner, so an exchange that uses the store continues.
func empty(ctx context.Context, store persistence.Store) error {
	watermark, err := store.Watermark(ctx)
	if err != nil {
		return err
	}
	if watermark != 0 {
		return fmt.Errorf("%w: it has a history up to sequence %d", ErrNotEmpty, watermark)
	}
	switch seq, image, err := store.LoadSnapshot(ctx, 0); {
	case err == nil:
		return errors.Join(fmt.Errorf("%w: it has a snapshot at sequence %d", ErrNotEmpty, seq),
			image.Close())
	case !errors.Is(err, persistence.ErrNoSnapshot):
		return err
	}
	switch _, next, _, err := persistence.First(ctx, store, 0); {
	case errors.Is(err, persistence.ErrCorrupt): // as one that begins late is
		//nolint:errorlint // err is no damage here
		return fmt.Errorf("%w: it has a journal, perhaps of an unfinished "+
			"restore: %v", ErrNotEmpty, err)
	case err == nil && next != 0:
		return fmt.Errorf("%w: it has a journal", ErrNotEmpty)
	default:
		return err
	}
}

// A Backup is a backup whose state was read. Load reads the rest of it; Close frees it.
type Backup struct {
	reader *reader
	state  *state.State
	copies bool // the store continues the same history
}

// Open reads the description of a backup and its state, which must be whole and pass its own
// checks. Once Load has read the whole backup, by must find it authentic; nil: no proof is
// required. An error wraps ErrDamaged.
func Open(r io.Reader, by persistence.Authority) (*Backup, error) {
	in, err := open(r, by)
	if err != nil {
		return nil, err
	}
	b := &Backup{reader: in}
	var image []byte
	if err = in.image(func(piece []byte) { image = append(image, piece...) }); err == nil {
		err = b.decode(image)
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// Close frees the backup.
func (b *Backup) Close() { b.reader.close() }

// State returns the exchange's at the backup's sequence.
func (b *Backup) State() *state.State { return b.state }

func (b *Backup) decode(image []byte) (err error) {
	info := &b.reader.info
	s, err := state.Decode(image)
	if err == nil && s.Seq() != info.Sequence {
		err = fmt.Errorf("it is of sequence %d, its state of %d", info.Sequence, s.Seq())
	}
	if err == nil && (len(s.Accounts()) != info.Accounts || len(s.Keys()) != info.Keys) {
		err = fmt.Errorf("it is of %d accounts and %d keys, its state of %d and %d",
			info.Accounts, info.Keys, len(s.Accounts()), len(s.Keys()))
	}
	if err == nil && s.History().String() != info.History {
		err = fmt.Errorf("it is of history %s, its state of %v", info.History, s.History())
	}
	if err == nil {
		err = s.Check()
	}
	b.state = s
	return damaged(err)
}

// Load fills an empty store, once. The stored state has no history's id, because the store begins a
// new history. Verify the same bytes before. After an error other than ErrNotEmpty the store may be
// half filled: discard it. Load reports to progress the number of rows so far.
func (b *Backup) Load(ctx context.Context, store persistence.Store,
	progress func(rows int)) (*Info, error) {
	return b.load(ctx, store, progress, loadRows)
}

// Copy is Load for another node of the same cluster: the store continues the same history.
func (b *Backup) Copy(ctx context.Context, store persistence.Store) (*Info, error) {
	b.copies = true
	return b.Load(ctx, store, func(int) {})
}

func (b *Backup) load(ctx context.Context, store persistence.Store, progress func(rows int),
	step int) (*Info, error) {
	// reports a store that is not empty before it reads the store's owner
	if err := empty(ctx, store); err != nil {
		return nil, err
	}
	seen, err := store.Beat(ctx)
	if err != nil {
		return nil, err
	}
	// the claim is refused if another process has come since
	if err := empty(ctx, store); err != nil {
		return nil, err
	}
	token, last, err := store.Acquire(ctx, persistence.Claim{Owner: "restore", After: &seen})
	if err != nil {
		return nil, err
	}
	if last != 0 { // another process has written meanwhile
		return nil, fmt.Errorf("%w: its journal ends at sequence %d", ErrNotEmpty, last)
	}
	l := &loader{Backup: b, ctx: ctx, store: store, token: token, progress: progress, step: step,
		deposited: make([]money.Balance, len(b.state.Currencies()))}
	for more := true; more; {
		if more, err = b.reader.next(); err == nil && more {
			err = l.add(&b.reader.row)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := l.finish(); err != nil {
		return nil, err
	}
	return &b.reader.info, nil
}

type loader struct {
	*Backup
	ctx       context.Context
	store     persistence.Store
	token     persistence.Token
	progress  func(rows int)
	step      int // rows of one Apply
	begun     bool
	watermark uint64
	pending   persistence.Writes
	n, total  int
	bytes     int             // of these rows, in the backup's form
	deposited []money.Balance // of the rows so far, by currency-1
}

func (l *loader) add(r *rows) error {
	if err := l.note(r); err != nil {
		return err
	}
	r.addTo(&l.pending)
	l.n++
	l.total++
	l.bytes += len(l.reader.part)
	l.progress(l.total)
	if l.n < l.step && l.bytes < loadBytes {
		return nil
	}
	return l.apply(l.watermark + 1)
}

// note adds up a deposit. The deposit's row is the only sign that its reference was used.
func (l *loader) note(r *rows) error {
	if r.kind != partDeposit {
		return nil
	}
	d := &r.deposit
	if d.Currency == 0 || int(d.Currency) > len(l.deposited) {
		return fmt.Errorf("%w: deposit %d is of currency %d, which does not exist", ErrDamaged,
			d.ID, d.Currency)
	}
	total := &l.deposited[d.Currency-1]
	if *total = total.Add(d.Amount.Balance()); total.Cmp(money.MaxSupply) >= 0 {
		return fmt.Errorf("%w: its deposits are more than possible", ErrDamaged)
	}
	return nil
}

// checkDeposits refuses a backup that lacks deposits of its state: their references could be used
// again.
func (l *loader) checkDeposits() error {
	_, _, deposits := l.state.LastIDs()
	if n := l.reader.info.Rows[kindNames[partDeposit]]; uint64(n) != deposits {
		return fmt.Errorf("%w: it contains %d deposits, its state says %d", ErrDamaged, n, deposits)
	}
	for i, c := range l.state.Currencies() {
		if l.deposited[i] != c.Deposited {
			return fmt.Errorf("%w: its deposits of %s are %v in all, its state says %v",
				ErrDamaged, c.Code,
				l.deposited[i], c.Deposited)
		}
	}
	return nil
}

// begin makes the journal end where the backup does.
func (l *loader) begin() error {
	if l.begun {
		return nil
	}
	l.begun = true
	return l.store.Begin(l.ctx, l.token, l.reader.info.Sequence)
}

func (l *loader) apply(to uint64) error {
	if err := cmp.Or(l.ctx.Err(), l.begin()); err != nil {
		return err
	}
	if to > l.reader.info.Sequence {
		return fmt.Errorf("%w: more rows than %d records can have made", ErrDamaged,
			l.reader.info.Sequence)
	}
	if err := l.store.Apply(l.ctx, l.token, l.watermark, to, &l.pending); err != nil {
		return err
	}
	l.watermark, l.n, l.bytes = to, 0, 0
	l.pending.Reset()
	return nil
}

// finish writes the wallets and publishes the image: with it the store is whole.
func (l *loader) finish() error {
	if err := l.checkDeposits(); err != nil {
		return err
	}
	for _, a := range l.state.Accounts() {
		l.pending.Wallets = append(l.pending.Wallets, wallet(l.state, a))
		if len(l.pending.Wallets) == l.step {
			if err := l.apply(l.watermark + 1); err != nil {
				return err
			}
		}
	}
	if err := l.begin(); err != nil {
		return err
	}
	if l.reader.info.Sequence == 0 {
		return nil // a backup of nothing
	}
	if err := l.apply(l.reader.info.Sequence); err != nil {
		return err
	}
	if !l.copies {
		l.state.ForgetHistory() // the first start names its own
	}
	return l.store.SaveSnapshot(l.ctx, l.token, l.reader.info.Sequence,
		bytes.NewReader(l.state.AppendTo(nil)))
}

func wallet(s *state.State, a *state.Account) persistence.Wallet {
	w := persistence.Wallet{Account: a.ID, Name: a.Name, Seq: s.Seq()}
	for _, h := range a.Wallet.Holdings() {
		w.Holdings = append(w.Holdings,
			persistence.Holding{Currency: s.Currencies()[h.Currency-1].Code, Balance: h.Balance,
				Reserve: h.Reserve})
	}
	return w
}
