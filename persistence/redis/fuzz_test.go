package redis

import (
	"testing"

	"github.com/shopspring/decimal"

	"exchange/persistence"
)

// What a wallet holds is read from whatever text is there, and written as the same again.
func FuzzParseHolding(f *testing.F) {
	for _, s := range []string{"1.5:0.25", "0:0", "", ":", "1", "1:2:3", "-1:0", "1e2147483600:0", "0e-2147483648:0", "0.00000000000000001:0", "NaN:0", "1e5:1E-5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := parseHolding("BTC", text)
		if err != nil {
			return
		}
		fields := walletFields(&persistence.Wallet{Holdings: []persistence.Holding{h}})
		again, err := parseHolding("BTC", string(fields[len(fields)-1]))
		if err != nil || again != h || !h.Balance.Decimal().GreaterThanOrEqual(decimal.Zero) {
			t.Fatalf("%q is %+v, and written as %q %+v, %v", text, h, fields, again, err)
		}
	})
}
