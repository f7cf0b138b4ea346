package loadtest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"exchange/core/money"
)

// A Banker reports the deposits made while the load ran.
type Banker struct {
	Deposits uint64  `json:"deposits"`
	Failed   uint64  `json:"failed"`
	Latency  Latency `json:"latency"` // from when a deposit was due
}

// A banker makes deposits through the operator's listener, one after the other, at a rate.
type banker struct {
	rest  *rest
	field *field
	run   string
	rate  float64
	stop  context.CancelFunc
	group sync.WaitGroup

	// owned by the goroutine until it ends
	report Banker
	took   *hdrhistogram.Histogram
}

// startBanker starts depositing; nil if there is nothing to deposit.
func startBanker(ctx context.Context, t *test) *banker {
	if t.o.Deposits == 0 {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	b := &banker{rest: t.rest, field: t.field, run: t.name, rate: t.o.Deposits, stop: stop,
		took: newHistogram()}
	b.group.Go(func() { b.deposit(ctx) })
	return b
}

// end waits for the deposit in flight.
func (b *banker) end() *Banker {
	if b == nil {
		return nil
	}
	b.stop()
	b.group.Wait()
	b.report.Latency = latency(b.took)
	return &b.report
}

// deposit gives each account in turn a little of each of its currencies.
func (b *banker) deposit(ctx context.Context) {
	began := time.Now()
	for k := 0; ; k++ {
		due := began.Add(time.Duration(float64(k) / b.rate * float64(time.Second)))
		if !pause(ctx, time.Until(due)) {
			return
		}
		a := b.field.accounts[k%len(b.field.accounts)]
		round := k / len(b.field.accounts)
		p := a.pairs[round/2%len(a.pairs)]
		currency := p.base
		if round%2 == 1 {
			currency = p.quote
		}
		amount := money.Amount(p.lot)
		// The end of the load does not cancel a deposit: its outcome would be unknown.
		err := b.rest.operate(context.WithoutCancel(ctx), "deposits",
			map[string]string{"account": a.name, "currency": currency, "amount": amount.String(),
				"reference": fmt.Sprintf("%s-banker-%d", b.run, k)}, nil, true)
		if err != nil {
			b.report.Failed++
			a.unsure = true
			continue
		}
		record(b.took, time.Since(due))
		b.report.Deposits++
		if a.banked == nil {
			a.banked = map[string]money.Balance{}
		}
		a.banked[currency] = a.banked[currency].Add(amount.Balance())
	}
}
