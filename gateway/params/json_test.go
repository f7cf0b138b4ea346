package params

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// show writes a Set as "name=value" with a letter for the kind, sorted as the Set is.
func show(s *Set) string {
	var b strings.Builder
	for i, p := range s.All() {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s=%s/%c", p.Name, p.Value, kindLetters[p.Kind])
	}
	return b.String()
}

// kindLetters has a letter for each kind.
const kindLetters = "snb0of"

func brackets(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

func TestJSONRawIsTheTextAsSent(t *testing.T) {
	var s Set
	if err := s.ParseJSON([]byte(`{ "a" : "x\ny" , "b" : 0.50 , "c" : [ 1 ] }`)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": `"x\ny"`, "b": `0.50`, "c": `[ 1 ]`} {
		if p, ok := s.Get(name); !ok || string(p.raw) != want {
			t.Errorf("%s: got %v, want %s", name, p, want)
		}
	}
}

func TestJSONIsRefusedWhereItBreaks(t *testing.T) {
	const (
		name     = "a name in double quotes"
		value    = "a value"
		digit    = "a digit"
		next     = "',' or '}'"
		nextItem = "',' or ']'"
		quote    = "'\"'"
		escape   = `one of "\/bfnrtu`
		control  = "an escape instead of a control character"
		pair     = "a pair of surrogates"
		utf8Text = "a string of valid UTF-8"
		hex      = "four hexadecimal digits"
	)
	for _, x := range []struct {
		body     string
		position int
		expected string
	}{
		// The object.
		{` `, 1, "'{'"},
		{`[]`, 0, "'{'"},
		{`"a"`, 0, "'{'"},
		{`null`, 0, "'{'"},
		{"\ufeff{}", 0, "'{'"},
		{"\v{}", 0, "'{'"},
		{`{`, 1, name},
		{`{a:1}`, 1, name},
		{`{'a':1}`, 1, name},
		{`{1:1}`, 1, name},
		{`{,}`, 1, name},
		{`{"a"}`, 4, "':'"},
		{`{"a" 1}`, 5, "':'"},
		{`{"a":}`, 5, value},
		{`{"a":1,}`, 7, name},
		{`{"a":1 "b":2}`, 7, next},
		{`{"a":1]`, 6, next},
		{`{"a":1`, 6, next},
		{`{"a":1}}`, 7, "the end of the body"},
		{`{} {}`, 3, "the end of the body"},
		{"{}\x00", 2, "the end of the body"},
		{`{"a":1}//`, 7, "the end of the body"},

		// Literals.
		{`{"a":tru}`, 5, value},
		{`{"a":True}`, 5, value},
		{`{"a":nul`, 5, value},
		{`{"a":truex}`, 9, next},
		{`{"a":NaN}`, 5, value},
		{`{"a":Infinity}`, 5, value},
		{`{"a":+1}`, 5, value},
		{`{"a":.5}`, 5, value},
		{`{"a":-}`, 6, digit},
		{`{"a":-a}`, 6, digit},
		{`{"a":01}`, 6, next},
		{`{"a":-012}`, 7, next},
		{`{"a":1.}`, 7, digit},
		{`{"a":1.e1}`, 7, digit},
		{`{"a":1e}`, 7, digit},
		{`{"a":1e+}`, 8, digit},
		{`{"a":0x1}`, 6, next},
		{`{"a":1_0}`, 6, next},
		{`{"a":1` + "\u0661" + `}`, 6, next}, // another script's digit

		// Strings.
		{`{"a":"x}`, 8, quote},
		{`{"a":"x\"}`, 10, quote},
		{`{"a":"x\`, 8, escape},
		{`{"a":"\x41"}`, 7, escape},
		{`{"a":"\'"}`, 7, escape},
		{`{"a":"\U0041"}`, 7, escape},
		{"{\"a\":\"\n\"}", 6, control},
		{"{\"a\":\"\\n\x1f\"}", 8, control},
		{"{\"a\":\"\x00\"}", 6, control},
		{`{"a":"\u12"}`, 8, hex},
		{`{"a":"\u12`, 8, hex},
		{`{"a":"\u12g4"}`, 8, hex},
		{`{"a":"\u1234`, 12, quote},
		{`{"a":"\ud83d"}`, 6, pair},
		{`{"a":"\ude00"}`, 6, pair},
		{`{"a":"\ud83dx"}`, 6, pair},
		{`{"a":"\ud83d\n"}`, 6, pair},
		{`{"a":"\ud83d\nde00"}`, 6, pair},
		{`{"a":"\ud83dxude00"}`, 6, pair},
		{`{"a":"\ud83d\ud83d"}`, 6, pair},
		{`{"a":"\ude00\ud83d"}`, 6, pair},
		{`{"a":"\ud83d\ude0"}`, 6, pair},
		{"{\"a\":\"\xff\"}", 6, utf8Text},
		{"{\"\xc3\":1}", 2, utf8Text},
		{"{\"a\":\"\xed\xa0\x80\"}", 6, utf8Text},       // a surrogate written as UTF-8
		{"{\"a\":\"\xc0\x80\"}", 6, utf8Text},           // an overlong zero
		{"{\"a\":\"\\u00e9\xc3\\u00a9\"}", 6, utf8Text}, // broken bytes around escapes

		// Nested values.
		{`{"a":[`, 6, value},
		{`{"a":[1`, 7, nextItem},
		{`{"a":[1,]}`, 8, value},
		{`{"a":[,]}`, 6, value},
		{`{"a":[1 2]}`, 8, nextItem},
		{`{"a":[1}`, 7, nextItem},
		{`{"a":[}`, 6, value},
		{`{"a":{]`, 6, name},
		{`{"a":{"b"]`, 9, "':'"},
		{`{"a":{"b":1]`, 11, next},
		{`{"a":{"b":1,}}`, 12, name},
		{`{"a":{1:2}}`, 6, name},
		{`{"a":[01]}`, 7, nextItem},
		{`{"a":["\ud83d"]}`, 7, pair},
		{`{"a":[]`, 7, next},
		{`{"a":` + brackets(maxDepth+1) + `}`, 5 + maxDepth, "no deeper nesting"},
		{`{"a":` + strings.Repeat(`{"a":`, 1000), 5 + 5*maxDepth, "no deeper nesting"},
	} {
		var s Set
		err := s.ParseJSON([]byte(x.body))
		var syntax *syntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%q: got %v, want a syntaxError", x.body, err)
			continue
		}
		if syntax.position != x.position || syntax.expected != x.expected {
			t.Errorf("%q: got %v, want %q at %d", x.body, err, x.expected, x.position)
		}
		if len(s.All()) != 0 {
			t.Errorf("%q: the Set is not empty after an error", x.body)
		}
	}
}

func TestLimits(t *testing.T) {
	many := func(n int, first, format, last string) []byte {
		pairs := make([]string, n)
		for i := range pairs {
			pairs[i] = fmt.Sprintf(format, i)
		}
		return []byte(first + strings.Join(pairs, map[string]string{"{": ",", "": "&"}[first]) +
			last)
	}
	var s Set
	f := func(err, want error, n int) {
		t.Helper()
		if err != want || len(s.All()) != n {
			t.Errorf("got %v and %d parameters, want %v and %d", err, len(s.All()), want, n)
		}
	}
	f(s.ParseJSON(many(MaxParams, "{", `"p%d":0`, "}")), nil, MaxParams)
	f(s.ParseJSON(many(MaxParams+1, "{", `"p%d":0`, "}")), errTooMany, 0)
	f(s.ParseForm(many(MaxParams, "", "p%d=0", "")), nil, MaxParams)
	f(s.ParseForm(many(MaxParams+1, "", "p%d=0", "")), errTooMany, 0)
	// repeated names do not count
	f(s.ParseQuery(append(many(MaxParams, "", "p%d=0", ""), "&p1=2&p3=4"...)), nil, MaxParams)

	longest := strings.Repeat("é", maxName/2) // 64 bytes once decoded
	encoded := strings.Repeat("%c3%a9", maxName/2)
	f(s.ParseJSON([]byte(`{"`+longest+`":1}`)), nil, 1)
	f(s.ParseJSON([]byte(`{"`+longest+`x":1}`)), errNameTooLong, 0)
	f(s.ParseForm([]byte(encoded+"=1")), nil, 1)
	f(s.ParseForm([]byte(encoded+"x=1")), errNameTooLong, 0)
	f(s.ParseQuery([]byte(encoded+"x")), errNameTooLong, 0)
}
