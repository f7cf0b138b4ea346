package loadtest

import "errors"

// The scanner parses answers without allocating: there are a hundred thousand in a second, and
// millions at the end. It accepts the JSON of servers without validation.

var errJSON = errors.New("the answer is not the JSON that is expected")

// eachField calls fn with the names and the raw values of an object, in order. Strings come without
// their quotes. False stops the scan.
func eachField(object []byte, fn func(name, value []byte) bool) error {
	b := skipBlanks(object)
	if len(b) == 0 || b[0] != '{' {
		return errJSON
	}
	b = skipBlanks(b[1:])
	for len(b) > 0 && b[0] != '}' {
		name, rest, ok := nextValue(b)
		if rest = skipBlanks(rest); !ok || b[0] != '"' || len(rest) == 0 || rest[0] != ':' {
			return errJSON
		}
		value, rest, ok := nextValue(skipBlanks(rest[1:]))
		if !ok {
			return errJSON
		}
		if !fn(unquoted(name), unquoted(value)) {
			return nil
		}
		b = skipBlanks(rest)
		if len(b) > 0 && b[0] == ',' {
			b = skipBlanks(b[1:])
		}
	}
	if len(b) == 0 {
		return errJSON
	}
	return nil
}

// eachItem calls fn with the raw items of an array.
func eachItem(array []byte, fn func(item []byte) error) error {
	b := skipBlanks(array)
	if len(b) == 0 || b[0] != '[' {
		return errJSON
	}
	b = skipBlanks(b[1:])
	for len(b) > 0 && b[0] != ']' {
		item, rest, ok := nextValue(b)
		if !ok {
			return errJSON
		}
		if err := fn(item); err != nil {
			return err
		}
		b = skipBlanks(rest)
		if len(b) > 0 && b[0] == ',' {
			b = skipBlanks(b[1:])
		}
	}
	if len(b) == 0 {
		return errJSON
	}
	return nil
}

func skipBlanks(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\t' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// nextValue cuts off the first value of b.
func nextValue(b []byte) (value, rest []byte, ok bool) {
	if len(b) == 0 {
		return nil, nil, false
	}
	switch b[0] {
	case '"':
		for i := 1; i < len(b); i++ {
			switch b[i] {
			case '\\':
				i++
			case '"':
				return b[:i+1], b[i+1:], true
			}
		}
		return nil, nil, false
	case '{', '[':
		depth, text := 0, false
		for i := 0; i < len(b); i++ {
			switch c := b[i]; {
			case text && c == '\\':
				i++
			case c == '"':
				text = !text
			case text:
			case c == '{' || c == '[':
				depth++
			case c == '}' || c == ']':
				if depth--; depth == 0 {
					return b[:i+1], b[i+1:], true
				}
			}
		}
		return nil, nil, false
	}
	i := 0
	for i < len(b) && b[i] > ' ' && b[i] != ',' && b[i] != ']' && b[i] != '}' && b[i] != ':' {
		i++
	}
	return b[:i], b[i:], i > 0
}

func unquoted(b []byte) []byte {
	if len(b) >= 2 && b[0] == '"' {
		return b[1 : len(b)-1]
	}
	return b
}

// number parses a whole number, and ignores everything after its digits.
func number(b []byte) (n uint64) {
	for _, d := range b {
		if d < '0' || d > '9' {
			break
		}
		n = 10*n + uint64(d-'0')
	}
	return n
}
