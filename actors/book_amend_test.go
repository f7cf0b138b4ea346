package actors

import (
	"strings"
	"testing"

	"exchange/core/money"
)

func TestAnAmendWithoutItsReserveIsABug(t *testing.T) {
	d := newDesk(t, nil)
	d.buy(ann, 3, 90)
	c := d.amending(1, AmendRequest{Price: 91})
	c.reserved.amount = money.Amount(0).Balance()
	defer func() {
		if p, _ := recover().(string); !strings.HasPrefix(p, "BUG: ") {
			t.Errorf("panic %q", p)
		}
	}()
	d.b.decide(c)
}
