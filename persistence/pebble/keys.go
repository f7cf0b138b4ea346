package pebble

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Kinds of keys, the byte after the engine id and its zero byte. Numbers in keys are big-endian, so
// that the order of bytes is the order of numbers.
const (
	kindMeta         = 'm' // epoch, token, owner, where the journal begins, snapshots
	kindWatermark    = 'x' // uint64
	kindChunk        = 's' // sequence, epoch, unique, chunk number: a piece of a snapshot
	kindWallet       = 'w' // account: wallet row
	kindNonce        = 'n' // public key: uint64
	kindPairTrade    = 't' // pair, id: trade row
	kindTrade        = 'T' // id: trade row, over all pairs
	kindAccountTrade = 'a' // account, id: trade row
	kindAccountPair  = 'b' // account, pair, id: trade row
	kindOrder        = 'o' // account, id: order row
	kindOrderPair    = 'p' // account, pair, id: order row
	kindOrderClient  = 'q' // account, length and bytes of the client id, id: nothing
	kindDeposit      = 'd' // account, id: deposit row
	kindReference    = 'r' // reference: account and id of its deposit, and the row
	kindWithdrawal   = 'u' // id: withdrawal row, over all accounts
	kindWithdrawalOf = 'v' // account, id: withdrawal row
	kindCandle       = 'k' // pair, frame, time: candle row
	kindAction       = 'l' // sequence: action row
	kindCount        = 'c' // a trade list's prefix, id/1000: rows by the taker's side
	kindLink         = 'y' // sequence that an Apply ended at: the one that it began at
	kindFlush        = 'f' // number of a flush: the watermark at its beginning
	kindList         = 'z' // a list's prefix: how many rows, the oldest and the newest id
)

// keyRoom is enough for most keys. It is a constant, so that a key that its caller does not keep is
// on the stack.
const keyRoom = 96

// key starts a key of one kind.
func (s *Store) key(kind byte) []byte {
	return append(append(make([]byte, 0, keyRoom), s.prefix...), kind)
}

func u16(k []byte, v uint16) []byte { return binary.BigEndian.AppendUint16(k, v) }
func u32(k []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(k, v) }
func u64(k []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(k, v) }

// with returns a copy of prefix with an id after it, in dst's memory.
func with(dst, prefix []byte, id uint64) []byte { return u64(append(dst[:0], prefix...), id) }

// idOf returns the id at the end of a key.
func idOf(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }

// after returns the first key that does not start with prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil // only 0xff bytes: never, because an engine id is text
}

func (s *Store) pairTrades(pair uint16) []byte { return u16(s.key(kindPairTrade), pair) }
func (s *Store) allTrades() []byte             { return s.key(kindTrade) }
func (s *Store) accountTrades(account uint32) []byte {
	return u32(s.key(kindAccountTrade), account)
}
func (s *Store) accountPairTrades(account uint32, pair uint16) []byte {
	return u16(u32(s.key(kindAccountPair), account), pair)
}
func (s *Store) orders(account uint32) []byte { return u32(s.key(kindOrder), account) }
func (s *Store) pairOrders(account uint32, pair uint16) []byte {
	return u16(u32(s.key(kindOrderPair), account), pair)
}

// clientOrders returns the list of the orders with a client id. The length in front of the id makes
// no list's key the prefix of another's.
func (s *Store) clientOrders(account uint32, client string) []byte {
	k := append(u32(s.key(kindOrderClient), account), byte(len(client)))
	return append(k, client...)
}
func (s *Store) deposits(account uint32) []byte { return u32(s.key(kindDeposit), account) }

// reference returns the key of the deposit with that reference; "": the prefix of all.
func (s *Store) reference(reference string) []byte {
	return append(s.key(kindReference), reference...)
}

// withdrawals returns the list of an account; 0: of all.
func (s *Store) withdrawals(account uint32) []byte {
	if account == 0 {
		return s.key(kindWithdrawal)
	}
	return u32(s.key(kindWithdrawalOf), account)
}
func (s *Store) candles(pair uint16, frame uint8) []byte {
	return append(u16(s.key(kindCandle), pair), frame)
}
func (s *Store) actions() []byte { return s.key(kindAction) }

// kindNames are for messages.
var kindNames = map[byte]string{
	kindWatermark: "the watermark", kindWallet: "wallet", kindNonce: "nonce of key",
	kindPairTrade: "trade of a pair",
	kindTrade:     "trade", kindAccountTrade: "trade of an account",
	kindAccountPair: "trade of an account in a pair",
	kindOrder:       "closed order", kindOrderPair: "closed order of a pair",
	kindOrderClient: "closed order of a client id",
	kindDeposit:     "deposit", kindReference: "reference", kindWithdrawal: "withdrawal",
	kindWithdrawalOf: "withdrawal of an account", kindCandle: "candle",
	kindLink: "link to sequence", kindFlush: "row of flush", kindMeta: "head of the engine",
	kindChunk:  "piece of a snapshot",
	kindAction: "action", kindCount: "count of trades", kindList: "counter of a list",
}

// placeOf describes a value's place in messages.
func (s *Store) placeOf(key []byte) string {
	rest := bytes.TrimPrefix(key, s.prefix)
	if len(rest) == 0 {
		return fmt.Sprintf("key %x", key)
	}
	kind, rest := rest[0], rest[1:]
	name := kindNames[kind]
	switch kind {
	case kindNonce, kindReference:
		return fmt.Sprintf("%s %q", name, rest)
	case kindWallet, kindWatermark, kindList, kindCount, kindMeta, kindChunk:
		return fmt.Sprintf("%s %x", name, rest)
	}
	if len(rest) < 8 {
		return fmt.Sprintf("%s, key %x", name, key)
	}
	if id := idOf(key); len(rest) > 8 {
		return fmt.Sprintf("%s, list %x, id %d", name, rest[:len(rest)-8], id)
	} else {
		return fmt.Sprintf("%s %d", name, id)
	}
}

// counterKey returns the key of a list's counter.
func (s *Store) counterKey(list []byte) []byte {
	return append(s.key(kindList), list[len(s.prefix):]...)
}

// countPrefix is the prefix of a trade list's count rows.
func (s *Store) countPrefix(list []byte) []byte {
	return append(s.key(kindCount), list[len(s.prefix):]...)
}
