package duplex

import "encoding/binary"

// A Parser reads the numbers and texts of a message. At the first thing that makes no sense it
// notes so, and reads zeros from then on. Nothing that it returns is longer than the message.
type Parser struct {
	rest []byte
	bad  bool
}

// Parse begins to read a message, which must not change meanwhile.
func Parse(message []byte) Parser { return Parser{rest: message} }

// Fail notes that what was read makes no sense.
func (p *Parser) Fail() { p.rest, p.bad = nil, true }

// Bad reports whether something made no sense.
func (p *Parser) Bad() bool { return p.bad }

// Left returns how many bytes have not been read.
func (p *Parser) Left() int { return len(p.rest) }

// Rest reads all that is left, which is the message's.
func (p *Parser) Rest() []byte {
	x := p.rest
	p.rest = nil
	return x
}

// Whole reports whether all of the message was read, and made sense.
func (p *Parser) Whole() bool { return !p.bad && len(p.rest) == 0 }

// Byte reads one byte.
func (p *Parser) Byte() byte {
	if len(p.rest) == 0 {
		p.Fail()
		return 0
	}
	x := p.rest[0]
	p.rest = p.rest[1:]
	return x
}

// Flag reads a byte that is 0 or 1.
func (p *Parser) Flag() bool {
	x := p.Byte()
	if x > 1 {
		p.Fail()
	}
	return x == 1
}

// Number reads what binary.AppendUvarint has written.
func (p *Parser) Number() uint64 { return number(p, binary.Uvarint) }

// Signed reads what binary.AppendVarint has written.
func (p *Parser) Signed() int64 { return number(p, binary.Varint) }

func number[T uint64 | int64](p *Parser, read func([]byte) (T, int)) T {
	x, n := read(p.rest)
	if n <= 0 {
		p.Fail()
		return 0
	}
	p.rest = p.rest[n:]
	return x
}

// Bytes reads a number, and so many bytes, which are the message's. More than most make no sense.
func (p *Parser) Bytes(most int) []byte {
	n := p.Number()
	if n > uint64(most) || n > uint64(len(p.rest)) {
		p.Fail()
		return nil
	}
	x := p.rest[:n]
	p.rest = p.rest[n:]
	return x
}
