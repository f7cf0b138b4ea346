package loadtest

import (
	"fmt"

	"github.com/shopspring/decimal"

	"exchange/core/money"
)

// parseBalance parses an amount with up to 16 decimals.
func parseBalance(b []byte) (money.Balance, error) {
	if len(b) == 1 && b[0] == '0' {
		return money.Balance{}, nil
	}
	d, err := decimal.NewFromString(string(b))
	if err != nil {
		return money.Balance{}, fmt.Errorf("%.40q is no amount", b)
	}
	return money.BalanceFromDecimal(d)
}
