package redis

import (
	"errors"
	"testing"

	"github.com/shopspring/decimal"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// A wallet's holdings survive reading from any text and writing.
func FuzzParseHolding(f *testing.F) {
	for _, s := range []string{"1.5:0.25", "0:0", "", ":", "1", "1:2:3", "-1:0", "1e2147483600:0",
		"0e-2147483648:0", "0.00000000000000001:0", "NaN:0", "1e5:1E-5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := parseHolding("BTC", text)
		if err != nil {
			return
		}
		s := &Store{name: "redis", engine: "main"}
		fields := s.walletFields(&persistence.Wallet{Holdings: []persistence.Holding{h}})
		again, err := parseHolding("BTC", string(fields[len(fields)-3]))
		if err != nil || again != h || !h.Balance.Decimal().GreaterThanOrEqual(decimal.Zero) {
			t.Fatalf("%q is %+v, and written as %q %+v, %v", text, h, fields, again, err)
		}
	})
}

// Any entry of the journal's stream is damage, or survives appending and reading. An entry with the
// digest of another batch is never accepted.
func FuzzEntry(f *testing.F) {
	s := &Store{name: "redis", engine: "main"}
	const all = 7
	digest := func(batch []byte) string { return hex(codec.Digest(batch)) }
	f.Add("9-0", "7", digest([]byte("batch")), []byte("batch"), byte(all))
	f.Add("9-0", "7", digest([]byte("batch")), []byte("other"), byte(all))
	for i := range byte(all) {
		f.Add("9-0", "7", digest(nil), []byte{}, i)
	}
	for _, id := range []string{"", "-", "9", "9-1", "0-0", "18446744073709551615-0",
		"18446744073709551616-0", "-9-0", "+9-0", "9-0-0", "1e3-0", " 9-0"} {
		f.Add(id, "7", digest(nil), []byte{}, byte(all))
	}
	for _, x := range [][2]string{{"", ""}, {"9", "0"}, {"10", "0"}, {"-1", "0"}, {"007", "FF"},
		{"7", "g"}, {"7", "00000000000000001"}, {"7", "10000000000000000"}, {"7", "0x1"},
		{"7_0", "1_0"}} {
		f.Add("9-0", x[0], x[1], []byte("batch"), byte(all))
	}
	f.Fuzz(func(t *testing.T, id, previous, sum string, batch []byte, fields byte) {
		values := map[string]any{"p": previous, "d": sum, "b": string(batch)}
		for i, name := range []string{"p", "d", "b"} {
			if fields&(1<<i) == 0 {
				delete(values, name)
			}
		}
		prev, next, digested, got, err := s.entry(id, values)
		if err != nil {
			if !errors.Is(err, persistence.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if len(values) < 3 || string(got) != string(batch) {
			t.Fatalf("%q is read from %q", got, values)
		}
		chain := codec.Chain{After: prev, End: next}
		if err := chain.Next(prev, next, digested, got); err != nil {
			if !errors.Is(err, persistence.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		prev2, next2, digested2, again, err := s.entry(dec(next)+"-0",
			map[string]any{"p": dec(prev), "d": digest(got), "b": string(got)})
		if err != nil || prev2 != prev || next2 != next || digested2 != digested ||
			string(again) != string(got) {
			t.Fatalf("(%d, %d] %x %q became (%d, %d] %x %q, %v", prev, next, digested, got, prev2,
				next2, digested2, again, err)
		}
	})
}
