package backup

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// rows has room for one row of each kind. A row's bytes are those of the stores. The parts that
// stores have in a row's key stand before it, as uvarints.
type rows struct {
	kind       byte
	trade      persistence.Trade
	order      persistence.Order
	deposit    persistence.Deposit
	withdrawal persistence.Withdrawal
	candle     persistence.Candle
	action     persistence.Action
	nonce      persistence.Nonce

	alone persistence.Writes // the one row, for check
}

// addTo puts the row behind others of its kind.
func (r *rows) addTo(w *persistence.Writes) {
	switch r.kind {
	case partTrade:
		w.Trades = append(w.Trades, r.trade)
	case partOrder:
		w.Orders = append(w.Orders, r.order)
	case partDeposit:
		w.Deposits = append(w.Deposits, r.deposit)
	case partWithdrawal:
		w.Withdrawals = append(w.Withdrawals, r.withdrawal)
	case partCandle:
		w.Candles = append(w.Candles, r.candle)
	case partAction:
		w.Actions = append(w.Actions, r.action)
	case partNonce:
		w.Nonces = append(w.Nonces, r.nonce)
	}
}

// check refuses a row that no store would take: with numbers or texts beyond their bounds.
func (r *rows) check() error {
	r.alone.Reset()
	r.addTo(&r.alone)
	if err := codec.CheckWrites(0, 1, &r.alone); err != nil {
		// the fault is the backup's, or that of this program's age
		return fmt.Errorf("a row has values that this program does not know, or that are "+
			"impossible: %s",
			strings.TrimPrefix(err.Error(), persistence.ErrInvalid.Error()+": "))
	}
	return nil
}

func keys(b []byte, ks ...uint64) []byte {
	for _, k := range ks {
		b = binary.AppendUvarint(b, k)
	}
	return b
}

func (r *rows) decode(kind byte, b []byte) error {
	r.kind = kind
	var bad bool
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			bad = true
			return 0
		}
		b = b[n:]
		return v
	}
	upTo := func(limit uint64) uint64 {
		v := next()
		bad = bad || v > limit
		return v
	}
	var err error
	switch kind {
	case partTrade:
		id := next()
		err = codec.DecodeTrade(b, id, &r.trade)
	case partOrder:
		account, id := upTo(math.MaxUint32), next()
		err = codec.DecodeOrder(b, uint32(account), id, &r.order)
	case partDeposit:
		account, id := upTo(math.MaxUint32), next()
		err = codec.DecodeDeposit(b, uint32(account), id, &r.deposit)
	case partWithdrawal:
		id := next()
		err = codec.DecodeWithdrawal(b, id, &r.withdrawal)
	case partCandle:
		pair, frame, time := upTo(math.MaxUint16), upTo(math.MaxUint8), next()
		err = codec.DecodeCandle(b, uint16(pair), uint8(frame), time, &r.candle)
	case partAction:
		seq := next()
		err = codec.DecodeAction(b, seq, &r.action)
	case partNonce:
		r.nonce.Nonce = next()
		r.nonce.Key = string(b)
	case partInfo, partImage:
		return fmt.Errorf("a part of kind %q stands among the rows", kind)
	default:
		return fmt.Errorf("%w: it has a part of kind %q, which this program does not read; run "+
			"the newer program that wrote it", persistence.ErrVersion, kind)
	}
	if bad {
		return fmt.Errorf("a row of kind %q is cut off, or has impossible values", kind)
	}
	if err != nil {
		return err
	}
	return r.check()
}
