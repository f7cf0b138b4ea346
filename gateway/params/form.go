package params

import (
	"bytes"
	"unicode/utf8"
)

// ParseForm fills the Set from an urlencoded body. A name that appears twice is refused.
// After an error the Set is empty.
func (s *Set) ParseForm(body []byte) error { return s.parsePairs(body, refuseRepeat) }

// ParseQuery fills the Set from the query of an address, without the '?'. If a name appears more
// than once, the last one applies. After an error the Set is empty.
func (s *Set) ParseQuery(q []byte) error { return s.parsePairs(q, lastCounts) }

func (s *Set) parsePairs(b []byte, r repeat) error {
	s.Reset()
	for i := 0; i < len(b); {
		stop := len(b)
		if n := bytes.IndexByte(b[i:], '&'); n >= 0 {
			stop = i + n
		}
		if i < stop {
			if err := s.parsePair(b, i, stop, r); err != nil {
				s.Reset()
				return err
			}
		}
		i = stop + 1
	}
	return nil
}

// parsePair reads b[from:to], a name and maybe a value.
func (s *Set) parsePair(b []byte, from, to int, r repeat) (err error) {
	p := Param{Kind: Form}
	equal, value := to, to
	if n := bytes.IndexByte(b[from:to], '='); n >= 0 {
		equal = from + n
		value = equal + 1
	}
	if p.Name, err = s.decode(b, from, equal); err != nil {
		return err
	}
	if p.Value, err = s.decode(b, value, to); err != nil {
		return err
	}
	p.raw = b[value:to:to]
	return s.insert(&p, r)
}

// decode returns the text of b[from:to]: the same bytes if nothing is encoded.
func (s *Set) decode(b []byte, from, to int) ([]byte, error) {
	var seen byte
	for i := from; i < to; i++ {
		c := b[i]
		if c == '%' || c == '+' {
			return s.decodeEscaped(b, from, i, to)
		}
		seen |= c
	}
	text := b[from:to:to]
	if !isText(text, seen) {
		return nil, expected(from, "valid UTF-8")
	}
	return text, nil
}

// decodeEscaped decodes b[from:to], whose first encoded character is at i, into the scratch buffer.
func (s *Set) decodeEscaped(b []byte, from, i, to int) ([]byte, error) {
	s.reserve(len(b) - from)
	start := len(s.scratch)
	s.scratch = append(s.scratch, b[from:i]...)
	for ; i < to; i++ {
		c := b[i]
		switch c {
		case '+':
			c = ' '
		case '%':
			if i+2 >= to || unhex[b[i+1]] > 15 || unhex[b[i+2]] > 15 {
				return nil, expected(i, "'%' and two hexadecimal digits")
			}
			c = unhex[b[i+1]]<<4 | unhex[b[i+2]]
			i += 2
		}
		s.scratch = append(s.scratch, c)
	}
	text := s.scratch[start:len(s.scratch):len(s.scratch)]
	if !utf8.Valid(text) {
		return nil, expected(from, "valid UTF-8")
	}
	return text, nil
}

// unhex holds the value of a hexadecimal digit of either case; above 15 for every other byte.
var unhex = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xFF
	}
	for i := range byte(10) {
		t['0'+i] = i
	}
	for i := range byte(6) {
		t['a'+i], t['A'+i] = 10+i, 10+i
	}
	return t
}()
