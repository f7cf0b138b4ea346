package loadtest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/core/money"
)

// A field is the pairs, accounts and keys of the test.
type field struct {
	pairs        []*pair
	accounts     []*account
	users        []*user
	keysToRevoke []string // keys to revoke at the end
}

// workers is the number of concurrent requests before and after the load.
const workers = 16

// prepare reads the pairs, and makes or takes the accounts.
func prepare(ctx context.Context, r *rest, say func(format string, args ...any)) (f *field,
	err error) {
	o := r.o
	f = &field{}
	// The first request is not repeated: without a server the address is most likely wrong.
	err = r.do(ctx, r.api, func(req *fasthttp.Request) { req.SetRequestURI("/api/v1/pairs/") },
		false, func(resp *fasthttp.Response) (err error) {
			f.pairs, err = newPairs(resp.Body())
			return err
		})
	if err != nil {
		return f, err
	}
	if n := o.Pairs; n > len(f.pairs) {
		return f,
			usagef(
				"--pairs is %d, and the server has %d pairs: start it with more, as by `exchange "+
					"serve --synthetic-pairs %d`", n, len(f.pairs), n)
	} else if n > 0 {
		f.pairs = f.pairs[:n]
	}
	if len(f.pairs) == 0 || len(f.pairs) > 1<<16 {
		return f, usagef("the server has %d pairs: 1 to %d are possible", len(f.pairs), 1<<16)
	}
	for i := range o.Accounts {
		f.accounts = append(f.accounts, &account{pairs: pairsOf(f.pairs, o, i)})
	}
	nonce := uint64(time.Now().UnixMilli())
	if len(o.Keys) > 0 {
		for i, k := range o.Keys {
			u := newUser(f.accounts[i], i, k, nonce)
			f.users = append(f.users, u)
			if err := r.catchUp(ctx, u); err != nil {
				return f, err
			}
		}
	} else if err := f.createAccounts(ctx, r, nonce, say); err != nil {
		return f, err
	}
	if o.NoVerify {
		return f, nil
	}
	var n atomic.Int64
	return f, atOnce(ctx, len(f.accounts), workers, func(ctx context.Context, i int) error {
		say("looking at account %d of %d", n.Add(1), len(f.accounts))
		return f.accounts[i].readBefore(ctx, r)
	})
}

// pairsOf returns the pairs that an account trades: enough that all are traded, and few enough that
// accounts can be funded.
func pairsOf(all []*pair, o *Options, i int) []*pair {
	n := o.PairsPerAccount
	if n == 0 {
		n = max(4, (len(all)+o.Accounts-1)/o.Accounts)
	}
	n = min(n, len(all))
	var of []*pair
	if o.Model == "hot-pair" {
		of = append(of, all[0])
	}
	for j := range n {
		if p := all[(i*n+j)%len(all)]; len(of) == 0 || p != of[0] {
			of = append(of, p)
		}
	}
	return of
}

// createAccounts creates and funds accounts with a key for each connection that uses them. It
// reuses accounts of an earlier test.
func (f *field) createAccounts(ctx context.Context, r *rest, nonce uint64,
	say func(string, ...any)) error {
	o := r.o
	keysEach := max(1, (o.Connections+o.Accounts-1)/o.Accounts)
	witnessed := len(o.Addresses) > 1 && !o.NoVerify
	if witnessed {
		keysEach++
	}
	all := make([][]Key, o.Accounts)
	var n atomic.Int64
	err := atOnce(ctx, o.Accounts, workers, func(ctx context.Context, i int) error {
		a := f.accounts[i]
		a.name = fmt.Sprintf("%s-%d", o.Name, i+1)
		say("making account %d of %d", n.Add(1), o.Accounts)
		err := r.operate(ctx, "accounts", map[string]string{"name": a.name}, nil, true)
		var status *statusError
		if err != nil && !(errors.As(err, &status) && status.status == 400) { // there already
			return fmt.Errorf("making the account %s: %w", a.name, err)
		}
		for range keysEach {
			var key Key
			if err := r.operate(ctx, "keys",
				map[string]any{"account": a.name, "permissions": []string{"read", "trade"}}, &key,
				false); err != nil {
				return fmt.Errorf("making a key for %s: %w", a.name, err)
			}
			all[i] = append(all[i], key)
		}
		return nil
	})
	for i, keys := range all {
		a := f.accounts[i]
		for _, k := range keys {
			f.keysToRevoke = append(f.keysToRevoke, k.Key)
			f.users = append(f.users, newUser(a, len(f.users), k, nonce))
		}
		if n := len(a.users) - 1; witnessed && n == keysEach-1 {
			a.witnessUser, a.users = a.users[n], a.users[:n]
		}
	}
	if err != nil {
		return err
	}
	n.Store(0)
	return atOnce(ctx, o.Accounts, workers, func(ctx context.Context, i int) error {
		say("funding account %d of %d", n.Add(1), o.Accounts)
		return f.accounts[i].fund(ctx, r)
	})
}

// Number of its largest orders that an account can pay for, and the largest single deposit.
const (
	ordersFunded = 1_000_000
	mostDeposit  = 9e10 * 1e8
)

// fund deposits the missing part of the account's possible needs.
func (a *account) fund(ctx context.Context, r *rest) error {
	has, err := a.wallets(ctx, r)
	if err != nil {
		return err
	}
	needs := map[string]float64{} // of 1e-8
	for _, p := range a.pairs {
		base := float64(p.lot) * float64(p.maxLots) * ordersFunded
		needs[p.base] = max(needs[p.base], base)
		needs[p.quote] = max(needs[p.quote], base*float64(p.mid*p.tick)/1e8*2)
	}
	for currency, need := range needs {
		amount := money.Amount(min(need, mostDeposit))
		if has[currency].balance.Cmp((amount / 2).Balance()) >= 0 {
			continue
		}
		// A reference of this try: its repeat does nothing.
		in := map[string]string{"account": a.name, "currency": currency, "amount": amount.String(),
			"reference": fmt.Sprintf("loadtest-%s-%s-%d", a.name, currency, time.Now().UnixNano())}
		if err := r.operate(ctx, "deposits", in, nil, true); err != nil {
			return fmt.Errorf("funding %s with %s %s: %w", a.name, amount, currency, err)
		}
	}
	return nil
}

// readBefore reads the account's holdings, fees and newest rows before the load.
func (a *account) readBefore(ctx context.Context, r *rest) (err error) {
	if a.before, err = a.wallets(ctx, r); err != nil {
		return err
	}
	if a.feesBefore, err = a.makerFees(ctx, r); err != nil {
		return err
	}
	newest := func(path string, at *uint64) error {
		return r.get(ctx, a.users[0], path, func(body []byte) error {
			return eachItem(body, func(item []byte) error {
				return eachField(item, func(name, v []byte) bool {
					if string(name) == "id" {
						*at = number(v)
					}
					return string(name) != "id"
				})
			})
		})
	}
	return errors.Join(newest("/api/v1/orders/own/?limit=1", &a.newest.order),
		newest("/api/v1/exchanges/own/?limit=1", &a.newest.trade))
}

// wallets reads the account's holdings.
func (a *account) wallets(ctx context.Context, r *rest) (h funds, err error) {
	err = r.get(ctx, a.users[0], "/api/v1/wallets/", func(body []byte) error {
		h = funds{}
		return eachItem(body, func(item []byte) error {
			var currency string
			var x holding
			var bad error
			err := eachField(item, func(name, v []byte) bool {
				switch string(name) {
				case "currency":
					currency = string(v)
				case "balance":
					x.balance, bad = parseBalance(v)
				case "reserve":
					x.reserve, bad = parseBalance(v)
				}
				return bad == nil
			})
			h[currency] = x
			return errors.Join(err, bad)
		})
	})
	return h, err
}

// makerFees reads the account's maker rates in its pairs.
func (a *account) makerFees(ctx context.Context, r *rest) (fees map[string]money.Rate, err error) {
	err = r.get(ctx, a.users[0], "/api/v1/fees/", func(body []byte) error {
		fees = map[string]money.Rate{}
		for _, p := range a.pairs {
			fees[p.name] = 0
		}
		return eachItem(body, func(item []byte) error {
			var name string
			var rate money.Rate
			var bad error
			err := eachField(item, func(field, value []byte) bool {
				switch string(field) {
				case "pair":
					name = string(value)
				case "maker":
					rate, bad = money.ParseRate(value)
				}
				return bad == nil
			})
			if _, trades := fees[name]; trades {
				fees[name] = rate
			}
			return errors.Join(err, bad)
		})
	})
	return fees, err
}

// tidy cancels the resting orders and revokes the made keys. It continues after errors.
func (f *field) tidy(ctx context.Context, r *rest, say func(string, ...any)) error {
	var errs []error
	if !r.o.LeaveOrders {
		errs = append(errs, atOnce(ctx, len(f.accounts),
			workers, func(ctx context.Context, i int) error {
				a := f.accounts[i]
				say("cancelling what rests: account %d of %d", i+1, len(f.accounts))
				if len(a.users) == 0 || len(a.orders) == 0 {
					return nil
				}
				return r.post(ctx, a.users[0], "/api/v1/order-cancel-all/", "all=1")
			}))
	}
	errs = append(errs, f.revoke(ctx, r, say))
	return errors.Join(errs...)
}

func (f *field) revoke(ctx context.Context, r *rest, say func(string, ...any)) error {
	return atOnce(ctx, len(f.keysToRevoke), workers, func(ctx context.Context, i int) error {
		say("revoking key %d of %d", i+1, len(f.keysToRevoke))
		return r.operate(ctx, "keys/revoke", map[string]string{"key": f.keysToRevoke[i]}, nil, true)
	})
}
