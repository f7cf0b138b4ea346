package duplex

import (
	"encoding/binary"
	"math"
	"testing"
)

// A message is read as it was written, to its last byte.
func TestAMessageIsReadAsItWasWritten(t *testing.T) {
	b := binary.AppendUvarint([]byte{7, 1}, math.MaxUint64)
	b = binary.AppendVarint(b, math.MinInt64)
	b = append(binary.AppendUvarint(b, 4), "textrest"...)
	p := Parse(b)
	if x := p.Byte(); x != 7 || !p.Flag() {
		t.Error(x)
	}
	if x, y := p.Number(), p.Signed(); x != math.MaxUint64 || y != math.MinInt64 {
		t.Error(x, y)
	}
	if text, left := string(p.Bytes(4)), p.Left(); text != "text" || left != 4 || p.Whole() {
		t.Error(text, left)
	}
	if rest := string(p.Rest()); rest != "rest" || !p.Whole() || p.Bad() {
		t.Error(rest)
	}
}

// What makes no sense is noted, and all that follows is nothing.
func TestWhatMakesNoSenseIsNoted(t *testing.T) {
	for what, x := range map[string]struct {
		message string
		read    func(p *Parser)
	}{
		"no byte":       {"", func(p *Parser) { p.Byte() }},
		"a flag of 2":   {"\x02rest", func(p *Parser) { p.Flag() }},
		"no number":     {"", func(p *Parser) { p.Number() }},
		"half a number": {"\x80", func(p *Parser) { p.Number() }},
		"a number too large": {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
			func(p *Parser) { p.Number() }},
		"half a sign":        {"\x80", func(p *Parser) { p.Signed() }},
		"a text too short":   {"\x04tex", func(p *Parser) { p.Bytes(4) }},
		"a text too long":    {"\x04text", func(p *Parser) { p.Bytes(3) }},
		"a caller's finding": {"rest", (*Parser).Fail},
	} {
		p := Parse([]byte(x.message))
		x.read(&p)
		if !p.Bad() || p.Whole() || p.Left() > 0 || p.Byte() != 0 || p.Number() != 0 ||
			p.Bytes(9) != nil {
			t.Errorf("%s is read: %+v", what, p)
		}
	}
}
