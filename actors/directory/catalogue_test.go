package directory

import (
	"strings"
	"testing"
)

// A delisted name is distinguished from one that never existed.
func TestADelistedPairOrCurrencyIsRefusedWithTheReason(t *testing.T) {
	c := &Catalogue{ever: map[string]uint16{"AA_BB": 1}, codes: []string{"AA"}}
	for said, want := range map[string]string{
		c.NoPair("AA_BB"):  "put it back into the configuration",
		c.NoCurrency("AA"): "put it back into the configuration",
		c.NoPair("X_Y"):    "there is no pair",
		c.NoCurrency("X"):  "there is no currency",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%q does not say %q", said, want)
		}
	}
}
