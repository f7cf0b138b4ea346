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

// A verifier reads all projections from one state of the folder. Checksums reveal a wrong row;
// counters, count rows and the lists with the same rows reveal a missing one.
type verifier struct {
	s       *Store
	wrong   func(place string)
	rows    int
	lists   map[string]*counter   // of the rows found, by list
	buckets map[string]*sideCount // by the key of a count row
	// by account, the rows of a list less those of another list that must have the same number
	trades, orders, withdrawals map[uint32]int
	// by account: the exclusive or of checksums of the index's keys, and of those that the rows of
	// orders must have there
	clients map[uint32]uint32
}

// Verify checks each value of the projections.
func (s *Store) Verify(ctx context.Context, wrong func(place string)) (int, error) {
	v := &verifier{s: s, wrong: wrong, lists: map[string]*counter{},
		buckets: map[string]*sideCount{}, trades: map[uint32]int{},
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
			value, err := v.s.unseal(key, stored)
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
		if v.buckets[bucket] == nil {
			v.buckets[bucket] = &sideCount{}
		}
		v.buckets[bucket].add(codec.TradeSide(value), 1)
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
		return v.checkBucket(key, value)
	case kindList:
		return v.checkCounter(rest, value)
	case kindReference:
		var p persistence.Deposit
		if err := codec.DecodeReference(value, string(rest), &p); err != nil {
			return err
		}
		v.tally(string(s.reference("")), p.ID)
		return nil
	case kindDeposit, kindCandle:
	default:
		return nil
	}
	v.tallyRow(key)
	return nil
}

// tallyRow counts a row of a list that has a counter.
func (v *verifier) tallyRow(key []byte) {
	v.tally(string(key[:len(key)-8]), idOf(key))
}

func (v *verifier) tally(list string, id uint64) {
	if v.lists[list] == nil {
		v.lists[list] = &counter{}
	}
	v.lists[list].note(id)
}

func (v *verifier) checkBucket(key, value []byte) error {
	want, err := decodeCount(value)
	if err != nil {
		return err
	}
	is := v.buckets[string(key)]
	delete(v.buckets, string(key))
	if is == nil {
		is = &sideCount{}
	}
	if *is != want {
		return fmt.Errorf("%s: %s: it says %d rows, there are %d", v.s, v.s.placeOf(key),
			want.matching(0), is.matching(0))
	}
	return nil
}

func (v *verifier) checkCounter(list, value []byte) error {
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
			v.s, kindNames[list[0]],
			list[1:], want.rows, want.oldest, want.newest, is.rows, is.oldest, is.newest)
	}
	return nil
}

// compare reports the remaining differences.
func (v *verifier) compare() {
	for list, c := range v.lists {
		v.wrong(fmt.Sprintf("%s: %s: %d rows without a counter", v.s,
			v.s.placeOf([]byte(list)), c.rows))
	}
	for key := range v.buckets {
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
