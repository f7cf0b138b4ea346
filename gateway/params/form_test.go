package params

import (
	"errors"
	"testing"
)

func TestFormRawIsTheTextAsSent(t *testing.T) {
	var s Set
	if err := s.ParseForm([]byte("a=x+y%20z&b=1")); err != nil {
		t.Fatal(err)
	}
	if p, _ := s.Get("a"); string(p.raw) != "x+y%20z" {
		t.Errorf("got %s", p.raw)
	}
}

func TestFormIsRefusedWhereItBreaks(t *testing.T) {
	f := func(body string, position int) {
		t.Helper()
		for _, parse := range []func(*Set, []byte) error{(*Set).ParseForm, (*Set).ParseQuery} {
			var s Set
			var syntax *syntaxError
			if err := parse(&s, []byte(body)); !errors.As(err, &syntax) ||
				syntax.position != position {
				t.Errorf("%q: got %v, want a syntaxError at %d", body, err, position)
			}
			if len(s.All()) != 0 {
				t.Errorf("%q: the Set is not empty after an error", body)
			}
		}
	}
	f("a=%", 2)
	f("a=%4", 2)
	f("a=%4&b=1", 2)
	f("a=x%4g", 3)
	f("a=%g4", 2)
	f("b=1&a=x%%20", 7)
	f("%=1", 0)
	f("a%4=1", 1) // an escape does not reach over '='
	f("a=1&b=%u0041", 6)
	f("a=\xff", 2)
	f("a=x%FF", 2)
	f("\xc3=1", 0)
	f("a=%ED%A0%80", 2)
}
