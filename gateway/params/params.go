package params

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// A Kind is the way in which a value was written.
type Kind uint8

// The kinds.
//
//tidy:keep each kind has a name, even if no other room asks for it
const (
	String Kind = iota // JSON string
	Number             // JSON number
	Bool               // JSON true or false
	Null               // JSON null
	Nested             // JSON object or array
	Form               // text of a form or a query, which has no kinds
)

var kindNames = [...]string{"string", "number", "bool", "null", "nested", "form"}

func (k Kind) String() string { return kindNames[k] }

// A Param is one parameter.
type Param struct {
	Name  []byte // decoded
	Value []byte // decoded text of a String or a Form; otherwise the same as raw
	raw   []byte // value as sent: a JSON string with its quotes, form text still encoded
	Kind  Kind
}

// A Set holds the parameters of one request, sorted by the bytes of their names. The zero value is
// ready.
type Set struct {
	params  []Param
	scratch []byte // decoded names and values; never reallocated while a Param points into it
}

// maxKeptScratch bounds the memory of an idle Set after a request with much to decode, in bytes.
const maxKeptScratch = 16 << 10

// Reset empties the Set and forgets the bytes it was parsed from.
func (s *Set) Reset() {
	clear(s.params)
	s.params = s.params[:0]
	if cap(s.scratch) > maxKeptScratch {
		s.scratch = nil
	}
	s.scratch = s.scratch[:0]
}

// Get returns the parameter of a name. One whose value is null is absent. The caller must not
// change the Set's Param.
func (s *Set) Get(name string) (*Param, bool) {
	for i := range s.params {
		if p := &s.params[i]; string(p.Name) == name && p.Kind != Null {
			return p, true
		}
	}
	return nil, false
}

// All returns every parameter, sorted by name, also those with null: they are signed. The caller
// must not change the Set's slice.
func (s *Set) All() []Param { return s.params }

// A repeat is the rule for a name that is already in the Set.
type repeat bool

const (
	refuseRepeat repeat = false
	lastCounts   repeat = true
)

// insert puts p into its place. It searches from the end, because most requests have about four
// parameters.
func (s *Set) insert(p *Param, r repeat) error {
	if len(p.Name) > maxName {
		return errNameTooLong
	}
	at := len(s.params)
	for ; at > 0; at-- {
		order := bytes.Compare(s.params[at-1].Name, p.Name)
		if order < 0 {
			break
		}
		if order > 0 {
			continue
		}
		if r == refuseRepeat {
			return &DuplicateError{Name: string(p.Name)}
		}
		s.params[at-1] = *p
		return nil
	}
	if len(s.params) == MaxParams {
		return errTooMany
	}
	s.params = append(s.params, Param{})
	copy(s.params[at+1:], s.params[at:])
	s.params[at] = *p
	return nil
}

// reserve makes room for n decoded bytes. Decoding never makes text longer. So the first call, with
// all the input still ahead, is enough for every later one, and decoded text stays where it is.
func (s *Set) reserve(n int) { s.scratch = slices.Grow(s.scratch, n) }

// isText reports whether b is valid UTF-8. seen is the disjunction of all its bytes, which settles
// ASCII at once.
func isText(b []byte, seen byte) bool { return seen < utf8.RuneSelf || utf8.Valid(b) }
