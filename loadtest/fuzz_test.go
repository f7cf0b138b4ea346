package loadtest

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// An object or an array valid for encoding/json is cut into the same names and values; other text
// causes an error at most.
func FuzzScan(f *testing.F) {
	for _, s := range []string{`{}`, `[]`, ` { "a" : 1 , "b":[1,{"c":"}"}],"d":"\"" } `,
		`[{"price":1.5,"amount":"2"},null,true,"x"]`, `{"a"`, `{"a":}`, `[1,`, `["`, `["\`, `[[]`,
		`{"a" 1}`,
		`{"pair":"A_B","update_id":2,"prev_update_id":1,"sell":[{"price":1,"amount":2}],"buy":[]}`,
		`{"update_id":1,"update_id":1,"update_id":1}`, `{]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var names []string
		var values [][]byte
		err := eachField(text, func(name, value []byte) bool {
			names, values = append(names, string(name)), append(values, value)
			return true
		})
		if json.Valid(text) && bytes.IndexByte(text, '{') ==
			strings.IndexFunc(string(text), func(r rune) bool {
				return !strings.ContainsRune(" \t\r\n", r)
			}) {
			d := json.NewDecoder(bytes.NewReader(text))
			if _, tokenErr := d.Token(); tokenErr != nil || err != nil {
				t.Fatalf("%q: %v, %v", text, tokenErr, err)
			}
			for i := 0; d.More(); i++ {
				name, _ := d.Token()
				var raw json.RawMessage
				worked(t, d.Decode(&raw))
				if i >= len(names) || !bytes.Equal(values[i], unquoted(raw)) ||
					!strings.Contains(names[i], `\`) && json.Valid([]byte(`"`+names[i]+`"`)) &&
						names[i] != name && strings.ToValidUTF8(names[i], "") == names[i] {
					t.Fatalf("%q: field %d is %q with %q, want %q with %q", text, i, names, values,
						name, raw)
				}
			}
		}
		items := 0
		if err := eachItem(text, func([]byte) error { items++; return nil }); err == nil &&
			json.Valid(text) {
			var want []json.RawMessage
			if json.Unmarshal(text, &want) != nil || len(want) != items {
				t.Fatalf("%q has %d items, want %d", text, items, len(want))
			}
		}
		var book localBook
		s := subscriber{books: map[string]*localBook{}, keeps: true}
		d, err := readDiff(text, true, func(name []byte) string {
			s.books[string(name)] = &book
			return string(name)
		})
		if err == nil {
			if len(s.books) == 0 {
				t.Fatalf("%q is of no pair", text)
			}
			d.snapshot = true
			if book.apply(&d, true) == nil {
				for _, amount := range book.sell {
					if amount <= 0 {
						t.Fatalf("%q leaves %v at a price", text, amount)
					}
				}
			}
		}
		parseBalance(text) //nolint:errcheck // the test only requires that it returns
		if b, err := parseBalance(text); err == nil {
			if again, err := parseBalance([]byte(b.String())); err != nil || again != b {
				t.Fatalf("%q is %v and then %v, %v", text, b, again, err)
			}
		}
	})
}

func FuzzParseKeys(f *testing.F) {
	for _, s := range []string{"", "a,b", "# keys\n\n a , b \r\nc,d,e", "a", "a,b\na,c", "a b,c",
		",b", "\xff,x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := ParseKeys(text)
		if err != nil {
			return
		}
		var again strings.Builder
		for _, k := range keys {
			again.WriteString(k.Key + "," + k.Secret + "\n")
		}
		same, err := ParseKeys(again.String())
		if err != nil || len(same) != len(keys) || len(keys) == 0 {
			t.Fatalf("%q came back as %q, %v", text, same, err)
		}
		for i := range keys {
			if same[i] != keys[i] {
				t.Fatalf("%q came back as %q", keys, same)
			}
		}
	})
}

// Accepted stages round-trip through their text.
func FuzzParseStages(f *testing.F) {
	for _, s := range []string{"30s@1000,1m@1000..5000,30s@..0,20s@0", "1h30m@0.5", "1s@1e3..2",
		"1s", "@", "1s@..", "1s@NaN", "9999999h@1,9999999h@1", "1s@-0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o := good()
		o.Duration = 0
		var err error
		if o.Stages, err = ParseStages(text); err != nil || o.Validate() != nil {
			return
		}
		again, err := ParseStages(stagesText(o.Stages))
		if err != nil || !slices.Equal(again, o.Stages) {
			t.Fatalf("%q came back as %q, %v", text, stagesText(o.Stages), err)
		}
		if n := o.schedule().Before(o.length()); n == 0 {
			t.Fatalf("%q sends nothing", text)
		}
	})
}

// Any report is refused, or equal to itself in every row, and shown within its columns.
func FuzzParseReport(f *testing.F) {
	for _, name := range []string{"before.json", "after.json"} {
		b := must(os.ReadFile("testdata/" + name))
		f.Add(b)
		f.Add(bytes.Replace(b, []byte(`"operations"`), []byte(`"stages": [{"seconds": 60, `+
			`"to_rate": 1e300, "rate": 7, "done_per_second": 1e300, "latency": {"count": 7, "p99_ms": 1}}], "operations"`), 1))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ParseReport(text)
		if err != nil {
			return
		}
		c := must(Compare(r, r))
		if c.Judge(0); len(c.Settings)+len(c.Worse) > 0 {
			t.Fatalf("it differs from itself: %+v", c)
		}
		var out strings.Builder
		worked(t, c.WriteText(&out))
		for line := range strings.Lines(out.String()) {
			if utf8.RuneCountInString(line) > 100+len("\n") {
				t.Fatalf("%q is too wide", line)
			}
		}
		if _, err := json.Marshal(c); err != nil {
			t.Fatal(err)
		}
	})
}
