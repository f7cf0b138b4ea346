package params

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"
)

var (
	jsonString = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	jsonEscape = regexp.MustCompile(`(?i)\\ud[89ab]..\\ud[c-f]..|\\u....|\\.`)
	halfPair   = regexp.MustCompile(`(?i)^\\ud[89a-f]..$`)
)

// reference reads a flat object with encoding/json. It returns the decoded values by name, with
// their kinds as in show, or the reason to refuse the body. The reason comes from encoding/json, or
// is a rule that encoding/json lacks.
func reference(body []byte) (values map[string]string, refused string) {
	values = map[string]string{}
	if len(body) == 0 {
		return values, ""
	}
	if !json.Valid(body) {
		return nil, "encoding/json refuses it"
	}
	if bytes.TrimLeft(body, " \t\r\n")[0] != '{' {
		return nil, "it is no object"
	}
	if !utf8.Valid(body) {
		return nil, "it is not UTF-8"
	}
	for _, e := range jsonEscape.FindAll(body, -1) {
		if halfPair.Match(e) {
			return nil, "it has half a surrogate pair"
		}
	}
	depth := 0
	for _, c := range jsonString.ReplaceAll(body, nil) {
		switch c {
		case '{', '[':
			if depth++; depth > maxDepth+1 {
				return nil, "it is nested too deep"
			}
		case '}', ']':
			depth--
		}
	}
	d := json.NewDecoder(bytes.NewReader(body))
	must(d.Token())
	for d.More() {
		name := must(d.Token()).(string)
		var raw json.RawMessage
		must(0, d.Decode(&raw))
		value, kind := string(raw), "n"
		switch raw[0] {
		case '"':
			must(0, json.Unmarshal(raw, &value))
			kind = "s"
		case '{', '[':
			kind = "o"
		case 't', 'f':
			kind = "b"
		case 'n':
			kind = "0"
		}
		if _, ok := values[name]; ok {
			return nil, "it has a duplicate"
		}
		values[name] = value + "/" + kind
		if len(name) > maxName || len(values) > MaxParams {
			return nil, "it is over a limit"
		}
	}
	return values, ""
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// fataler has the methods that a fuzz target and a property share.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// compare checks the result of a parse of text against the wanted one; before is a copy of text.
func compare(t fataler, s *Set, err error, text, before []byte, want map[string]string,
	refused string) {
	t.Helper()
	if !bytes.Equal(text, before) {
		t.Fatalf("parsing changed its input: %q became %q", before, text)
	}
	if (err != nil) != (refused != "") {
		t.Fatalf("%q: got %v, the reference says %q", text, err, refused)
	}
	if err != nil {
		if e, ok := err.(*syntaxError); ok &&
			(e.position < 0 || e.position > len(text) || e.expected == "") {
			t.Fatalf("%q: a strange error: %v", text, err)
		}
		if len(s.All()) != 0 {
			t.Fatalf("%q: the Set is not empty after an error", text)
		}
		return
	}
	if len(s.All()) != len(want) {
		t.Fatalf("%q: got %s, want %q", text, show(s), want)
	}
	for i, p := range s.All() {
		if i > 0 && bytes.Compare(s.All()[i-1].Name, p.Name) >= 0 {
			t.Fatalf("%q: not sorted: %s", text, show(s))
		}
		got := string(p.Value) + "/" + kindLetters[p.Kind:p.Kind+1]
		if value, ok := want[string(p.Name)]; !ok || value != got {
			t.Fatalf("%q: %q is %q, want %q", text, p.Name, got, value)
		}
		if !utf8.Valid(p.Name) || !utf8.Valid(p.Value) || !bytes.Contains(text, p.raw) {
			t.Fatalf("%q: bad text in %q", text, p)
		}
		found, ok := s.Get(string(p.Name))
		if ok == (p.Kind == Null) || ok && found != &s.All()[i] {
			t.Fatalf("%q: Get of %q returns %v, %v", text, p.Name, found, ok)
		}
	}
}

func checkJSON(t fataler, s *Set, body []byte) {
	t.Helper()
	before := bytes.Clone(body)
	want, refused := reference(before)
	compare(t, s, s.ParseJSON(body), body, before, want, refused)
}

// checkPairs compares both parsers of urlencoded text with net/url. That refuses every ';', which
// is an ordinary character here; it is encoded for the reference.
func checkPairs(t fataler, s *Set, text []byte) {
	t.Helper()
	before := bytes.Clone(text)
	values, err := url.ParseQuery(strings.ReplaceAll(string(text), ";", "%3B"))
	last := map[string]string{}
	refused, repeated := "", ""
	if err != nil {
		refused = err.Error()
	}
	for name, all := range values {
		last[name] = all[len(all)-1] + "/f"
		if len(all) > 1 {
			repeated = "it has a duplicate"
		}
		if len(name) > maxName || len(values) > MaxParams {
			refused = "it is over a limit"
		}
		if !utf8.ValidString(name + "/" + strings.Join(all, "/")) {
			refused = "it is not UTF-8"
		}
	}
	compare(t, s, s.ParseQuery(text), text, before, last, refused)
	compare(t, s, s.ParseForm(text), text, before, last, refused+repeated)
}

var jsonSeeds = []string{
	``, `{}`, ` { } `, orderJSON, escapedJSON, nestedJSON,
	`{"a":0.50,"b":1e-7,"c":-0,"d":1E+07}`, `{"a":01}`, `{"a":1.}`, `{"a":-}`, `{"a":1e+}`,
	`{"a":true,"b":false,"c":null}`, `{"a":tru}`, `{"a":nulL}`,
	`{"a":"\"\\\/\b\f\n\r\t\u0000\u20ac"}`, `{"a":"\ud83d\ude00"}`, `{"a":"\ud83d"}`,
	`{"a":"\ude00\ud83d"}`, `{"a":"\x"}`,
	"{\"a\":\"\xff\"}", "{\"a\":\"\x1f\"}", "{\"a\":\"\\n\xc3\"}", "\ufeff{}",
	`{"a":1,"\u0061":2}`, `{"a":1,}`, `{"a":[1,{"b":[]},"\n"],"c":{"d":{}}}`, `{"a":[1,]}`,
	`{"a":[}]}`, `[1]`, `"a"`, `{} x`,
	`{"a":` + brackets(maxDepth) + `}`, `{"a":` + brackets(maxDepth+1) + `}`,
	" \t\r\n{ \t\r\n} \t\r\n", " { \"b\" : 1 , \"a\"\n:\t\"x\"\r} ",
	`{"é":1,"b":2,"ab":3,"a":4,"B":5,"":6,"10":7,"9":8}`,
	`{"e":-12.250,"f":0e0,"g":123456789012345678901234567890}`,
	`{"a":"","b":"x\ty","c":"\u00fcz","d":"plain 😀"}`, "{\"a\":\"\x7f\u2028\"}",
	`{"\u0061\u00e9":"\u20AC\uD83D\uDE00\u0000"}`,
	`{"a":[],"b":{},"c":[ 1, {"x":[true]} ],"d":{"y":"\n", "y":2}}`,
}

var pairSeeds = []string{
	``, `&`, `=`, orderForm, escapedForm, `a`, `a=1&a=2`, `a=b=c;d`, `a=+%20%2B`, `a=%`, `a=%4&b`,
	`a%4=1`, `%61=%C3%A9`, `a=%ff`, "\xff=1", `=1&=2`,
	`b=1&&a=2&`, `a=`, `=a`, `a=x+y%20z%2B`, `%61+b=%c3%A9`, `a=é;b=2`, `a=%00%26%3D%25`,
	`b=1&a=2&c=3&%62=4&a`,
}

func FuzzParseJSON(f *testing.F) {
	for _, s := range jsonSeeds {
		f.Add([]byte(s))
	}
	var s Set // kept, so that one input meets the remains of another
	f.Fuzz(func(t *testing.T, body []byte) { checkJSON(t, &s, body) })
}

func FuzzParseForm(f *testing.F) {
	for _, s := range pairSeeds {
		f.Add([]byte(s))
	}
	var s Set
	f.Fuzz(func(t *testing.T, text []byte) { checkPairs(t, &s, text) })
}

func TestFlatObjectsReadAsEncodingJSONReadsThem(t *testing.T) {
	space := rapid.StringMatching(`[ \t\r\n]{0,2}`)
	text := rapid.Custom(func(t *rapid.T) string {
		s := rapid.String().Draw(t, "text")
		switch rapid.IntRange(0, 2).Draw(t, "spelling") {
		case 0:
			return string(must(json.Marshal(s)))
		case 1: // every code point, or its pair of surrogates, as an escape
			var b strings.Builder
			for _, unit := range utf16.Encode([]rune(s)) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
			return `"` + b.String() + `"`
		default:
			return `"` + strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{
				`\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`, `\u00e9`, `\uD83D\uDE00`, `\u0000`,
				"x", "é", "😀", "\u2028",
			}), 0, 6).Draw(t, "pieces"), "") + `"`
		}
	})
	scalar := rapid.OneOf(text,
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?`),
		rapid.SampledFrom([]string{"true", "false", "null"}))
	var s Set
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		blank := func() { b.WriteString(space.Draw(t, "space")) }
		blank()
		b.WriteByte('{')
		for i := range rapid.IntRange(0, 12).Draw(t, "params") {
			if i > 0 {
				b.WriteByte(',')
			}
			blank()
			b.WriteString(text.Draw(t, "name"))
			blank()
			b.WriteByte(':')
			blank()
			b.WriteString(scalar.Draw(t, "value"))
			blank()
		}
		b.WriteByte('}')
		blank()
		if !json.Valid([]byte(b.String())) {
			t.Fatalf("the generator made %s", b.String())
		}
		checkJSON(t, &s, []byte(b.String()))
	})
}

func TestAnyTokensReadAsEncodingJSONReadsThem(t *testing.T) {
	token := rapid.SampledFrom([]string{
		"{", "}", "[", "]", ":", ",", " ", `"a"`, `"b":`, `"c":1`, `"\n"`, `"`, `\`, "0", "-",
		"1.5", "e", "+", "true", "null", "\xff", "\x00",
	})
	var s Set
	rapid.Check(t, func(t *rapid.T) {
		body := strings.Join(rapid.SliceOfN(token, 0, 12).Draw(t, "tokens"), "")
		checkJSON(t, &s, []byte(body))
		checkJSON(t, &s, []byte(`{"x":[`+body+`]}`))
		checkJSON(t, &s, []byte(`{`+body+`}`))
	})
}

func TestPairsReadAsNetURLReadsThem(t *testing.T) {
	token := rapid.SampledFrom([]string{"a", "b", "=", "&", "+", "%", "%20", "%c3%A9", "%ff", ";",
		"é", "\xff", "4", "%26", "%3D", "\x00"})
	var s Set
	rapid.Check(t, func(t *rapid.T) {
		checkPairs(t, &s, []byte(strings.Join(rapid.SliceOfN(token, 0, 16).Draw(t, "tokens"), "")))
		values := url.Values{}
		for i, v := range rapid.SliceOfN(rapid.String(), 0, 8).Draw(t, "values") {
			values.Set(fmt.Sprintf("p %d é", i), v)
		}
		checkPairs(t, &s, []byte(values.Encode()))
	})
}
