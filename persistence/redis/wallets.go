package redis

import (
	"context"
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
			nonce, err := s.nonce(page[i], page[i+1])
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

// nonce reads "nonce:checksum" of a key.
func (s *Store) nonce(key, stored string) (uint64, error) {
	text, sum, _ := strings.Cut(stored, ":")
	if err := codec.At(s.nonces()).And([]byte(key)).CheckText(text, sum); err != nil {
		return 0, fmt.Errorf("%s: %s: the nonce of key %q: %w", s.name, s.nonces(), key, err)
	}
	return s.number("the nonce of a key", text)
}

// readWallet reads one projected wallet; ErrNotFound.
func (s *Store) readWallet(ctx context.Context, name string) (persistence.Wallet, error) {
	w := persistence.Wallet{Name: name}
	fields, err := s.history.HGetAll(ctx, s.wallet(name)).Result()
	if err != nil {
		return w, s.fault("read a wallet", err)
	}
	if len(fields) == 0 {
		return w, fmt.Errorf("wallet of %s: %w", name, persistence.ErrNotFound)
	}
	return w, s.parseWallet(fields, &w)
}

// Wallets calls fn for each projected wallet. It scans all keys, because no list of wallets is
// kept. It is for backups and checks, which may be slow.
func (s *Store) Wallets(ctx context.Context, fn func(*persistence.Wallet) bool) error {
	prefix := s.wallet("")
	seen := map[string]bool{} // a key may come twice while others are added
	for cursor := uint64(0); ; {
		keys, next, err := s.history.Scan(ctx, cursor, prefix+"*", pageRows).Result()
		if err != nil {
			return s.fault("find wallets", err)
		}
		keys = slices.DeleteFunc(keys, func(key string) bool {
			was := seen[key]
			seen[key] = true
			return was
		})
		for page := range slices.Chunk(keys, firstRows) {
			answers := make([]*redis.MapStringStringCmd, len(page))
			if _, err := s.history.Pipelined(ctx, func(p redis.Pipeliner) error {
				for i, key := range page {
					answers[i] = p.HGetAll(ctx, key)
				}
				return nil
			}); err != nil {
				return s.fault("read wallets", err)
			}
			for i, key := range page {
				if len(answers[i].Val()) == 0 {
					continue // removed by hand
				}
				w := persistence.Wallet{Name: strings.TrimPrefix(key, prefix)}
				if err := s.parseWallet(answers[i].Val(), &w); err != nil {
					return err
				}
				if !fn(&w) {
					return nil
				}
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// parseWallet reads the fields of a wallet, whose name is set.
func (s *Store) parseWallet(fields map[string]string, w *persistence.Wallet) error {
	key := s.wallet(w.Name)
	if err := codec.At(key).CheckText(walletText(fields), fields[codec.FieldCheck]); err != nil {
		return fmt.Errorf("%s: %s: %w", s.name, key, err)
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		value := fields[field]
		switch field {
		case codec.FieldCheck:
		case codec.FieldAccount:
			n, err := s.number("a wallet's account", value)
			if err != nil {
				return err
			}
			w.Account = uint32(n)
		case codec.FieldSeq:
			var err error
			if w.Seq, err = s.number("a wallet's sequence", value); err != nil {
				return err
			}
		default:
			h, err := parseHolding(field, value)
			if err != nil {
				return fmt.Errorf("%s: %w: wallet of %s: %s is %q", s.name, persistence.ErrCorrupt,
					w.Name, field, value)
			}
			w.Holdings = append(w.Holdings, h)
		}
	}
	return nil
}

// walletText returns the text under a wallet's checksum: its other fields, in order.
func walletText(fields map[string]string) string {
	var b strings.Builder
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if field != codec.FieldCheck {
			fmt.Fprintf(&b, "%s %s\n", field, fields[field])
		}
	}
	return b.String()
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

// walletFields returns the fields of a wallet: one per currency, "balance:reserve" as decimal text.
func (s *Store) walletFields(w *persistence.Wallet) [][]byte {
	fields := [][]byte{
		[]byte(codec.FieldAccount), []byte(dec(uint64(w.Account))),
		[]byte(codec.FieldSeq), []byte(dec(w.Seq)),
	}
	for i := range w.Holdings {
		h := &w.Holdings[i]
		fields = append(fields, []byte(h.Currency),
			h.Reserve.Append(append(h.Balance.Append(nil), ':')))
	}
	texts := map[string]string{}
	for i := 0; i < len(fields); i += 2 {
		texts[string(fields[i])] = string(fields[i+1])
	}
	return append(fields, []byte(codec.FieldCheck),
		[]byte(codec.At(s.wallet(w.Name)).Text(walletText(texts))))
}

func (s *Store) nonceFields(list []persistence.Nonce) [][]byte {
	fields := make([][]byte, 0, 2*len(list))
	for _, n := range list {
		text := dec(n.Nonce)
		fields = append(fields, []byte(n.Key),
			[]byte(text+":"+codec.At(s.nonces()).And([]byte(n.Key)).Text(text)))
	}
	return fields
}
