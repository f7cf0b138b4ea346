package codec

import (
	"encoding/binary"
	"fmt"

	"exchange/core/wire"
	"exchange/persistence"
)

// AppendDeposit writes everything of p but its id and its account, which its list holds.
func AppendDeposit(dst []byte, p *persistence.Deposit) []byte {
	dst = append(dst, Version)
	dst = wire.AppendUints(dst, uint64(p.Currency), uint64(p.Amount), uint64(p.TimeUs))
	return wire.AppendText(dst, p.Reference)
}

// DecodeDeposit decodes a row of AppendDeposit.
func DecodeDeposit(row []byte, account uint32, id uint64, p *persistence.Deposit) error {
	d := open(row)
	*p = persistence.Deposit{
		ID:        id,
		Account:   account,
		Currency:  d.U16(),
		Amount:    d.Amount(),
		TimeUs:    int64(d.Uint()),
		Reference: d.text(),
	}
	return d.close("deposit", id)
}

// AppendReference writes an entry of the index of references: the account and the id of p, and its
// row.
func AppendReference(dst []byte, p *persistence.Deposit) []byte {
	dst = append(dst, Version)
	dst = wire.AppendUints(dst, uint64(p.Account), p.ID)
	return AppendDeposit(dst, p)
}

// DecodeReference decodes the entry of a reference.
func DecodeReference(entry []byte, reference string, p *persistence.Deposit) error {
	d := open(entry)
	account, id := d.U32(), d.Uint()
	if d.Bad() {
		return fmt.Errorf("%w: the entry of reference %q: %s", persistence.ErrCorrupt, reference,
			d.Fault())
	}
	if err := DecodeDeposit(d.Rest(), account, id, p); err != nil {
		return err
	}
	if p.Reference != reference {
		return fmt.Errorf("%w: the entry of reference %q is that of %q", persistence.ErrCorrupt,
			reference, p.Reference)
	}
	return nil
}

// AppendWallet writes everything of w but its account.
func AppendWallet(dst []byte, w *persistence.Wallet) []byte {
	dst = append(dst, Version)
	dst = binary.AppendUvarint(dst, w.Seq)
	dst = wire.AppendText(dst, w.Name)
	dst = binary.AppendUvarint(dst, uint64(len(w.Holdings)))
	for i := range w.Holdings {
		h := &w.Holdings[i]
		dst = wire.AppendText(dst, h.Currency)
		dst = appendBalance(dst, h.Balance)
		dst = appendBalance(dst, h.Reserve)
	}
	return dst
}

// DecodeWallet decodes a row of AppendWallet.
func DecodeWallet(row []byte, account uint32, w *persistence.Wallet) error {
	d := open(row)
	*w = persistence.Wallet{Account: account, Seq: d.Uint(), Name: d.text()}
	for n := d.UpTo(uint64(len(row))); n > 0 && !d.Bad(); n-- {
		w.Holdings = append(w.Holdings,
			persistence.Holding{Currency: d.text(), Balance: d.balance(), Reserve: d.balance()})
	}
	return d.close("wallet", uint64(account))
}

// AppendWithdrawal writes everything of d but its id.
func AppendWithdrawal(dst []byte, d *persistence.Withdrawal) []byte {
	dst = append(dst, Version, d.Status)
	dst = wire.AppendUints(dst, d.ClosedSeq, uint64(d.Account), uint64(d.Currency),
		uint64(d.Amount), uint64(d.TimeUs))
	dst = binary.AppendVarint(dst, d.ClosedUs-d.TimeUs)
	dst = wire.AppendText(dst, d.Address)
	dst = wire.AppendText(dst, d.Details)
	return wire.AppendText(dst, d.ClientID)
}

// DecodeWithdrawal decodes a row of AppendWithdrawal.
func DecodeWithdrawal(row []byte, id uint64, d *persistence.Withdrawal) error {
	r := open(row)
	*d = persistence.Withdrawal{
		ID:        id,
		Status:    r.Byte(),
		ClosedSeq: r.Uint(),
		Account:   r.U32(),
		Currency:  r.U16(),
		Amount:    r.Amount(),
		TimeUs:    int64(r.Uint()),
	}
	d.ClosedUs = d.TimeUs + r.Int()
	d.Address = r.text()
	d.Details = r.text()
	d.ClientID = r.text()
	return r.close("withdrawal", id)
}
