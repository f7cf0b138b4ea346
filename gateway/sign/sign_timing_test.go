package sign

import (
	"testing"

	"exchange/gateway/params"
)

// BenchmarkVerify is the verification alone; BenchmarkParseAndVerify includes reading the body.
// The cases that are refused cost the most: every text is tried.
func BenchmarkVerify(b *testing.B)         { benchmark(b, false) }
func BenchmarkParseAndVerify(b *testing.B) { benchmark(b, true) }

func benchmark(b *testing.B, parse bool) {
	for _, c := range []struct {
		name         string
		request      request
		text, signed string
		want         bool
	}{
		{"json", asJSON, orderJSON, orderText, true},
		{"json-refused", asJSON, orderJSON, demoKey, false},
		{"form", asForm, orderForm, orderText, true},
		{"form-as-sent", asForm, orderForm, demoKey + orderForm, true},
		{"form-refused", asForm, orderForm, demoKey, false},
		{"get-key-alone", asQuery, "pair=BTC_USD&limit=100", demoKey, true},
		{"get-worst-refused", asQuery, "pair=(BTC+USD)&limit=100", "wrong", false},
	} {
		b.Run(c.name, func(b *testing.B) {
			keyed := New([]byte(demoSecret))
			var s params.Set
			var v Verifier
			key, body, sig := []byte(demoKey), []byte(c.text), signature(demoSecret, c.signed)
			if err := c.request.parse(&s, body); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if parse {
					s.Reset()
					if err := c.request.parse(&s, body); err != nil {
						b.Fatal(err)
					}
				}
				if c.request.verify(keyed, &v, key, &s, body, sig) != c.want {
					b.Fatal("wrong answer")
				}
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	secret := []byte(demoSecret)
	b.ReportAllocs()
	for b.Loop() {
		New(secret)
	}
}
