package params

import (
	"errors"
	"testing"
)

func TestFormIsRead(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		for _, parse := range []func(*Set, []byte) error{(*Set).ParseForm, (*Set).ParseQuery} {
			var s Set
			if err := parse(&s, []byte(body)); err != nil {
				t.Errorf("%s: %v", body, err)
			} else if got := show(&s); got != want {
				t.Errorf("%s:\n got %s\nwant %s", body, got, want)
			}
		}
	}
	f(``, ``)
	f(`&`, ``)
	f(orderForm, `amount=0.12345678/f pair=BTC_USD/f price=50000.12/f type=buy/f`)
	f(`b=1&&a=2&`, `a=2/f b=1/f`)
	f(`a`, `a=/f`)
	f(`a=`, `a=/f`)
	f(`=a`, `=a/f`)
	f(`=`, `=/f`)
	f(`a=b=c`, `a=b=c/f`)
	f(`a=x+y%20z%2B`, `a=x y z+/f`)
	f(`%61+b=%c3%A9`, `a b=é/f`)
	f(`a=é;b=2`, `a=é;b=2/f`)
	f(`a=%00%26%3D%25`, "a=\x00&=%/f")
}

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

func TestFormDuplicatesAreRefusedAndInAQueryTheLastCounts(t *testing.T) {
	f := func(text, name, want string) {
		t.Helper()
		var s Set
		var duplicate *DuplicateError
		if err := s.ParseForm([]byte(text)); !errors.As(err, &duplicate) || duplicate.Name != name {
			t.Errorf("form %s: got %v, want a DuplicateError of %q", text, err, name)
		}
		if err := s.ParseQuery([]byte(text)); err != nil {
			t.Errorf("query %s: %v", text, err)
		} else if got := show(&s); got != want {
			t.Errorf("query %s: got %s, want %s", text, got, want)
		}
	}
	f("a=1&a=2", "a", "a=2/f")
	f("b=1&a=2&c=3&%62=4&a", "b", "a=/f b=4/f c=3/f")
	f("&=1&=2", "", "=2/f")
}
