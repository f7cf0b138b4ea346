package wire

import (
	"encoding/binary"
	"math"
	"testing"
)

func TestMessagesRoundTrip(t *testing.T) {
	b := binary.AppendUvarint([]byte{7, 1}, math.MaxUint64)
	b = binary.AppendVarint(b, math.MinInt64)
	b = append(binary.AppendUvarint(b, 4), "textrest"...)
	p := Read(b)
	if x := p.Byte(); x != 7 || !p.Flag() {
		t.Error(x)
	}
	if x, y := p.Uint(), p.Int(); x != math.MaxUint64 || y != math.MinInt64 {
		t.Error(x, y)
	}
	if text, left := string(p.Bytes(4)), p.Len(); text != "text" || left != 4 {
		t.Error(text, left)
	}
	if rest := string(p.Rest()); rest != "rest" || !p.End() || p.Bad() {
		t.Error(rest)
	}
}

func TestMalformedInputSetsTheFault(t *testing.T) {
	for what, x := range map[string]struct {
		message string
		read    func(p *Reader)
	}{
		"no byte":       {"", func(p *Reader) { p.Byte() }},
		"a flag of 2":   {"\x02rest", func(p *Reader) { p.Flag() }},
		"no number":     {"", func(p *Reader) { p.Uint() }},
		"half a number": {"\x80", func(p *Reader) { p.Uint() }},
		"a number too large": {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
			func(p *Reader) { p.Uint() }},
		"half a sign":                   {"\x80", func(p *Reader) { p.Int() }},
		"a text too short":              {"\x04tex", func(p *Reader) { p.Bytes(4) }},
		"a text too long":               {"\x04text", func(p *Reader) { p.Bytes(3) }},
		"a number with a byte too many": {"\x81\x00", func(p *Reader) { p.Uint() }},
		"bytes left over":               {"rest", func(p *Reader) { p.End() }},
		"a caller's finding":            {"rest", func(p *Reader) { p.Fail("why") }},
	} {
		p := Read([]byte(x.message))
		x.read(&p)
		if !p.Bad() || p.End() || p.Len() > 0 || p.Byte() != 0 || p.Uint() != 0 ||
			p.Bytes(9) != nil {
			t.Errorf("%s is read: %+v", what, p)
		}
	}
}
