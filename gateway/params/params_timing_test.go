package params

import (
	"bytes"
	"strconv"
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

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct {
		name  string
		body  []byte
		parse func(*Set, []byte) error
	}{
		{"json", []byte(orderJSON), (*Set).ParseJSON},
		{"json-escapes", []byte(escapedJSON), (*Set).ParseJSON},
		{"json-nested", []byte(nestedJSON), (*Set).ParseJSON},
		{"json-64-backwards", manyJSON(), (*Set).ParseJSON},
		{"form", []byte(orderForm), (*Set).ParseForm},
		{"form-escapes", []byte(escapedForm), (*Set).ParseForm},
		{"query", []byte(orderForm), (*Set).ParseQuery},
	} {
		b.Run(c.name, func(b *testing.B) {
			var s Set
			b.ReportAllocs()
			b.SetBytes(int64(len(c.body)))
			for b.Loop() {
				if err := c.parse(&s, c.body); err != nil {
					b.Fatal(err)
				}
				s.Reset()
			}
		})
	}
}

func BenchmarkGet(b *testing.B) {
	var s Set
	if err := s.ParseJSON([]byte(orderJSON)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := s.Get("type"); !ok { // the last in the order of names
			b.Fatal("not found")
		}
	}
}
