// Package wire encodes the bytes of records, rows, images and messages between nodes: numbers as
// varints (encoding/binary) in their shortest form, texts with a length prefix. Writers append to a
// slice:
//
//		b = wire.AppendText(wire.AppendBalance(nil, balance), "BTC")
//
//		r := wire.Read(b)
//		balance, code := r.Balance(), r.Text(8)
//		if !r.End() {
//			return fmt.Errorf("damaged: %s", r.Fault())
//		}
//
//	 reader.go   the reader, and the functions that append
//	 value.go    whole structs, for rare messages
//	 version.go  the error for bytes from another version of the program
package wire
