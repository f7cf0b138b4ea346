package gateway

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/actors"
	"exchange/actors/audit"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/backup"
)

// The operator's long answers: the audit, an account's statement, and trades for export. They are
// lines of JSON, and the last line is {"end": ...} or {"error": "..."}: a line that is missing
// shows a broken answer.

// An output takes the lines of a long answer.
type output struct {
	w    *bufio.Writer
	json *json.Encoder
}

// write is false when the client has gone: then there is nobody to go on for.
func (o *output) write(line any) bool { return o.json.Encode(line) == nil }

// flush sends what was written so far, which else waits for more.
func (o *output) flush() { o.w.Flush() } //nolint:errcheck // the next write says it

// An errorLine ends an answer that is not whole.
type errorLine struct {
	Error string `json:"error"`
	// stored data do not fit together: trying again does not help
	Damaged bool `json:"damaged,omitempty"`
}

// lines streams an answer; produce writes its lines. What is wrong after the first line becomes the
// last.
func lines(e *actors.Engine, ctx *fasthttp.RequestCtx, produce func(o *output) (end any,
	err error)) {
	ctx.SetContentType("application/x-ndjson")
	path := string(ctx.Path())
	ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		o := &output{w, json.NewEncoder(w)}
		o.json.SetEscapeHTML(false)
		end, err := guarded(e, path, func() (any, error) { return produce(o) })
		if err != nil {
			o.write(errorLine{err.Error(),
				errors.Is(err, persistence.ErrCorrupt) || errors.Is(err, errHistory)})
		} else {
			o.write(map[string]any{"end": end})
		}
		o.flush()
	})
}

// guarded runs what streams an answer. It has a goroutine of its own, where a panic would end the
// process.
func guarded(e *actors.Engine, path string, produce func() (any, error)) (end any, err error) {
	defer func() {
		if p := recover(); p != nil {
			id := requestID()
			e.Log().Error("an operator's request panicked", "request", id, "path", path, "reason",
				p, "stack", string(debug.Stack()))
			err = fmt.Errorf("internal error, request id %s", id)
		}
	}()
	return produce()
}

// errHistory is wrapped by what a history that is not whole leads to.
var errHistory = errors.New("the history does not add up")

// streamTimeout bounds a long answer.
const streamTimeout = time.Hour

// An Archive is where trimmed parts of the journal are kept.
type Archive interface {
	// Dir is the folder, for people.
	Dir() string
	// Open is for an audit. Each part must be authentic if authenticated is true. An error says
	// which key is missing.
	Open(authenticated bool) (audit.Archive, error)
}

type totalAnswer struct {
	Currency  string        `json:"currency"`
	Deposited money.Balance `json:"deposited"`
	Withdrawn money.Balance `json:"withdrawn"`
	Balances  money.Balance `json:"balances"`
	Reserved  money.Balance `json:"reserved"`
}

type auditAnswer struct {
	Sequence    uint64        `json:"sequence"`
	From        uint64        `json:"replayed_from"`
	Records     uint64        `json:"records"`
	Accounts    int           `json:"accounts"`
	OpenOrders  int           `json:"open_orders"`
	Withdraws   int           `json:"pending_withdraws"`
	Wallets     int           `json:"projections_compared"`
	Changed     int           `json:"projections_changed_meanwhile"`
	Rows        int           `json:"rows_compared"`
	Trimmed     int           `json:"rows_trimmed"`
	PausedMs    int64         `json:"paused_ms"`
	Totals      []totalAnswer `json:"totals"`
	Differences []string      `json:"differences"`
}

// audit streams how far it is, and then what it found. A body {"archive": DIR} starts at the
// archive's beginning; the folder must be the one that the server archives to.
// {"without_authentication": true} takes its parts as they are.
func (g *Gateway) audit(e *actors.Engine, ctx *fasthttp.RequestCtx) (any, error) {
	var q struct {
		Archive string
		Without bool `json:"without_authentication"`
	}
	if err := parse(ctx, &q); err != nil {
		return nil, err
	}
	var from audit.Archive
	if q.Without && q.Archive == "" {
		return nil, &badRequest{"without_authentication is about an archive, and none is named"}
	}
	if q.Archive != "" {
		switch a := g.opts.Archive; {
		case a == nil:
			return nil,
				&badRequest{"the server runs without --archive: the first records may be gone"}
		case a.Dir() != q.Archive:
			return nil, &badRequest{fmt.Sprintf("the server archives to %s, not to %s", a.Dir(),
				q.Archive)}
		default:
			var err error
			if from, err = a.Open(!q.Without); err != nil {
				return nil, &badRequest{err.Error()}
			}
			if q.Without {
				e.Log().Warn(
					"an audit takes the archive without authentication: a writer of its folder "+
						"decides what is compared", "archive", q.Archive)
			}
		}
	}
	lines(e, ctx, func(o *output) (any, error) {
		patience, cancel := context.WithTimeout(context.Background(), streamTimeout)
		defer cancel()
		shown := time.Now()
		report, err := e.Audit(patience, from, func(at, of uint64) {
			if now := time.Now(); now.Sub(shown) > 200*time.Millisecond {
				shown = now
				if !o.write(map[string]uint64{"at": at, "of": of}) {
					cancel()
				}
				o.flush()
			}
		})
		if err != nil {
			return nil, err
		}
		return newAuditAnswer(report), nil
	})
	return nil, errStreamed
}

// errStreamed says that the answer is on its way already.
var errStreamed = errors.New("streamed")

func newAuditAnswer(r *audit.Report) auditAnswer {
	a := auditAnswer{Sequence: r.Sequence, From: r.From, Records: r.Records, Accounts: r.Accounts,
		OpenOrders: r.OpenOrders, Withdraws: r.Withdraws,
		Wallets: r.Wallets, Changed: r.Changed, Rows: r.Rows, Trimmed: r.Trimmed,
		PausedMs: r.Paused.Milliseconds(), Totals: []totalAnswer{},
		Differences: append([]string{}, r.Differences...)}
	for _, t := range r.Totals {
		a.Totals = append(a.Totals, totalAnswer{t.Code, t.Deposited, t.Withdrawn, t.Balances,
			t.Reserved})
	}
	return a
}

type tradeLine struct {
	ID         uint64        `json:"id"`
	Time       string        `json:"time"`
	Pair       string        `json:"pair"`
	Type       string        `json:"type"`
	Price      money.Price   `json:"price"`
	Amount     money.Amount  `json:"amount"`
	TakerOrder uint64        `json:"taker_order"`
	MakerOrder uint64        `json:"maker_order"`
	Taker      string        `json:"taker"`
	Maker      string        `json:"maker"`
	TakerFee   money.Balance `json:"taker_fee"`
	MakerFee   money.Balance `json:"maker_fee"`
}

// exportTrades streams the trades of a pair, oldest first, with from <= time < to.
func exportTrades(e *actors.Engine, ctx *fasthttp.RequestCtx) (any, error) {
	args := ctx.QueryArgs()
	pair := e.Pair(args.Peek("pair"))
	if pair == nil {
		return nil, &badRequest{fmt.Sprintf("there is no pair %.80q", args.Peek("pair"))}
	}
	from, err1 := timeArgument(args, "from", 0)
	to, err2 := timeArgument(args, "to", 1<<62)
	if err := cmp.Or(err1, err2); err != nil {
		return nil, err
	}
	if err := historyNow(e); err != nil {
		return nil, err
	}
	lines(e, ctx, func(o *output) (any, error) {
		patience, cancel := context.WithTimeout(context.Background(), streamTimeout)
		defer cancel()
		n := 0
		err := e.History().Trades(patience,
			persistence.TradeQuery{Pair: pair.Number, Ascending: true},
			func(t *persistence.Trade) bool {
				if t.TimeUs < from || t.TimeUs >= to {
					return t.TimeUs < to
				}
				n++
				return o.write(tradeLine{t.ID, clock(t.TimeUs), pair.Name, t.TakerSide.String(),
					t.Price, t.Amount, t.TakerOrder, t.MakerOrder,
					e.AccountName(t.Taker), e.AccountName(t.Maker), t.TakerFee, t.MakerFee})
			})
		return n, err
	})
	return nil, errStreamed
}

// timeArgument reads a time such as 2026-11-21 or 2026-11-21T08:00:00Z, in microseconds.
func timeArgument(args *fasthttp.Args, name string, unset int64) (int64, error) {
	text := string(args.Peek(name))
	if text == "" {
		return unset, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UnixMicro(), nil
		}
	}
	return 0, &badRequest{fmt.Sprintf(
		"%s: %.80q is no time such as 2026-11-21 or 2026-11-21T08:00:00Z", name, text)}
}

// writeBackup streams a backup of everything: the state at one sequence, and the history up to it.
func writeBackup(e *actors.Engine, ctx *fasthttp.RequestCtx) (any, error) {
	q := actors.NewRead(actors.ReadImage)
	if err := read(e, q); err != nil {
		return nil, err
	}
	image := q.Image
	q.Free()
	path := string(ctx.Path())
	ctx.SetContentType("application/octet-stream")
	ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		patience, cancel := context.WithTimeout(context.Background(), streamTimeout)
		defer cancel()
		// A backup that breaks off lacks its proof, and each reader finds that out.
		_, err := guarded(e, path, func() (any, error) {
			return nil, backup.Write(patience, w, e.Store(), image, e.Authority(), func(int) {})
		})
		if err != nil {
			e.Log().Error("a backup broke off", "error", err)
			return
		}
		w.Flush() //nolint:errcheck
	})
	return nil, errStreamed
}

// historyNow waits until the history has everything that was answered so far.
func historyNow(e *actors.Engine) error {
	barrier := actors.NewRead(actors.ReadHistory)
	if err := read(e, barrier); err != nil {
		return err
	}
	barrier.Free()
	return nil
}

// A statementLine is one change of a balance. Balance is what there was after it.
type statementLine struct {
	Time     string        `json:"time"`
	Currency string        `json:"currency"`
	Change   string        `json:"change"` // signed
	Balance  money.Balance `json:"balance"`
	// deposit, withdraw, trade, fee, fee income; brought forward: what was before the history
	Cause string `json:"cause"`
	ID    uint64 `json:"id"` // of the deposit, the withdraw or the trade
	Pair  string `json:"pair,omitempty"`
}

// A change is one change of a balance, going back in time.
type change struct {
	timeUs   int64
	id       uint64
	cause    string
	currency uint16
	credit   bool
	amount   money.Balance
	pair     string
}

// statement streams every change of an account's balances, newest first, with the balance after
// each. It goes back from the committed balances at one sequence, as far as the history reaches: if
// it has fewer trades than there were, what was there before is brought forward. With a currency it
// shows the changes of that one alone.
func statement(e *actors.Engine, ctx *fasthttp.RequestCtx) (any, error) {
	q := actors.NewRead(actors.ReadStatement)
	q.Name = string(ctx.QueryArgs().Peek("account"))
	if err := read(e, q); err != nil {
		return nil, err
	}
	if q.Account == 0 {
		return nil, &badRequest{fmt.Sprintf("there is no account %.80q", q.Name)}
	}
	only, err := everCurrency(e, string(ctx.QueryArgs().Peek("currency")))
	if err != nil {
		return nil, err
	}
	s := &statementSource{e: e, only: only, account: q.Account, name: q.Name, seq: q.Seq,
		lastTrades: q.LastTrades, lastDeposit: q.LastDeposit,
		trades: q.TradeCount, balances: map[uint16]money.Balance{}}
	for _, h := range q.Holdings {
		s.balances[h.Currency] = h.Balance
	}
	q.Free()
	lines(e, ctx, func(o *output) (any, error) {
		patience, cancel := context.WithTimeout(context.Background(), streamTimeout)
		defer cancel()
		return s.write(patience, o)
	})
	return nil, errStreamed
}

// everCurrency is the number of a currency, also when it is not configured any more; 0 of none.
func everCurrency(e *actors.Engine, code string) (uint16, error) {
	if code == "" {
		return 0, nil
	}
	for number := uint16(1); ; number++ {
		switch e.CurrencyCode(number) {
		case code:
			return number, nil
		case "":
			return 0, &badRequest{fmt.Sprintf("there is no currency %.80q", code)}
		}
	}
}

type statementSource struct {
	e           *actors.Engine
	only        uint16 // currency that is shown; 0: all
	account     uint32
	name        string
	seq         uint64
	lastTrades  []uint64 // by pair-1: what is newer does not count yet
	lastDeposit uint64
	trades      uint64                   // that there ever were
	balances    map[uint16]money.Balance // before what is written next, going back
	// all trades that are kept have been read, and there were more: what is older cannot be told
	older bool
	err   error // of the store: there may be more than was read
}

func (s *statementSource) write(ctx context.Context, o *output) (int, error) {
	n := 0
	// it does not add up, if there were no older trades: the rest is read to find out
	var wrong error
	for c := range newestFirst(s.possible, s.ofTrades(ctx), s.deposits(ctx), s.withdraws(ctx)) {
		if s.older || s.err != nil {
			break
		}
		if wrong != nil {
			continue
		}
		after := s.balances[c.currency]
		sign := "-"
		if c.credit {
			sign = ""
			if after.Cmp(c.amount) < 0 {
				wrong = fmt.Errorf("%w: at %s %s %d credits %v %s, and there are %v after it",
					errHistory, clock(c.timeUs), c.cause, c.id,
					c.amount, s.e.CurrencyCode(c.currency), after)
				continue
			}
			s.balances[c.currency] = after.Sub(c.amount)
		} else {
			s.balances[c.currency] = after.Add(c.amount)
		}
		if s.only != 0 && s.only != c.currency {
			continue
		}
		if !o.write(statementLine{clock(c.timeUs), s.e.CurrencyCode(c.currency),
			sign + c.amount.String(), after, c.cause, c.id, c.pair}) {
			return n, nil
		}
		n++
	}
	if s.err != nil {
		return n, s.err
	}
	if wrong != nil && !s.older {
		return n, wrong
	}
	for _, currency := range slices.Sorted(maps.Keys(s.balances)) {
		b := s.balances[currency]
		if b.IsZero() {
			continue
		}
		code := s.e.CurrencyCode(currency)
		if !s.older {
			return n,
				fmt.Errorf(
					"%w: every change is there, and %v %s are left that none of them explains",
					errHistory, b, code)
		}
		if s.only != 0 && s.only != currency {
			continue
		}
		if !o.write(statementLine{Currency: code, Change: b.String(), Balance: b,
			Cause: "brought forward"}) {
			break
		}
		n++
	}
	return n, nil
}

// possible is false of a credit that is more than there was after it.
func (s *statementSource) possible(c *change) bool {
	return !c.credit || s.balances[c.currency].Cmp(c.amount) >= 0
}

// newestFirst merges lists that are newest first each. Times say nothing about what has come first
// if the clock was set back between: so what is possible comes before what is not, whatever its
// time.
func newestFirst(possible func(*change) bool, lists ...iter.Seq[change]) iter.Seq[change] {
	return func(yield func(change) bool) {
		type head struct {
			change
			next func() (change, bool)
		}
		var heads []*head
		for _, l := range lists {
			next, stop := iter.Pull(l)
			defer stop()
			if c, ok := next(); ok {
				heads = append(heads, &head{c, next})
			}
		}
		for len(heads) > 0 {
			newest := slices.MaxFunc(heads, func(a, b *head) int {
				switch pa, pb := possible(&a.change), possible(&b.change); {
				case pa && !pb:
					return 1
				case pb && !pa:
					return -1
				}
				return cmp.Compare(a.timeUs, b.timeUs)
			})
			if !yield(newest.change) {
				return
			}
			var ok bool
			if newest.change, ok = newest.next(); !ok {
				heads = slices.DeleteFunc(heads, func(h *head) bool { return h == newest })
			}
		}
	}
}

// ofTrades are what the account's trades did to it; of the fee account also what all trades paid
// it.
func (s *statementSource) ofTrades(ctx context.Context) iter.Seq[change] {
	q := persistence.TradeQuery{Account: s.account}
	if s.name == actors.FeeAccount {
		q.Account = 0
	}
	return func(yield func(change) bool) {
		n := uint64(0)
		err := s.e.History().Trades(ctx, q, func(t *persistence.Trade) bool {
			if t.ID > s.lastTrades[t.Pair-1] {
				return true
			}
			n++
			for _, c := range s.ofTrade(t) {
				if !yield(c) {
					return false
				}
			}
			return true
		})
		s.err = errors.Join(s.err, err)
		if n > s.trades {
			s.err = errors.Join(s.err, fmt.Errorf(
				"%w: %d trades of account %s are kept, there were %d", errHistory, n, s.name,
				s.trades))
		}
		s.older = n < s.trades
	}
}

// ofTrade is what one trade did to the account, the last first.
func (s *statementSource) ofTrade(t *persistence.Trade) (list []change) {
	base, quote := s.e.PairCurrencies(t.Pair)
	amount, value := t.Amount.Balance(), t.Price.Times(t.Amount).Balance()
	pair := s.e.Market(t.Pair).Name
	add := func(cause string, currency uint16, credit bool, b money.Balance) {
		if !b.IsZero() {
			list = append(list, change{t.TimeUs, t.ID, cause, currency, credit, b, pair})
		}
	}
	received := func(side trading.Side) uint16 {
		if side == trading.Buy {
			return base
		}
		return quote
	}
	if s.name == actors.FeeAccount {
		add("fee income", received(t.TakerSide), true, t.TakerFee)
		add("fee income", received(t.TakerSide.Opposite()), true, t.MakerFee)
	}
	if t.Taker == s.account {
		add("fee", received(t.TakerSide), false, t.TakerFee)
	}
	if t.Maker == s.account {
		add("fee", received(t.TakerSide.Opposite()), false, t.MakerFee)
	}
	// with itself it changes nothing
	if t.Taker != t.Maker && (t.Taker == s.account || t.Maker == s.account) {
		buys := (t.TakerSide == trading.Buy) == (t.Taker == s.account)
		add("trade", base, buys, amount)
		add("trade", quote, !buys, value)
	}
	return list
}

func (s *statementSource) deposits(ctx context.Context) iter.Seq[change] {
	return func(yield func(change) bool) {
		err := s.e.History().Deposits(ctx,
			persistence.DepositQuery{Account: s.account, Before: s.lastDeposit + 1},
			func(d *persistence.Deposit) bool {
				return yield(change{timeUs: d.TimeUs, id: d.ID, cause: "deposit",
					currency: d.Currency, credit: true, amount: d.Amount.Balance()})
			})
		s.err = errors.Join(s.err, err)
	}
}

// withdraws are the approved ones, in the order in which they were approved: few, so they are
// sorted here.
func (s *statementSource) withdraws(ctx context.Context) iter.Seq[change] {
	return func(yield func(change) bool) {
		var list []change
		q := persistence.WithdrawQuery{Account: s.account, Status: event.WithdrawApproved,
			MaxSeq: s.seq}
		err := s.e.History().Withdraws(ctx, q, func(w *persistence.Withdraw) bool {
			list = append(list, change{timeUs: w.ClosedUs, id: w.ID, cause: "withdraw",
				currency: w.Currency, amount: w.Amount.Balance()})
			return true
		})
		s.err = errors.Join(s.err, err)
		slices.SortStableFunc(list, func(a, b change) int {
			return cmp.Compare(b.timeUs, a.timeUs)
		})
		for _, c := range list {
			if !yield(c) {
				return
			}
		}
	}
}
