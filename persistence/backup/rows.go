package backup

import (
	"fmt"
	"strings"

	"exchange/core/wire"
	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// rows has room for one row of each kind. A row's bytes are those of the stores. The fields that
// stores keep in a row's key precede it, as uvarints.
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

// addTo appends the row to others of its kind.
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

// check refuses a row that every store would reject: with numbers or texts beyond their bounds.
func (r *rows) check() error {
	r.alone.Reset()
	r.addTo(&r.alone)
	if err := codec.CheckWrites(0, 1, &r.alone); err != nil {
		// the backup is damaged, or this program is too old
		return fmt.Errorf("a row has values unknown to this program, or that are "+
			"impossible: %s",
			strings.TrimPrefix(err.Error(), persistence.ErrInvalid.Error()+": "))
	}
	return nil
}

func (r *rows) decode(kind byte, b []byte) error {
	r.kind = kind
	d := wire.Read(b)
	var err error
	switch kind {
	case partTrade:
		id := d.Uint()
		err = codec.DecodeTrade(d.Rest(), id, &r.trade)
	case partOrder:
		account, id := d.U32(), d.Uint()
		err = codec.DecodeOrder(d.Rest(), account, id, &r.order)
	case partDeposit:
		account, id := d.U32(), d.Uint()
		err = codec.DecodeDeposit(d.Rest(), account, id, &r.deposit)
	case partWithdrawal:
		id := d.Uint()
		err = codec.DecodeWithdrawal(d.Rest(), id, &r.withdrawal)
	case partCandle:
		pair, frame, time := d.U16(), d.U8(), d.Uint()
		err = codec.DecodeCandle(d.Rest(), pair, frame, time, &r.candle)
	case partAction:
		seq := d.Uint()
		err = codec.DecodeAction(d.Rest(), seq, &r.action)
	case partNonce:
		r.nonce.Nonce = d.Uint()
		r.nonce.Key = string(d.Rest())
	case partInfo, partImage:
		return fmt.Errorf("a part of kind %q is among the rows", kind)
	default:
		return fmt.Errorf("%w: it has a part of kind %q, which this program does not read; run "+
			"the newer program that wrote it", persistence.ErrVersion, kind)
	}
	if d.Bad() {
		return fmt.Errorf("a row of kind %q: %s", kind, d.Fault())
	}
	if err != nil {
		return err
	}
	return r.check()
}
