package codec

import (
	"fmt"
	"slices"

	"exchange/core/trading"
	"exchange/persistence"
)

// Bounds of written values. They are far above the values of the exchange. A value beyond them is a
// fault of the caller, and the error names it.
const (
	// ids and sequences are exact as doubles, for clients in JavaScript and for Redis scripts
	MaxID    = 1<<53 - 1
	MaxBatch = 64 << 20 // bytes of one journal batch
	maxName  = 255      // bytes of an account's name, a public key, an owner
	maxCode  = 32       // bytes of a currency code
	maxText  = 1024     // bytes of a deposit's reference
	maxKinds = 4096     // currencies of one wallet

	maxAddress  = 256 // bytes of a withdrawal's address
	maxDetails  = 1024
	maxOperator = 256 // bytes of an action
	maxWhat     = 4096

	// MaxClientID is the longest client_order_id, or client id of a withdrawal, in bytes.
	MaxClientID = 36
)

// CheckEngine refuses an engine id that cannot be part of a key.
func CheckEngine(engine string) error {
	if len(engine) == 0 || len(engine) > 64 {
		return fmt.Errorf("engine id %q: it must have 1 to 64 characters", engine)
	}
	for _, c := range []byte(engine) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return fmt.Errorf("engine id %q: only a-z, 0-9, '.', '_' and '-' are possible", engine)
		}
	}
	return nil
}

// CheckClaim refuses a claim whose texts cannot be stored. id is the unique part of its token.
func CheckClaim(c persistence.Claim) (id string, err error) {
	switch {
	case len(c.Owner) > maxName:
		return "", fmt.Errorf("owner text of %d bytes: at most %d are possible",
			len(c.Owner), maxName)
	case c.ID == "":
		return persistence.NewID(), nil
	case !IsUnique(c.ID):
		return "", fmt.Errorf("%w: an owner's id %q is not 32 hexadecimal digits",
			persistence.ErrInvalid, c.ID)
	}
	return c.ID, nil
}

// CheckBatch refuses a batch that no journal can hold.
func CheckBatch(prev, next uint64, batch []byte) error {
	switch {
	case next <= prev || next > MaxID:
		return fmt.Errorf("%w: batch (%d, %d]: its end must be above its start and below 2^53",
			persistence.ErrInvalid, prev, next)
	case len(batch) == 0 || len(batch) > MaxBatch:
		return fmt.Errorf("%w: batch (%d, %d] has %d bytes: it must have 1 to %d",
			persistence.ErrInvalid, prev, next, len(batch), MaxBatch)
	}
	return nil
}

// CheckWrites refuses writes that no store can hold.
func CheckWrites(from, to uint64, w *persistence.Writes) error {
	if from > to || to > MaxID {
		return fmt.Errorf(
			"%w: apply from %d to %d: the end must not be below the start, nor above 2^53",
			persistence.ErrInvalid, from, to)
	}
	rows := [...]int{len(w.Wallets), len(w.Trades), len(w.Orders), len(w.Deposits),
		len(w.Withdrawals), len(w.Candles), len(w.Actions), len(w.Nonces)}
	if from == to && slices.Max(rows[:len(rows)-1]) > 0 {
		return fmt.Errorf("%w: apply at %d does not move the watermark: it may hold nonces only",
			persistence.ErrInvalid, from)
	}
	if n := slices.Max(rows[:]); n > persistence.MaxRows {
		return fmt.Errorf(
			"%w: apply from %d to %d holds %d rows of one kind: at most %d are possible",
			persistence.ErrInvalid, from, to, n, persistence.MaxRows)
	}
	for i := range w.Wallets {
		if err := checkWallet(&w.Wallets[i]); err != nil {
			return err
		}
	}
	for i := range w.Nonces {
		if n := len(w.Nonces[i].Key); n == 0 || n > maxName {
			return fmt.Errorf("%w: a nonce's key has %d bytes: it must have 1 to %d",
				persistence.ErrInvalid, n, maxName)
		}
	}
	for i := range w.Trades {
		if err := checkTrade(&w.Trades[i]); err != nil {
			return err
		}
	}
	for i := range w.Orders {
		if err := checkOrder(&w.Orders[i]); err != nil {
			return err
		}
	}
	for i := range w.Deposits {
		if err := checkDeposit(&w.Deposits[i]); err != nil {
			return err
		}
	}
	for i := range w.Withdrawals {
		if err := checkWithdrawal(&w.Withdrawals[i]); err != nil {
			return err
		}
	}
	for i := range w.Candles {
		if err := checkCandle(&w.Candles[i]); err != nil {
			return err
		}
	}
	for i := range w.Actions {
		if err := checkAction(&w.Actions[i]); err != nil {
			return err
		}
	}
	return nil
}

func checkTrade(t *persistence.Trade) error {
	if t.Price < 0 || t.Amount < 0 || t.TakerSide != trading.Buy && t.TakerSide != trading.Sell {
		return fmt.Errorf("%w: trade %d: price %d, amount %d, side %d are not those of a trade",
			persistence.ErrInvalid, t.ID, int64(t.Price), int64(t.Amount), t.TakerSide)
	}
	return checkID("trade", t.ID)
}

func checkOrder(o *persistence.Order) error {
	if o.Status != trading.StatusCancelled && o.Status != trading.StatusDone {
		return fmt.Errorf("%w: order %d has status %d: only closed orders are history",
			persistence.ErrInvalid, o.ID, o.Status)
	}
	if o.Price < 0 || o.Amount < 0 || o.Remaining < 0 ||
		o.Side != trading.Buy && o.Side != trading.Sell || o.ClosedSeq > MaxID {
		return fmt.Errorf(
			"%w: order %d: price %d, amount %d, remaining %d, side %d, sequence %d are not those "+
				"of an order", persistence.ErrInvalid,
			o.ID, int64(o.Price), int64(o.Amount), int64(o.Remaining), o.Side, o.ClosedSeq)
	}
	if len(o.ClientID) > MaxClientID {
		return fmt.Errorf("%w: order %d: client_order_id of %d bytes, at most %d are possible",
			persistence.ErrInvalid, o.ID, len(o.ClientID), MaxClientID)
	}
	if _, ok := o.Instructed.Open(); !ok {
		return fmt.Errorf("%w: order %d: its instructions of %d bytes cannot be read",
			persistence.ErrInvalid, o.ID, len(o.Instructed))
	}
	return checkID("order", o.ID)
}

func checkDeposit(p *persistence.Deposit) error {
	if p.Amount < 0 || len(p.Reference) > maxText {
		return fmt.Errorf("%w: deposit %d: amount %d, reference of %d bytes (at most %d)",
			persistence.ErrInvalid, p.ID, int64(p.Amount), len(p.Reference), maxText)
	}
	return checkID("deposit", p.ID)
}

func checkWithdrawal(d *persistence.Withdrawal) error {
	switch d.Status {
	case persistence.WithdrawalApproved, persistence.WithdrawalRefused,
		persistence.WithdrawalCancelled, persistence.WithdrawalAdjusted:
	default:
		return fmt.Errorf(
			"%w: withdrawal %d has status %d: only closed ones are history",
			persistence.ErrInvalid, d.ID, d.Status)
	}
	if d.Amount < 0 || d.ClosedSeq > MaxID || len(d.Address) > maxAddress ||
		len(d.Details) > maxDetails || len(d.ClientID) > MaxClientID {
		return fmt.Errorf(
			"%w: withdrawal %d: amount %d, sequence %d, address of %d bytes (at most %d), details "+
				"of %d (at most %d), client id of %d (at most %d)", persistence.ErrInvalid,
			d.ID, int64(d.Amount), d.ClosedSeq, len(d.Address), maxAddress, len(d.Details),
			maxDetails, len(d.ClientID), MaxClientID)
	}
	return checkID("withdrawal", d.ID)
}

func checkCandle(c *persistence.Candle) error {
	if c.Time < 0 || c.Time > MaxID || c.Open < 0 || c.High < 0 || c.Low < 0 || c.Close < 0 {
		return fmt.Errorf(
			"%w: candle of pair %d, frame %d, time %d: prices %d, %d, %d, %d are not those of a "+
				"candle", persistence.ErrInvalid,
			c.Pair, c.Frame, c.Time, int64(c.Open), int64(c.High), int64(c.Low), int64(c.Close))
	}
	return nil
}

func checkAction(a *persistence.Action) error {
	if len(a.Operator) > maxOperator || len(a.What) > maxWhat {
		return fmt.Errorf("%w: action %d: who of %d bytes (at most %d), what of %d (at most %d)",
			persistence.ErrInvalid, a.Seq, len(a.Operator), maxOperator, len(a.What), maxWhat)
	}
	return checkID("action", a.Seq)
}

func checkID(kind string, id uint64) error {
	if id == 0 || id > MaxID {
		return fmt.Errorf("%w: %s id %d: it must be above 0 and below 2^53", persistence.ErrInvalid,
			kind, id)
	}
	return nil
}

// checkWallet refuses names and codes that are unsafe in a key or a field of a Redis hash.
func checkWallet(w *persistence.Wallet) error {
	if len(w.Name) == 0 || len(w.Name) > maxName || len(w.Holdings) > maxKinds || w.Seq > MaxID {
		return fmt.Errorf(
			"%w: wallet of account %d: name of %d bytes (1 to %d), %d holdings (at most %d), "+
				"sequence %d", persistence.ErrInvalid,
			w.Account, len(w.Name), maxName, len(w.Holdings), maxKinds, w.Seq)
	}
	for i := range w.Holdings {
		code := w.Holdings[i].Currency
		if len(code) == 0 || len(code) > maxCode || code == FieldAccount || code == FieldSeq ||
			code == FieldCheck {
			return fmt.Errorf("%w: wallet of account %d: %q is no currency code",
				persistence.ErrInvalid, w.Account, code)
		}
	}
	return nil
}

// Fields of a wallet beside its currencies, in the store that people may read.
const (
	FieldAccount = "account"
	FieldSeq     = "seq"
	FieldCheck   = "check"
)

// CheckTrades refuses an invalid query.
func CheckTrades(q *persistence.TradeQuery) error {
	if q.MySide != 0 && q.Account == 0 {
		return fmt.Errorf("%w: a trade query for one's own side needs an account",
			persistence.ErrInvalid)
	}
	if (q.SinceUs != 0 || q.UntilUs != 0) && q.Pair == 0 {
		return fmt.Errorf("%w: a trade query for a time needs a pair", persistence.ErrInvalid)
	}
	return checkOffset(q.Offset)
}

// CheckDeposits refuses an invalid query.
func CheckDeposits(q *persistence.DepositQuery) error { return checkOffset(q.Offset) }

// CheckWithdrawals refuses an invalid query.
func CheckWithdrawals(q *persistence.WithdrawalQuery) error { return checkOffset(q.Offset) }

// NoReference returns ErrNotFound for a reference that no deposit up to watermark has, and ErrGap
// if the store's own watermark is below that.
func NoReference(reference string, stored, watermark uint64) error {
	if stored < watermark {
		return fmt.Errorf(
			"%w: finding a reference up to sequence %d, the projections are at %d",
			persistence.ErrGap, watermark, stored)
	}
	return fmt.Errorf("a deposit with reference %q: %w", reference, persistence.ErrNotFound)
}

// CheckClient refuses an order that is in the index under another client id.
func CheckClient(o *persistence.Order, client string) error {
	if o.ClientID != client {
		return fmt.Errorf("%w: order %d of account %d has the client id %q, and the index has it "+
			"under %q", persistence.ErrCorrupt, o.ID, o.Account, o.ClientID, client)
	}
	return nil
}

// CheckBegin refuses a sequence that no journal could start at.
func CheckBegin(seq uint64) error {
	if seq > MaxID {
		return fmt.Errorf("%w: a journal that begins at %d: it must be below 2^53",
			persistence.ErrInvalid, seq)
	}
	return nil
}

// NotEmpty returns the error of a store that must be empty to begin a journal. what names its
// content.
func NotEmpty(what string) error {
	return fmt.Errorf("%w: the store is not empty, it has %s; restore into a new one",
		persistence.ErrInvalid, what)
}

func checkOffset(n int) error {
	if n < 0 {
		return fmt.Errorf("%w: offset %d is negative", persistence.ErrInvalid, n)
	}
	return nil
}

// WithdrawalMatches reports whether a withdrawal passes the query's filters (not Before and
// Offset).
func WithdrawalMatches(d *persistence.Withdrawal, q *persistence.WithdrawalQuery) bool {
	return (q.Account == 0 || d.Account == q.Account) &&
		(q.Currency == 0 || d.Currency == q.Currency) &&
		(q.Status == 0 || d.Status == q.Status || q.Status == persistence.WithdrawalApproved &&
			d.Status == persistence.WithdrawalAdjusted) &&
		(q.MaxSeq == 0 || d.ClosedSeq <= q.MaxSeq)
}
