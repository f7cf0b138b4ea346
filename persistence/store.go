package persistence

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"exchange/core/money"
	"exchange/core/trading"
	"exchange/core/wire"
)

// The answers of a store. Every error of Append that is not Definite means "unknown: retry the same
// bytes".
var (
	// ErrFenced: another owner has acquired the engine. This one must stop, acknowledging nothing.
	ErrFenced = errors.New("fenced: another process owns this engine now")
	// ErrGap: the append does not follow the stored sequence. Either the store lost a tail or
	// another process wrote. The wrapped text names the cause.
	ErrGap = errors.New("gap: the journal does not end where this process left it")
	// ErrCorrupt: stored data fails its checks. The wrapped text names the place.
	ErrCorrupt = errors.New("corrupt: stored data fails its checks")
	// ErrNoSnapshot: there is no snapshot that old.
	ErrNoSnapshot = errors.New("no such snapshot")
	// ErrHeld: the engine's newest beat is not the one that a claim named: its owner is alive.
	ErrHeld = errors.New("held: the owner of this engine lives")
	// ErrLocked: another process holds the store (embedded stores only).
	ErrLocked = errors.New("the store is in use by another process")
	// ErrNotDurable: the store would acknowledge writes that a crash may lose.
	ErrNotDurable = errors.New("the store is not durable enough")
	// ErrNotInEffect: acknowledged writes are in memory alone until the store has written its file.
	// It may pass by itself.
	ErrNotInEffect = errors.New("the store's append-only file is not in effect")
	// ErrConfirmed: the owner was confirmed despite another fault, whose error it wraps, too.
	ErrConfirmed = errors.New("the store confirms its owner")
	// ErrUnsupported: the store's version lacks a needed feature.
	ErrUnsupported = errors.New("the store's version is not supported")
	// ErrInvalid: a row or an argument breaks the rules of this package: a fault of the caller.
	ErrInvalid = errors.New("BUG: cannot be stored or queried")
	// ErrAbsent: a store or an archive that existed before is missing. A disk may not be mounted.
	ErrAbsent = errors.New("nothing is there")
	// ErrForeign: the store's history differs from the one seen there before.
	ErrForeign = errors.New("another history is there")
	// ErrVersion: a file or a row is of a version that this program does not read, and is not
	// damaged. It is an ErrCorrupt, too, for callers that stop at both.
	ErrVersion error = versionError{}
	// ErrNotFound: no such row.
	ErrNotFound = errors.New("not found")
)

type versionError struct{}

func (versionError) Error() string { return "written by another version of the program" }

func (versionError) Is(target error) bool { return target == ErrCorrupt }

// Unreadable returns the error of stored data that cannot be decoded: ErrVersion if err wraps that
// or an wire.OtherVersion, otherwise ErrCorrupt.
func Unreadable(err error) error {
	if errors.Is(err, ErrVersion) {
		return err
	}
	kind := ErrCorrupt
	if _, other := errors.AsType[*wire.OtherVersion](err); other {
		kind = ErrVersion
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// OtherVersion returns the ErrVersion of something that is of version found, if this program reads
// one alone, and another.
func OtherVersion(found, reads uint64) error { return Unreadable(wire.Version(found, reads)) }

// Definite reports whether trying again is useless after an error of Append, Apply or SaveSnapshot:
// the write did not happen, and never will.
func Definite(err error) bool {
	return errors.Is(err, ErrFenced) || errors.Is(err, ErrGap) || errors.Is(err, ErrCorrupt) ||
		errors.Is(err, ErrInvalid)
}

// A Token is the proof of ownership that Acquire gives, "<n>:<unique>". n grows with each owner.
type Token string

// NewID returns 128 random bits as text: no other owner has the same.
func NewID() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// ID returns the token's unique part: the ID of its claim.
func (t Token) ID() string {
	_, id, _ := strings.Cut(string(t), ":")
	return id
}

// Epoch returns the token's counter.
func (t Token) Epoch() uint32 {
	n, _, _ := strings.Cut(string(t), ":")
	e, _ := strconv.ParseUint(n, 10, 32)
	return uint32(e)
}

// released begins the text in the place of a token while the engine has no owner, because the last
// one gave it back. The rest of the text is random, so it is no owner's token.
const released = "released:"

// Released returns the text that a store keeps in the place of a token from a release on.
func Released(unique string) Token { return Token(released + unique) }

// A Beat names the engine's owner, and changes while that owner is alive. Two reads that find equal
// beats prove that the owner confirmed nothing in between. The zero Beat is that of an engine that
// never had an owner.
type Beat struct {
	Token     Token
	Owner     string    // text for people
	Count     string    // changes with each Check of the owner
	Heartbeat Heartbeat // of the owner, from its claim
	End       Mark      // where the journal ends
	// Lost is not empty once an owner has found that the journal ends before the acknowledged end.
	Lost string
	// Accepted counts the times that an operator accepted the store's content as complete: with a
	// claim that insists, or with a restore, also into an emptied store. 0: never.
	Accepted uint64
	// Origin is the id of the store itself, that of its first claim: 32 hexadecimal digits. It
	// stays when another host begins a new history. "": the store has none, or not yet.
	Origin string
}

// Lacks reports whether the journal has lost records that an earlier read saw, and no operator has
// accepted that since. accepted is the Beat.Accepted of that read.
func (b Beat) Lacks(seen Mark, accepted uint64) bool {
	return !seen.Fits(b.End) && b.Accepted <= accepted
}

// NextAccepted returns the count after one more. For an emptied store the clock puts the count
// above all that hosts have seen; within one store it only grows.
func NextAccepted(last uint64, now time.Time) uint64 {
	return max(last+1, uint64(max(now.UnixMilli(), 0)))
}

// A Heartbeat is how often an owner leaves a beat, and how long it answers private reads after one.
// Stores keep it in whole milliseconds, rounded up.
type Heartbeat struct{ Check, Stale time.Duration }

// A Mark is the end of a journal: its last sequence, and the digest of its last batch, 0 if
// unknown.
type Mark struct{ Seq, Digest uint64 }

// Fits returns false if a journal with that end has lost the mark's records: it ends before the
// mark, or there with another batch.
func (m Mark) Fits(end Mark) bool {
	return end.Seq > m.Seq || end.Seq == m.Seq &&
		(end.Digest == m.Digest || end.Digest == 0 || m.Digest == 0)
}

// Held reports whether the engine has an owner, dead or alive.
func (b Beat) HasOwner() bool {
	return b.Token != "" && !strings.HasPrefix(string(b.Token), released)
}

// A Claim is the argument of Acquire.
type Claim struct {
	Owner string // text for people
	// ID is the unique part of the token, 128 random bits in hexadecimal. "": the store makes one.
	ID string
	// Heartbeat is the claimant's, for the processes that watch its beats.
	Heartbeat Heartbeat
	// After is the beat that the engine must still have, and its journal must end there or later;
	// nil: any. Of two concurrent claims, one wins.
	After *Beat
	// Insist takes the engine from a live owner: the token of After counts alone. It also accepts,
	// permanently, that the journal has lost a tail.
	Insist bool
}

// A Journal keeps batches of records. A batch covers the records (prev, next] of one dense
// sequence.
type Journal interface {
	// Acquire makes the caller the owner; any earlier owner is fenced from then on. It returns the
	// last sequence in the journal, 0 in a new one. ErrHeld: the claim names a beat and the engine
	// has another one. ErrCorrupt: the claim does not insist, and an owner has found that the
	// journal lost a tail, or the journal ends before the end in that beat. After both errors
	// nothing has changed.
	Acquire(ctx context.Context, c Claim) (tok Token, last uint64, err error)
	// Beat is the engine's newest beat. It changes nothing.
	Beat(ctx context.Context) (Beat, error)
	// Check returns nil while tok still owns the engine, and ErrFenced when another owner does.
	// ErrCorrupt: the store has lost the engine. ErrGap: it has lost a tail of this owner's
	// appends. ErrNotDurable, ErrNotInEffect: it may lose the next appends; with ErrConfirmed tok
	// still owns the engine. Another error: unknown. On a store that is not Exclusive it leaves
	// another beat, so each confirmation is visible.
	Check(ctx context.Context, tok Token) error
	// Release gives the engine back, if tok owns it. No write under tok is accepted from then on.
	// The next owner need not wait for a sign that this one is dead.
	Release(ctx context.Context, tok Token) error
	// Begin makes the journal of an empty store end at seq, without records. A restore begins so.
	// The watermark stays 0, and the first Apply starts from 0. ErrInvalid: the store is not empty
	// (has records, snapshots, or a watermark). It may be repeated with the same seq, until another
	// method writes.
	Begin(ctx context.Context, tok Token, seq uint64) error
	// Append makes a batch durable. nil: it is durable, now or since an earlier try with the same
	// bytes. ErrFenced, ErrGap: it is not, and never will be. Another error: unknown, try again.
	Append(ctx context.Context, tok Token, prev, next uint64, batch []byte) error
	// Read calls fn for each batch that ends above after, in order, until the end or fn's error.
	// The slice is valid during the call only. ErrCorrupt: the chain of batches is broken, the
	// first batch starts above after, or the last one does not end at the journal's stored end.
	Read(ctx context.Context, after uint64, fn func(prev, next uint64, batch []byte) error) error
	// HeadMissing reports whether the store was opened without the file of the acknowledged end,
	// and no append was acknowledged since. A store that is not empty may then be incomplete. The
	// first append makes the file.
	HeadMissing() bool
	// Trim forgets batches that end at or below upTo.
	Trim(ctx context.Context, tok Token, upTo uint64) error
}

// Snapshots keeps the two newest images of the state.
//
//tidy:keep a part of Store
type Snapshots interface {
	// SaveSnapshot stores and then publishes an image at seq. It is refused while the durable
	// watermark is below seq, and with ErrFenced. An image older than the newest is an error.
	SaveSnapshot(ctx context.Context, tok Token, seq uint64, r io.Reader) error
	Images
}

// Images opens the images that Snapshots keeps.
type Images interface {
	// LoadSnapshot opens the newest image (back 0) or the one before (back 1). ErrNoSnapshot if
	// there is none; ErrCorrupt, also from Read, if its checksum is wrong.
	LoadSnapshot(ctx context.Context, back int) (seq uint64, r io.ReadCloser, err error)
}

// Projections keeps derived rows and the sequence they are exact for.
//
//tidy:keep a part of Store
type Projections interface {
	// Apply writes w if the watermark is from, and sets the watermark to to, atomically. If the
	// watermark is to already (and from is not), an earlier try has landed: nil, nothing is
	// written. ErrFenced, ErrGap (the watermark is neither) are definite. from == to writes values
	// without moving the watermark: then w may hold nonces only. It need not be durable before the
	// next SaveSnapshot is.
	Apply(ctx context.Context, tok Token, from, to uint64, w *Writes) error
	// Watermark is the sequence the readable projections are exact for.
	Watermark(ctx context.Context) (uint64, error)
	// Nonces calls fn for each key's projected nonce.
	Nonces(ctx context.Context, fn func(key string, nonce uint64)) error
	// Wallets calls fn for each projected wallet, in no order, until it returns false. The *Wallet
	// is valid during the call only.
	Wallets(ctx context.Context, fn func(*Wallet) bool) error

	// Verify reads everything in the projections: wallets, nonces and history. It calls wrong for
	// each place that is damaged or missing, as far as the store can detect by itself. rows is the
	// number of rows that it has read.
	Verify(ctx context.Context, wrong func(place string)) (rows int, err error)
}

// History answers lists from projected rows. fn returns false to stop. Rows come in exact order of
// their ids, newest first unless the query orders otherwise. One call sees a stable list: no row
// twice, none left out, despite writes meanwhile. The *row is valid during the call only.
type History interface {
	Trades(ctx context.Context, q TradeQuery, fn func(*Trade) bool) error
	Orders(ctx context.Context, q OrderQuery, fn func(*Order) bool) error
	// Order is one closed order of an account; ErrNotFound.
	Order(ctx context.Context, account uint32, id uint64) (Order, error)
	// OrdersByID calls fn for the closed orders of an account that have the ids, in the order of
	// the ids. It leaves out ids without such an order. A network store fetches many of them in one
	// round trip.
	OrdersByID(ctx context.Context, account uint32, ids []uint64, fn func(*Order) bool) error
	Deposits(ctx context.Context, q DepositQuery, fn func(*Deposit) bool) error
	// Reference returns the deposit that was made under a reference. Retention never trims this
	// index. ErrNotFound proves that no record up to watermark made one. A store whose own
	// watermark is below that has lost writes, and returns ErrGap instead.
	Reference(ctx context.Context, watermark uint64, reference string) (Deposit, error)
	// References calls fn for each deposit of that index, in no order, until it returns false. A
	// deposit may come twice; one that is written meanwhile may be missing.
	References(ctx context.Context, fn func(*Deposit) bool) error
	// CountReferences is the number of deposits in that index. It reads none of them: a start
	// compares it with the deposits that were made. ErrCorrupt if the store finds that some are
	// lost.
	CountReferences(ctx context.Context) (uint64, error)
	Withdrawals(ctx context.Context, q WithdrawalQuery, fn func(*Withdrawal) bool) error
	// Withdrawal is one closed withdrawal; ErrNotFound.
	Withdrawal(ctx context.Context, id uint64) (Withdrawal, error)
	Candles(ctx context.Context, q CandleQuery, fn func(*Candle) bool) error
	Actions(ctx context.Context, q ActionQuery, fn func(*Action) bool) error
}

// A Store is all of it.
type Store interface {
	Journal
	Snapshots
	Projections
	History
	// String names the store for people, without secrets: "pebble:./data", "redis://host:6379/0".
	String() string
	// Engine is the id of the engine that is kept here.
	Engine() string
	// Exclusive returns true if no other process can own the engine as long as this store is open.
	// Otherwise another process may serve from it now, and Acquire would end that.
	Exclusive() bool
	Close() error
}

// A Rewriter is a store whose server rewrites its own file now and then.
type Rewriter interface {
	// Rewriting reports whether it did so at this process's last check.
	Rewriting() bool
}

// A Bounded store is in a server's memory, which is limited.
type Bounded interface {
	// Memory returns how many bytes the server uses, and how many it may use; 0: unknown.
	Memory(ctx context.Context) (used, most int64, err error)
}

// A Sizer is a store that reports its size.
type Sizer interface {
	// Size returns how many bytes the store takes, on its disk or in its server's memory.
	Size(ctx context.Context) (int64, error)
}

// Retention bounds history. 0 keeps everything. Open orders are not history and are never trimmed.
type Retention struct {
	// Trades is how many of the newest trades each list keeps: per pair, over all pairs, and per
	// account.
	Trades int
	// Orders is how many of the newest closed orders each account keeps.
	Orders int
	// Candles is how many of the newest candles each pair and frame keeps at least.
	Candles int
}

// MaxRows is how many rows of each kind one Apply may write.
const MaxRows = 100_000

// Writes are the rows of one Apply. Wallets, nonces and candles are absolute values. The other rows
// are new: each is in exactly one of the Applies that move the watermark.
type Writes struct {
	Wallets     []Wallet
	Nonces      []Nonce
	Trades      []Trade
	Orders      []Order
	Deposits    []Deposit
	Withdrawals []Withdrawal // closed ones; a row that is there already is left as it is
	// a row replaces the one of the same pair, frame and time; of two here, the later wins
	Candles []Candle
	Actions []Action // of operators
}

// Reset empties w and keeps its memory.
func (w *Writes) Reset() {
	w.Wallets, w.Nonces, w.Trades, w.Orders, w.Deposits = w.Wallets[:0], w.Nonces[:0], w.Trades[:0],
		w.Orders[:0], w.Deposits[:0]
	w.Withdrawals, w.Candles, w.Actions = w.Withdrawals[:0], w.Candles[:0], w.Actions[:0]
}

// A Wallet is all holdings of one account, exact for Seq.
type Wallet struct {
	Account  uint32
	Name     string // the account's, [a-z0-9._-]
	Seq      uint64
	Holdings []Holding
}

// A Holding is one currency of a wallet.
type Holding struct {
	Currency string // code, such as "BTC"
	Balance  money.Balance
	Reserve  money.Balance
}

// A Nonce is the highest one that an API key has used.
type Nonce struct {
	Key   string // the public key
	Nonce uint64
	// Read: a read has used it, so no record has it. Stores do not keep this.
	Read bool
}

// A Trade is one execution.
type Trade struct {
	ID         uint64
	Pair       uint16
	TakerSide  trading.Side
	Price      money.Price
	Amount     money.Amount
	TimeUs     int64
	Taker      uint32 // account
	Maker      uint32 // account; may be the taker itself
	TakerOrder uint64
	MakerOrder uint64
	TakerFee   money.Balance // in the currency that the taker received
	MakerFee   money.Balance // in the currency that the maker received
}

// An Order is one closed order: done or cancelled.
type Order struct {
	ID        uint64
	Account   uint32
	Pair      uint16
	Side      trading.Side
	Status    uint8 // trading.StatusCancelled or trading.StatusDone
	Price     money.Price
	Amount    money.Amount // as ordered
	Remaining money.Amount // open amount when it closed; 0 if done
	TimeUs    int64        // accepted
	ClosedUs  int64
	ClosedSeq uint64 // the record that closed it
	ClientID  string // client_order_id, "" if none; at most 36 bytes
	// Instructed holds the instructions and their outcome; "" for a plain limit order.
	Instructed trading.Packed
}

// A Deposit is one credit from outside.
type Deposit struct {
	ID        uint64
	Account   uint32
	Currency  uint16
	Amount    money.Amount
	TimeUs    int64
	Reference string // unique over the engine
}

// Statuses of a withdrawal, as the API numbers them.
const (
	WithdrawalVerified  = 20
	WithdrawalApproved  = 30
	WithdrawalRefused   = 40
	WithdrawalCancelled = 50
	WithdrawalAdjusted  = 60 // an operator's correction, in the form of a withdrawal
)

// A Withdrawal is a closed one: approved, refused or cancelled; or an adjustment.
type Withdrawal struct {
	ID        uint64
	Account   uint32
	Currency  uint16
	Amount    money.Amount
	Status    uint8 // WithdrawalApproved or above
	TimeUs    int64 // created
	ClosedUs  int64
	ClosedSeq uint64 // the record that closed it
	Address   string // destination; at most 256 bytes
	// reason of a refusal or an adjustment, or reference of an approval; at most 1,024 bytes
	Details  string
	ClientID string // the client's own id; "": none
}

// A Candle is the trades of one period of a pair.
type Candle struct {
	Pair                   uint16
	Frame                  uint8 // which length of period; the caller numbers them
	Time                   int64 // start of the period, epoch seconds
	Open, High, Low, Close money.Price
	Volume                 money.Total
}

// An Action is one change by an operator. Actions are an append-only log that is never trimmed.
type Action struct {
	Seq      uint64 // of its record; no two have the same
	TimeUs   int64
	Operator string // at most 256 bytes
	What     string // at most 4,096 bytes
}

// A TradeQuery selects trades. Zero fields do not filter.
type TradeQuery struct {
	Pair      uint16
	Account   uint32       // trades where this account was the taker or the maker
	TakerSide trading.Side // the field `type` of the API
	MySide    trading.Side // only with Account: its own side; the taker's when it met itself
	Before    uint64       // only ids below
	After     uint64       // only ids above
	SinceUs   int64        // only with Pair: only trades at this time or later
	UntilUs   int64        // only with Pair: only trades at this time or earlier
	Offset    int          // leave out that many matching rows first
	Ascending bool
}

// An OrderQuery selects closed orders of one account, newest first. Zero fields do not filter.
type OrderQuery struct {
	Account  uint32
	Pair     uint16
	Side     trading.Side
	Status   uint8
	ClientID string
	Before   uint64
	MaxSeq   uint64 // only orders closed at or below this sequence; 0: all
}

// A DepositQuery selects deposits of one account, newest first. Zero fields do not filter.
type DepositQuery struct {
	Account  uint32
	Currency uint16
	Before   uint64 // only ids below
	Offset   int    // leave out that many matching rows first
}

// A WithdrawalQuery selects closed withdrawals, newest (highest id) first. Zero fields do not
// filter.
type WithdrawalQuery struct {
	Account  uint32 // 0: of all
	Currency uint16
	Status   uint8  // WithdrawalApproved: adjustments, too, because both have left the balance
	Before   uint64 // only ids below
	Offset   int    // leave out that many matching rows first
	MaxSeq   uint64 // only those closed at or below this sequence
}

// A CandleQuery selects candles of one pair and frame, newest first.
type CandleQuery struct {
	Pair         uint16
	Frame        uint8
	Since, Until int64 // epoch seconds, both included; Until 0: no bound
}

// An ActionQuery selects actions, newest first.
type ActionQuery struct {
	Before uint64 // only sequences below; 0: all
}
