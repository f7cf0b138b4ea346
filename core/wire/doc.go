// Package wire reads the bytes of records, rows, images and messages between nodes: numbers as
// varints (encoding/binary) in their shortest form, texts behind their length. What writes them
// appends to a slice:
//
//	b = wire.AppendText(wire.AppendBalance(nil, balance), "BTC")
//
//	r := wire.Read(b)
//	balance, code := r.Balance(), r.Text(8)
//	if !r.End() {
//		return fmt.Errorf("damaged: %s", r.Fault())
//	}
//
//	reader.go   the reader, and what writes what it reads
//	value.go    whole structs, for rare messages
//	version.go  the error of bytes that another version of the program has written
package wire
