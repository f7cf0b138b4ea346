package params

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"testing"
)

const (
	orderJSON   = `{"type":"buy","pair":"BTC_USD","amount":0.12345678,"price":50000.12}`
	orderForm   = `type=buy&pair=BTC_USD&amount=0.12345678&price=50000.12`
	escapedJSON = `{"type":"buy","address":"a\u00e9\n\ud83d\ude00","note":"say \"hi\""}`
	escapedForm = `type=buy&address=a%C3%A9&note=say+%22hi%22`
	nestedJSON  = `{"type":"buy","legs":[{"pair":"BTC_USD","amount":1.5},{"pair":"ETH_USD","amount":2}],"n":null}`
)

// manyJSON returns the worst order for sorted insertion: MaxParams names, each before all those
// already there.
func manyJSON() []byte {
	var b bytes.Buffer
	for i := range MaxParams {
		b.WriteString(string("{,"[min(i, 1)]) + `"p` + strconv.Itoa(99-i) + `":` + strconv.Itoa(i))
	}
	return append(b.Bytes(), '}')
}

func TestGetFindsParameters(t *testing.T) {
	var s Set
	if err := s.ParseJSON([]byte(orderJSON)); err != nil {
		t.Fatal(err)
	}
	if p, ok := s.Get("price"); !ok || string(p.Value) != "50000.12" || p.Kind != Number ||
		p.Kind.String() != "number" {
		t.Errorf("got %v %v", p, ok)
	}
	for _, name := range []string{"", "pric", "prices", "Price"} {
		if p, ok := s.Get(name); ok || p != nil {
			t.Errorf("%q: got %v", name, p)
		}
	}
}

func TestDecodedTextsDoNotOverwriteEachOther(t *testing.T) {
	var s Set
	s.scratch = make([]byte, 0, 3) // too small: the buffer is replaced while parsing
	body := `{"a\n":"1\n","b\n":{"x\n":"y\n"},"c\n":"3\n","d":"4\u00e9"}`
	if err := s.ParseJSON([]byte(body)); err != nil {
		t.Fatal(err)
	}
	if got, want := show(&s), "a\n=1\n/s b\n={\"x\\n\":\"y\\n\"}/o c\n=3\n/s d=4é/s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, p := range s.All() { // an append to one slice must not reach into the next
		_ = append(p.Name, "????"...)
		_ = append(p.Value, "????"...)
		_ = append(p.raw, "????"...)
	}
	if got := show(&s); strings.Contains(got, "?") {
		t.Errorf("appending to one value changed another: %q", got)
	}
}

func TestResetForgetsTheBody(t *testing.T) {
	var s Set
	for _, body := range []string{
		`{"c":1,"b":2,"a":"` + strings.Repeat(`\n`, maxKeptScratch) + `"}`, `{"a":1,"b":2,"c"`} {
		_ = s.ParseJSON([]byte(body))
		s.Reset()
		if len(s.All()) != 0 || cap(s.scratch) > maxKeptScratch {
			t.Errorf("%d parameters and %d bytes are left", len(s.All()), cap(s.scratch))
		}
		for i, p := range s.params[:cap(s.params)] {
			if p.Name != nil || p.Value != nil || p.raw != nil {
				t.Errorf("slot %d still points into the body", i)
			}
		}
	}
}

func TestErrorsAreSentences(t *testing.T) {
	for err, want := range map[error]string{
		errTooMany:                       "At most 64 parameters are possible.",
		errNameTooLong:                   "The name of a parameter can have at most 64 bytes.",
		expected(7, "'}'"):               "Malformed at position 7: expected '}'.",
		&DuplicateError{Name: "pri\nce"}: `The parameter "pri\nce" appears more than once.`,
	} {
		if err.Error() != want {
			t.Errorf("got %s, want %s", err, want)
		}
	}
}

func TestDuplicatesAreNamed(t *testing.T) {
	for text, name := range map[string]string{`{"a":1,"a":1}`: "a",
		`{"a":1,"b":2,"c":3,"a":4}`: "a", `{"c":1,"b":2,"a":3,"c":4}`: "c",
		`{"a":1,"\u0061":2}`: "a", `{"":1,"":2}`: "", `{"price":1,"price":{}}`: "price",
		"a=1&a=2": "a", "b=1&a=2&c=3&%62=4&a": "b", "&=1&=2": ""} {
		parse := (*Set).ParseForm
		if text[0] == '{' {
			parse = (*Set).ParseJSON
		}
		var s Set
		var duplicate *DuplicateError
		if err := parse(&s, []byte(text)); !errors.As(err, &duplicate) || duplicate.Name != name {
			t.Errorf("%s: got %v, want a DuplicateError of %q", text, err, name)
		}
	}
}

func TestParsingAllocatesNothing(t *testing.T) {
	var s Set
	for _, c := range []struct {
		parse func(*Set, []byte) error
		text  string
	}{
		{(*Set).ParseJSON, orderJSON},
		{(*Set).ParseJSON, escapedJSON},
		{(*Set).ParseJSON, nestedJSON},
		{(*Set).ParseJSON, string(manyJSON())},
		{(*Set).ParseForm, orderForm},
		{(*Set).ParseForm, escapedForm},
		{(*Set).ParseQuery, orderForm},
	} {
		body := []byte(c.text)
		if n := testing.AllocsPerRun(100, func() {
			if err := c.parse(&s, body); err != nil {
				t.Fatal(err)
			}
			if _, ok := s.Get("nothing"); ok {
				t.Fatal("found")
			}
			s.Reset()
		}); n != 0 {
			t.Errorf("%s: %v allocations", c.text, n)
		}
	}
}
