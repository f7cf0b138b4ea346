package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// A verifier reads all projections from one state of the folder. Checksums tell a row that is
// wrong; counters, count rows and the lists that have the same rows tell one that is missing.
type verifier struct {
	s      *Store
	wrong  func(place string)
	rows   int
	lists  map[string]*counter // what there is, by list
	counts map[string]*count   // by the key of a count row
	// by account, the rows of a list less those of another list that must have as many
	trades, orders, withdrawals map[uint32]int
	// by account: the exclusive or of checksums of the index's keys, and of those that the rows of
	// orders must have there
	clients map[uint32]uint32
}

// Verify looks at each value of the projections.
func (s *Store) Verify(ctx context.Context, wrong func(place string)) (int, error) {
	v := &verifier{s: s, wrong: wrong, lists: map[string]*counter{}, counts: map[string]*count{},
		trades: map[uint32]int{},
		orders: map[uint32]int{}, withdrawals: map[uint32]int{}, clients: map[uint32]uint32{}}
	err := s.view(func(snap *pebble.Snapshot) error {
		for _, kind := range []byte{kindWatermark, kindWallet, kindNonce, kindPairTrade, kindTrade,
			kindAccountTrade,
			kindAccountPair, kindOrder, kindOrderPair, kindOrderClient, kindDeposit, kindReference,
			kindWithdrawal, kindWithdrawalOf, kindCandle,
			kindAction, kindCount, kindList} {
			if err := v.kind(ctx, snap, kind); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return v.rows, err
	}
	v.compare()
	return v.rows, nil
}

// kind reads the keys of a kind.
func (v *verifier) kind(ctx context.Context, snap *pebble.Snapshot, kind byte) error {
	lower := v.s.key(kind)
	return v.s.scanStored(ctx, snap, lower, after(lower),
		true, func(key, stored []byte) (bool, error) {
			v.rows++
			value, err := v.s.opened(key, stored)
			if err == nil {
				err = v.value(kind, key, value)
			}
			if err != nil {
				v.wrong(err.Error())
			}
			return true, nil
		})
}

// value checks a value whose checksum is right.
func (v *verifier) value(kind byte, key, value []byte) error {
	s := v.s
	rest := key[len(s.prefix)+1:]
	account := func() uint32 { return binary.BigEndian.Uint32(rest) }
	switch kind {
	case kindTrade, kindPairTrade:
		list := key[:len(key)-8]
		bucket := string(u64(s.countPrefix(list), idOf(key)/bucketIDs))
		if v.counts[bucket] == nil {
			v.counts[bucket] = &count{}
		}
		v.counts[bucket].add(codec.TradeSide(value), 1)
	case kindAccountTrade:
		v.trades[account()]++
	case kindAccountPair:
		v.trades[account()]--
		return nil
	case kindOrder:
		var o persistence.Order
		if err := codec.DecodeOrder(value, account(), idOf(key), &o); err != nil {
			return err
		}
		v.orders[account()]++
		if o.ClientID != "" {
			v.clients[o.Account] ^= uint32(codec.At(s.clientOrder(&o)))
		}
	case kindOrderClient:
		v.clients[account()] ^= uint32(codec.At(key))
		return nil
	case kindOrderPair:
		v.orders[account()]--
		return nil
	case kindWithdrawal:
		var d persistence.Withdrawal
		if err := codec.DecodeWithdrawal(value, idOf(key), &d); err != nil {
			return err
		}
		if d.Account != 0 {
			v.withdrawals[d.Account]++
		}
		return nil
	case kindWithdrawalOf:
		v.withdrawals[account()]--
		return nil
	case kindCount:
		return v.countRow(key, value)
	case kindList:
		return v.counter(rest, value)
	case kindReference:
		var p persistence.Deposit
		if err := codec.DecodeReference(value, string(rest), &p); err != nil {
			return err
		}
		v.count(string(s.reference("")), p.ID)
		return nil
	case kindDeposit, kindCandle:
	default:
		return nil
	}
	v.note(key)
	return nil
}

// note counts a row of a list that has a counter.
func (v *verifier) note(key []byte) {
	v.count(string(key[:len(key)-8]), idOf(key))
}

func (v *verifier) count(list string, id uint64) {
	if v.lists[list] == nil {
		v.lists[list] = &counter{}
	}
	v.lists[list].note(id)
}

func (v *verifier) countRow(key, value []byte) error {
	want, err := decodeCount(value)
	if err != nil {
		return err
	}
	is := v.counts[string(key)]
	delete(v.counts, string(key))
	if is == nil {
		is = &count{}
	}
	if *is != want {
		return fmt.Errorf("%s: %s: it says %d rows, there are %d", v.s, v.s.placeOf(key),
			want.matching(0), is.matching(0))
	}
	return nil
}

func (v *verifier) counter(list, value []byte) error {
	want, err := v.s.decodeCounter(value)
	if err != nil {
		return err
	}
	key := string(slices.Concat(v.s.prefix, list))
	is := v.lists[key]
	delete(v.lists, key)
	if is == nil {
		is = &counter{}
	}
	if is.rows != want.rows || is.rows > 0 && *is != want {
		return fmt.Errorf(
			"%s: %s, list %x: its counter says %d rows from %d to %d, there are %d from %d to %d",
			v.s, names[list[0]],
			list[1:], want.rows, want.oldest, want.newest, is.rows, is.oldest, is.newest)
	}
	return nil
}

// compare reports the differences that are left.
func (v *verifier) compare() {
	for list, c := range v.lists {
		v.wrong(fmt.Sprintf("%s: %s: %d rows without a counter", v.s,
			v.s.placeOf([]byte(list)), c.rows))
	}
	for key := range v.counts {
		if !bytes.HasPrefix([]byte(key), v.s.key(kindCount)) {
			continue
		}
		v.wrong(fmt.Sprintf("%s: %s: it is missing", v.s, v.s.placeOf([]byte(key))))
	}
	for _, lists := range []struct {
		more map[uint32]int
		what string
	}{{v.trades, "trades, and of them by pair"}, {v.orders, "closed orders, and of them by pair"},
		{v.withdrawals, "withdrawals in the list of all, and of them in its own"}} {
		for account, n := range lists.more {
			if n != 0 {
				v.wrong(
					fmt.Sprintf(
						"%s: account %d has another number of %s: the first less the second is %d",
						v.s, account, lists.what, n))
			}
		}
	}
	for account, rest := range v.clients {
		if rest != 0 {
			v.wrong(fmt.Sprintf("%s: the index of client ids of account %d is not that of its "+
				"closed orders", v.s, account))
		}
	}
}
