package codec

import (
	"encoding/binary"

	"exchange/core/wire"
	"exchange/persistence"
)

// AppendAction writes everything of a but its sequence.
func AppendAction(dst []byte, a *persistence.Action) []byte {
	dst = append(dst, Version)
	dst = binary.AppendUvarint(dst, uint64(a.TimeUs))
	dst = wire.AppendText(dst, a.Operator)
	return wire.AppendText(dst, a.What)
}

// DecodeAction decodes a row of AppendAction.
func DecodeAction(row []byte, seq uint64, a *persistence.Action) error {
	d := open(row)
	*a = persistence.Action{Seq: seq, TimeUs: int64(d.Uint()),
		Operator: d.text(), What: d.text()}
	return d.close("action", seq)
}
