package redis

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/shopspring/decimal"

	"exchange/core/money"
	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// callBytes is about how much one call of an Apply writes: a few milliseconds of Redis's time, which
// an append may have to wait for.
const callBytes = 256 << 10

// opBytes is what an operation or a row costs beside its bytes.
const opBytes = 16

// Watermark is the sequence the projections are exact for.
func (s *Store) Watermark(ctx context.Context) (uint64, error) {
	text, err := s.projections.Get(ctx, s.watermark()).Result()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	if err != nil {
		return 0, s.fault("read the watermark", err)
	}
	return s.number("the watermark", text)
}

// Nonces calls fn for each key's nonce.
func (s *Store) Nonces(ctx context.Context, fn func(key string, nonce uint64)) error {
	// HSCAN may answer a key twice while the hash grows.
	nonces := map[string]uint64{}
	for cursor := uint64(0); ; {
		page, next, err := s.projections.HScan(ctx, s.nonces(), cursor, "", pageRows).Result()
		if err != nil {
			return s.fault("read the nonces", err)
		}
		for i := 0; i+1 < len(page); i += 2 {
			nonce, err := s.number("the nonce of a key", page[i+1])
			if err != nil {
				return err
			}
			nonces[page[i]] = nonce
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	for _, key := range slices.Sorted(maps.Keys(nonces)) {
		fn(key, nonces[key])
	}
	return nil
}

// Wallet is one projected wallet, for people and tests; ErrNotFound.
func (s *Store) Wallet(ctx context.Context, name string) (persistence.Wallet, error) {
	w := persistence.Wallet{Name: name}
	fields, err := s.history.HGetAll(ctx, s.wallet(name)).Result()
	if err != nil {
		return w, s.fault("read a wallet", err)
	}
	if len(fields) == 0 {
		return w, fmt.Errorf("wallet of %s: %w", name, persistence.ErrNotFound)
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		value := fields[field]
		switch field {
		case codec.FieldAccount:
			n, err := s.number("a wallet's account", value)
			if err != nil {
				return w, err
			}
			w.Account = uint32(n)
		case codec.FieldSeq:
			if w.Seq, err = s.number("a wallet's sequence", value); err != nil {
				return w, err
			}
		default:
			h, err := parseHolding(field, value)
			if err != nil {
				return w, fmt.Errorf("%s: %w: wallet of %s: %s is %q", s.name, persistence.ErrCorrupt, name, field, value)
			}
			w.Holdings = append(w.Holdings, h)
		}
	}
	return w, nil
}

// parseHolding reads "balance:reserve" as decimal text.
func parseHolding(currency, text string) (persistence.Holding, error) {
	h := persistence.Holding{Currency: currency}
	balance, reserve, _ := strings.Cut(text, ":")
	for _, part := range []struct {
		text string
		to   *money.Balance
	}{{balance, &h.Balance}, {reserve, &h.Reserve}} {
		d, err := decimal.NewFromString(part.text)
		if err != nil {
			return h, err
		}
		if *part.to, err = money.BalanceFromDecimal(d); err != nil {
			return h, err
		}
	}
	return h, nil
}

// Apply writes w and moves the watermark. See the package comment for how it is cut.
func (s *Store) Apply(ctx context.Context, tok persistence.Token, from, to uint64, w *persistence.Writes) error {
	if w == nil {
		w = &persistence.Writes{}
	}
	if err := codec.CheckWrites(from, to, w); err != nil {
		return err
	}
	var c cutter
	s.trades(&c, w.Trades)
	s.closed(&c, w.Orders)
	s.credits(&c, w.Deposits)
	for i := range w.Wallets {
		c.whole('W', s.wallet(w.Wallets[i].Name), walletFields(&w.Wallets[i]))
	}
	c.add('N', s.nonces(), 0, 2, nonceFields(w.Nonces))
	for i, args := range c.calls() {
		move := "0"
		if i == len(c.done)-1 && from != to {
			move = "1"
		}
		head := []any{string(tok), dec(from), dec(to), move}
		code, text, err := s.run(ctx, s.projections, applyScript, "apply", []string{s.head(), s.watermark()}, append(head, args...)...)
		if err != nil {
			return err
		}
		switch code {
		case codeDone:
		case codeThere:
			return nil
		case codeGap:
			stored, err := s.number("the watermark", text)
			if err != nil {
				return err
			}
			return codec.WatermarkGap(stored, from, to)
		case codeLate:
			return s.fault("apply", fmt.Errorf("BUG: a row for %s is older than too many that are there", text))
		default:
			return s.fault("apply", fmt.Errorf("the script answered %d %s", code, text))
		}
	}
	return nil
}

// cutter lays operations out in calls of about callBytes.
type cutter struct {
	done [][]any
	args []any // of the call being filled
	size int
}

// add lays out values, stride of them at a time, over as many calls as they need.
func (c *cutter) add(kind byte, key string, limit, stride int, values [][]byte) {
	for len(values) > 0 {
		if c.size >= callBytes {
			c.flush()
		}
		c.size += len(key) + opBytes
		n := 0
		for n < len(values) && (n == 0 || c.size < callBytes) {
			for _, v := range values[n : n+stride] {
				c.size += len(v) + opBytes
			}
			n += stride
		}
		c.op(kind, key, limit, values[:n])
		values = values[n:]
	}
}

// whole lays out one operation that must not be cut.
func (c *cutter) whole(kind byte, key string, values [][]byte) {
	if c.size >= callBytes {
		c.flush()
	}
	c.size += len(key) + opBytes
	for _, v := range values {
		c.size += len(v) + opBytes
	}
	c.op(kind, key, 0, values)
}

func (c *cutter) op(kind byte, key string, limit int, values [][]byte) {
	c.args = append(c.args, string(kind), key, limit, len(values))
	for _, v := range values {
		c.args = append(c.args, v)
	}
}

func (c *cutter) flush() {
	c.done = append(c.done, c.args)
	c.args, c.size = nil, 0
}

// calls are the arguments of all calls; at least one, which may be empty.
func (c *cutter) calls() [][]any {
	if len(c.args) > 0 || len(c.done) == 0 {
		c.flush()
	}
	return c.done
}

// trades lays out each trade for the list of its pair, the list of all, and those of its accounts.
func (s *Store) trades(c *cutter, list []persistence.Trade) {
	if len(list) == 0 {
		return
	}
	all := make([][]byte, 0, len(list))
	pairs := map[uint16][][]byte{}
	accounts := map[uint32][][]byte{}
	var memory []byte // of all rows; slices of an outgrown array stay valid
	for i := range list {
		t := &list[i]
		at := len(memory)
		memory = codec.AppendTrade(binary.BigEndian.AppendUint64(memory, t.ID), t)
		row := memory[at:len(memory):len(memory)]
		all = append(all, row)
		pairs[t.Pair] = append(pairs[t.Pair], row)
		accounts[t.Taker] = append(accounts[t.Taker], row)
		if t.Maker != t.Taker {
			accounts[t.Maker] = append(accounts[t.Maker], row)
		}
	}
	limit := s.retention.Trades
	c.add('L', s.allTrades(), limit, 1, sorted(all))
	for _, pair := range slices.Sorted(maps.Keys(pairs)) {
		c.add('L', s.pairTrades(pair), limit, 1, sorted(pairs[pair]))
	}
	for _, account := range slices.Sorted(maps.Keys(accounts)) {
		c.add('L', s.accountTrades(account), limit, 1, sorted(accounts[account]))
	}
}

// sorted puts rows in the order of their ids and leaves out the second of two with the same.
func sorted(rows [][]byte) [][]byte {
	slices.SortStableFunc(rows, func(a, b []byte) int { return slices.Compare(a[:codec.IDSize], b[:codec.IDSize]) })
	return slices.CompactFunc(rows, func(a, b []byte) bool { return rowID(a) == rowID(b) })
}

// rowID is the id in front of a row.
func rowID(row []byte) uint64 { return binary.BigEndian.Uint64(row) }

// closed lays out each closed order for the sorted set of its account.
func (s *Store) closed(c *cutter, list []persistence.Order) {
	accounts := map[uint32][][]byte{}
	for i := range list {
		o := &list[i]
		row := codec.AppendOrder(binary.BigEndian.AppendUint64(nil, o.ID), o)
		accounts[o.Account] = append(accounts[o.Account], []byte(dec(o.ID)), row)
	}
	for _, account := range slices.Sorted(maps.Keys(accounts)) {
		c.add('Z', s.orders(account), s.retention.Orders, 2, accounts[account])
	}
}

// credits lays out each deposit for the list of its account.
func (s *Store) credits(c *cutter, list []persistence.Deposit) {
	accounts := map[uint32][][]byte{}
	for i := range list {
		p := &list[i]
		row := codec.AppendDeposit(binary.BigEndian.AppendUint64(nil, p.ID), p)
		accounts[p.Account] = append(accounts[p.Account], row)
	}
	for _, account := range slices.Sorted(maps.Keys(accounts)) {
		c.add('L', s.deposits(account), 0, 1, sorted(accounts[account]))
	}
}

// walletFields are what people read: one field per currency, "balance:reserve" as decimal text.
func walletFields(w *persistence.Wallet) [][]byte {
	fields := [][]byte{
		[]byte(codec.FieldAccount), []byte(dec(uint64(w.Account))),
		[]byte(codec.FieldSeq), []byte(dec(w.Seq)),
	}
	for i := range w.Holdings {
		h := &w.Holdings[i]
		fields = append(fields, []byte(h.Currency), h.Reserve.Append(append(h.Balance.Append(nil), ':')))
	}
	return fields
}

func nonceFields(list []persistence.Nonce) [][]byte {
	fields := make([][]byte, 0, 2*len(list))
	for _, n := range list {
		fields = append(fields, []byte(n.Key), []byte(dec(n.Nonce)))
	}
	return fields
}
