package codec

import (
	"encoding/binary"
	"fmt"

	"exchange/core/money"
	"exchange/persistence"
)

// AppendDeposit writes everything of p but its id and its account, which its list knows.
func AppendDeposit(dst []byte, p *persistence.Deposit) []byte {
	dst = append(dst, Version)
	dst = binary.AppendUvarint(dst, uint64(p.Currency))
	dst = binary.AppendUvarint(dst, uint64(p.Amount))
	dst = binary.AppendUvarint(dst, uint64(p.TimeUs))
	return appendText(dst, p.Reference)
}

// DecodeDeposit reads what AppendDeposit wrote.
func DecodeDeposit(row []byte, account uint32, id uint64, p *persistence.Deposit) error {
	d := open(row)
	*p = persistence.Deposit{
		ID:        id,
		Account:   account,
		Currency:  uint16(d.upTo(1<<16 - 1)),
		Amount:    money.Amount(d.upTo(1<<63 - 1)),
		TimeUs:    int64(d.uvarint()),
		Reference: d.text(),
	}
	return d.close("deposit", id)
}

// AppendReference writes an entry of the index of references: the account and the id of p, and its
// row.
func AppendReference(dst []byte, p *persistence.Deposit) []byte {
	dst = append(dst, Version)
	dst = binary.AppendUvarint(dst, uint64(p.Account))
	dst = binary.AppendUvarint(dst, p.ID)
	return AppendDeposit(dst, p)
}

// DecodeReference reads what AppendReference wrote, for the entry of a reference.
func DecodeReference(entry []byte, reference string, p *persistence.Deposit) error {
	if len(entry) == 0 || entry[0] != Version {
		return fmt.Errorf("%w: the entry of reference %q has another version",
			persistence.ErrCorrupt, reference)
	}
	entry = entry[1:]
	account, n := binary.Uvarint(entry)
	id, m := binary.Uvarint(entry[max(n, 0):])
	if n <= 0 || m <= 0 || account > 1<<32-1 {
		return fmt.Errorf("%w: the entry of reference %q is cut off",
			persistence.ErrCorrupt, reference)
	}
	if err := DecodeDeposit(entry[n+m:], uint32(account), id, p); err != nil {
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
	dst = appendText(dst, w.Name)
	dst = binary.AppendUvarint(dst, uint64(len(w.Holdings)))
	for i := range w.Holdings {
		h := &w.Holdings[i]
		dst = appendText(dst, h.Currency)
		dst = appendBalance(dst, h.Balance)
		dst = appendBalance(dst, h.Reserve)
	}
	return dst
}

// DecodeWallet reads what AppendWallet wrote.
func DecodeWallet(row []byte, account uint32, w *persistence.Wallet) error {
	d := open(row)
	*w = persistence.Wallet{Account: account, Seq: d.uvarint(), Name: d.text()}
	for n := d.upTo(uint64(len(row))); n > 0 && !d.bad; n-- {
		w.Holdings = append(w.Holdings,
			persistence.Holding{Currency: d.text(), Balance: d.balance(), Reserve: d.balance()})
	}
	return d.close("wallet", uint64(account))
}

// AppendWithdrawal writes everything of d but its id.
func AppendWithdrawal(dst []byte, d *persistence.Withdrawal) []byte {
	version := byte(Version)
	if d.ClientID != "" {
		version = versionMore
	}
	dst = append(dst, version, d.Status)
	dst = binary.AppendUvarint(dst, d.ClosedSeq)
	dst = binary.AppendUvarint(dst, uint64(d.Account))
	dst = binary.AppendUvarint(dst, uint64(d.Currency))
	dst = binary.AppendUvarint(dst, uint64(d.Amount))
	dst = binary.AppendUvarint(dst, uint64(d.TimeUs))
	dst = binary.AppendVarint(dst, d.ClosedUs-d.TimeUs)
	dst = appendText(dst, d.Address)
	dst = appendText(dst, d.Details)
	if d.ClientID != "" {
		dst = appendText(dst, d.ClientID)
	}
	return dst
}

// DecodeWithdrawal reads what AppendWithdrawal wrote.
func DecodeWithdrawal(row []byte, id uint64, d *persistence.Withdrawal) error {
	r := openMore(row)
	*d = persistence.Withdrawal{
		ID:        id,
		Status:    r.byte(),
		ClosedSeq: r.uvarint(),
		Account:   uint32(r.upTo(1<<32 - 1)),
		Currency:  uint16(r.upTo(1<<16 - 1)),
		Amount:    money.Amount(r.upTo(1<<63 - 1)),
		TimeUs:    int64(r.uvarint()),
	}
	d.ClosedUs = d.TimeUs + r.varint()
	d.Address = r.text()
	d.Details = r.text()
	if r.more {
		d.ClientID = r.text()
		r.bad = r.bad || d.ClientID == ""
	}
	return r.close("withdrawal", id)
}
