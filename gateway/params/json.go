package params

import (
	"unicode/utf16"
	"unicode/utf8"
)

// ParseJSON fills the Set from a body that is one JSON object. An empty body is an empty Set.
// After an error the Set is empty.
func (s *Set) ParseJSON(body []byte) error {
	s.Reset()
	if len(body) == 0 {
		return nil
	}
	if err := s.parseObject(body); err != nil {
		s.Reset()
		return err
	}
	return nil
}

func (s *Set) parseObject(b []byte) error {
	i := skipSpace(b, 0)
	if at(b, i) != '{' {
		return expected(i, "'{'")
	}
	i = skipSpace(b, i+1)
	if at(b, i) == '}' {
		return end(b, i+1)
	}
	for {
		var p Param
		var err error
		if p.Name, i, err = s.readName(b, i); err != nil {
			return err
		}
		if i, err = s.readValue(b, i, &p); err != nil {
			return err
		}
		if err = s.insert(&p, refuseRepeat); err != nil {
			return err
		}
		i = skipSpace(b, i)
		switch at(b, i) {
		case ',':
			i = skipSpace(b, i+1)
		case '}':
			return end(b, i+1)
		default:
			return expected(i, "',' or '}'")
		}
	}
}

// readName reads a name and the colon after it. It returns the index of the value.
func (s *Set) readName(b []byte, i int) (name []byte, next int, err error) {
	if at(b, i) != '"' {
		return nil, 0, expected(i, "a name in double quotes")
	}
	if name, i, err = s.readString(b, i+1); err != nil {
		return nil, 0, err
	}
	i = skipSpace(b, i)
	if at(b, i) != ':' {
		return nil, 0, expected(i, "':'")
	}
	return name, skipSpace(b, i+1), nil
}

func (s *Set) readValue(b []byte, i int, p *Param) (next int, err error) {
	switch at(b, i) {
	case '"':
		p.Kind = String
		if p.Value, next, err = s.readString(b, i+1); err != nil {
			return 0, err
		}
		p.raw = b[i:next:next]
		return next, nil
	case '{', '[':
		p.Kind = Nested
		next, err = s.skipNested(b, i)
	default:
		p.Kind, next, err = readLiteral(b, i)
	}
	if err != nil {
		return 0, err
	}
	p.raw = b[i:next:next]
	p.Value = p.raw
	return next, nil
}

// stringStop marks the bytes that cannot be copied from a string as they are.
var stringStop = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = true
	}
	t['"'], t['\\'] = true, true
	return t
}()

// readString reads the string whose opening quote is at i-1. It returns the text, which is a part
// of b unless there are escapes, and the index after the closing quote.
func (s *Set) readString(b []byte, i int) (text []byte, next int, err error) {
	var seen byte
	for j := i; j < len(b); j++ {
		c := b[j]
		if !stringStop[c] {
			seen |= c
			continue
		}
		if c == '\\' {
			return s.readEscaped(b, i, j)
		}
		if c != '"' {
			return nil, 0, expected(j, "an escape instead of a control character")
		}
		if text = b[i:j:j]; !isText(text, seen) {
			return nil, 0, expected(i, "a string of valid UTF-8")
		}
		return text, j + 1, nil
	}
	return nil, 0, expected(len(b), "'\"'")
}

// readEscaped continues the string that starts at from and has its first backslash at i. It decodes
// into the scratch buffer.
func (s *Set) readEscaped(b []byte, from, i int) (text []byte, next int, err error) {
	s.reserve(len(b) - from)
	start := len(s.scratch)
	s.scratch = append(s.scratch, b[from:i]...)
	for i < len(b) {
		c := b[i]
		switch {
		case c == '\\':
			if i, err = s.readEscape(b, i); err != nil {
				return nil, 0, err
			}
		case c == '"':
			// Escapes are whole runes, so they cannot make broken bytes around them whole.
			if text = s.scratch[start:len(s.scratch):len(s.scratch)]; !utf8.Valid(text) {
				return nil, 0, expected(from, "a string of valid UTF-8")
			}
			return text, i + 1, nil
		case c < 0x20:
			return nil, 0, expected(i, "an escape instead of a control character")
		default:
			s.scratch = append(s.scratch, c)
			i++
		}
	}
	return nil, 0, expected(len(b), "'\"'")
}

// readEscape appends the character of the escape at i and returns the index after it.
func (s *Set) readEscape(b []byte, i int) (next int, err error) {
	c := at(b, i+1)
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return s.readUnicode(b, i)
	default:
		return 0, expected(i+1, `one of "\/bfnrtu`)
	}
	s.scratch = append(s.scratch, c)
	return i + 2, nil
}

// readUnicode appends the character of the \uXXXX at i, or of a pair of them. Half a pair is an
// error.
func (s *Set) readUnicode(b []byte, i int) (next int, err error) {
	r, ok := hex4(b, i+2)
	if !ok {
		return 0, expected(i+2, "four hexadecimal digits")
	}
	next = i + 6
	if utf16.IsSurrogate(r) {
		var low rune
		if at(b, next) == '\\' && at(b, next+1) == 'u' {
			low, _ = hex4(b, next+2)
		}
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return 0, expected(i, "a pair of surrogates")
		}
		next += 6
	}
	s.scratch = utf8.AppendRune(s.scratch, r)
	return next, nil
}

func hex4(b []byte, i int) (r rune, ok bool) {
	if i+4 > len(b) {
		return 0, false
	}
	for _, c := range b[i : i+4] {
		d := unhex[c]
		if d > 15 {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

// skipNested checks the object or array at i and returns the index after it. It needs no recursion,
// because only the kind of an open bracket counts. Strings inside are decoded only to check them.
func (s *Set) skipNested(b []byte, i int) (next int, err error) {
	var (
		objects [maxDepth]bool // objects[d]: the bracket open at depth d is '{'
		depth   int
	)
	for {
		// A value is due at i.
		switch c := at(b, i); c {
		case '{', '[':
			if depth == maxDepth {
				return 0, expected(i, "no deeper nesting")
			}
			objects[depth] = c == '{'
			depth++
			i = skipSpace(b, i+1)
			if at(b, i) == c+2 { // '}' is '{'+2 and ']' is '['+2
				depth--
				i++
				break
			}
			if c == '{' {
				if _, i, err = s.readName(b, i); err != nil {
					return 0, err
				}
			}
			continue
		case '"':
			_, i, err = s.readString(b, i+1)
		default:
			_, i, err = readLiteral(b, i)
		}
		if err != nil {
			return 0, err
		}
		if depth, i, err = s.closeBrackets(b, i, &objects, depth); err != nil || depth == 0 {
			return i, err
		}
	}
}

// closeBrackets reads the text after a value inside depth brackets. It returns the number of
// brackets still open and the index of the next value in the innermost one, or 0 and the index
// after the last bracket.
func (s *Set) closeBrackets(b []byte, i int, objects *[maxDepth]bool, depth int) (open, next int,
	err error) {
	for depth > 0 {
		inObject := objects[depth-1]
		i = skipSpace(b, i)
		switch c := at(b, i); {
		case c == ',' && inObject:
			_, i, err = s.readName(b, skipSpace(b, i+1))
			return depth, i, err
		case c == ',':
			return depth, skipSpace(b, i+1), nil
		case c == '}' && inObject, c == ']' && !inObject:
			depth--
			i++
		case inObject:
			return 0, 0, expected(i, "',' or '}'")
		default:
			return 0, 0, expected(i, "',' or ']'")
		}
	}
	return 0, i, nil
}

// readLiteral reads a number, true, false or null.
func readLiteral(b []byte, i int) (kind Kind, next int, err error) {
	switch c := at(b, i); {
	case c == '-' || isDigit(c):
		next, err = skipNumber(b, i)
		return Number, next, err
	case c == 't' && hasPrefix(b, i, "true"):
		return Bool, i + len("true"), nil
	case c == 'f' && hasPrefix(b, i, "false"):
		return Bool, i + len("false"), nil
	case c == 'n' && hasPrefix(b, i, "null"):
		return Null, i + len("null"), nil
	}
	return 0, 0, expected(i, "a value")
}

func hasPrefix(b []byte, i int, word string) bool {
	return len(b)-i >= len(word) && string(b[i:i+len(word)]) == word
}

func skipNumber(b []byte, i int) (next int, err error) {
	if b[i] == '-' {
		i++
	}
	if at(b, i) == '0' { // only a point or an exponent may follow a leading zero
		i++
	} else if i, err = skipDigits(b, i); err != nil {
		return 0, err
	}
	if at(b, i) == '.' {
		if i, err = skipDigits(b, i+1); err != nil {
			return 0, err
		}
	}
	if at(b, i)|0x20 == 'e' {
		i++
		if c := at(b, i); c == '+' || c == '-' {
			i++
		}
		return skipDigits(b, i)
	}
	return i, nil
}

func skipDigits(b []byte, i int) (next int, err error) {
	if !isDigit(at(b, i)) {
		return 0, expected(i, "a digit")
	}
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	return i, nil
}

func isDigit(c byte) bool { return c-'0' <= 9 }

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// at returns the byte at i, or 0 after the end. No rule of the grammar asks for a 0, so it reads as
// "something else".
func at(b []byte, i int) byte {
	if i < len(b) {
		return b[i]
	}
	return 0
}

// end checks that only white space is left.
func end(b []byte, i int) error {
	if i = skipSpace(b, i); i != len(b) {
		return expected(i, "the end of the body")
	}
	return nil
}
