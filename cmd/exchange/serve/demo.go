package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"exchange/actors"
	"exchange/cmd/exchange/demomarket"
	"exchange/config"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/gateway/edge"
)

var demoDeposits = []struct {
	currency string
	amount   money.Amount
}{{"BTC", 100e8}, {"ETH", 1000e8}, {"USDT", 10_000_000e8}}

// demoOperator is the demo's operator name in the log of actions.
const demoOperator = "the demo"

// demoKeys returns the keys of the demo's pages. The keys allow parallel use, because a page may be
// open in several tabs and browsers.
func demoKeys() (keys []edge.DemoKey) {
	for _, name := range demomarket.Accounts {
		key := demomarket.ParallelKey(name)
		keys = append(keys, edge.DemoKey{Account: name, Key: key,
			Secret: demomarket.Secret(key)})
	}
	return keys
}

// isDemos reports whether a store is the demo's, by its first account: that has the demo's key, or,
// if the demo was stopped before it made that, the demo's address.
func isDemos(s *state.State) bool {
	first, name := s.Accounts()[0], demomarket.Accounts[0]
	return first.Name == name && (first.Email == demomarket.Email(name) &&
		first.Operated().HoldEndsUs == 0 ||
		hasDemoKey(s, first))
}

// hasDemoKey reports whether an account has, or had, its plain key of the demo.
func hasDemoKey(s *state.State, account *state.Account) bool {
	return slices.ContainsFunc(account.Keys, func(number uint32) bool {
		return s.Keys()[number-1].Key.Key == demomarket.Key(account.Name)
	})
}

// demoCheck keeps the demo's store and others apart, for actors.Options. A store is the demo's if
// its first account is the demo's first, and stays so permanently: visitors had the keys of its
// accounts, and its trades were made by a machine.
func demoCheck(cfg *config.Config) func(*state.State, func(*state.Key) ([]byte, error)) error {
	return func(s *state.State, _ func(*state.Key) ([]byte, error)) error {
		if len(s.Accounts()) == 0 {
			return nil
		}
		first, store := s.Accounts()[0], config.RedactURL(cfg.Store)
		demo := isDemos(s)
		switch {
		case demo && !cfg.Demo:
			return fmt.Errorf("%w: the store %s is the demo's, and the secrets of its accounts "+
				"%s are public: use a store of your own, or serve it with --demo",
				actors.ErrConfig, store, strings.Join(demomarket.Accounts, " and "))
		case !demo && cfg.Demo:
			return fmt.Errorf("%w: the store %s is not the demo's, for it has the account %q: the "+
				"demo would add accounts whose keys are public; give it a store "+
				"of its own (--store pebble:FOLDER) or leave out --demo",
				actors.ErrConfig, store, first.Name)
		}
		return nil
	}
}

// A demo is the configured demo; without --demo it does nothing. One goroutine at a time uses it.
type demo struct {
	cfg   *config.Config
	clock demomarket.Clock // of the engines
	due   bool             // the newest engine has to play the past, or the rest of it
	out   io.Writer        // for people; it may block
	shown bool
}

func newDemo(cfg *config.Config) demo { return demo{cfg: cfg, out: os.Stdout} }

// show prints the demo's first steps, once. Its output may have no reader.
func (d *demo) show(address string) {
	if !d.cfg.Demo || d.shown {
		return
	}
	d.shown = true
	w := newLineWriter(d.out)
	defer close(w.lines)
	printDemo(w, d.cfg, address)
}

// errPast is the reason why a demo shows nothing yet.
var errPast = errors.New("the demo plays a day of trades first")

// prepare makes engines start with the demo's past, and shows nothing before that.
func (d *demo) prepare(o *actors.Options) {
	if !d.cfg.Demo {
		return
	}
	o.ClockError, o.OnStart = d.clock.Error, func(s *state.State) {
		d.due = d.clock.SetFor(s, d.cfg.NoDemoMarket || pastIsOver(s))
	}
	o.NotReady = func(s *state.State) error {
		if !pastIsOver(s) {
			return errPast
		}
		return nil
	}
}

// pastIsOver reports whether a demo is complete. Its past comes before its keys, of which the plain
// one of the last account is the last one. So it is over permanently, and no client can send
// anything under a clock that is set back.
func pastIsOver(s *state.State) bool {
	last := s.AccountByName(demomarket.Accounts[len(demomarket.Accounts)-1])
	return last != nil && hasDemoKey(s, last)
}

// start creates the demo's content, and lets its market trade until stop is called, or ctx or the
// engine ends. stop waits for that. A fresh demo plays its past first.
func (d *demo) start(ctx context.Context, e *actors.Engine) (stop func(), err error) {
	if !d.cfg.Demo {
		return func() {}, nil
	}
	if err := openDemo(e,
		demomarket.Accounts[0]); err != nil { // which marks the store as the demo's
		return func() {}, err
	}
	if d.due {
		if err := d.playPast(ctx, e); err != nil {
			return func() {}, err
		}
	}
	if err := fillDemo(e); err != nil || d.cfg.NoDemoMarket {
		return func() {}, err
	}
	market, failed := demomarket.Open(e) // if possible, before anybody connects
	trading, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for logged := ""; failed != nil; market, failed = demomarket.Open(e) {
			if text := failed.Error(); text != logged {
				logged = text
				e.Log().Warn("the demo's market is not trading", "error", failed)
			}
			select {
			case <-trading.Done():
				return
			case <-e.Dead():
				return
			case <-time.After(time.Second):
			}
		}
		market.Run(trading)
	}()
	return func() { cancel(); <-ended }, nil
}

// pastTries bounds how often an engine begins or continues the past.
const pastTries = 5

// playPast gives a demo its past, or the rest of it. An incomplete past keeps no demo from serving.
// An error means that ctx or the engine has ended: the next engine continues.
func (d *demo) playPast(ctx context.Context, e *actors.Engine) error {
	defer d.clock.SetRight()
	began, all := time.Now(), 0
	for try := 1; ; try++ {
		orders, err := demomarket.PlayPast(ctx, e, &d.clock)
		all += orders
		if ended := cmp.Or(ctx.Err(), e.Err()); err == nil || ended != nil {
			if err == nil && all > 0 {
				e.Log().Info("the demo has a past of a day", "orders", all, "took",
					time.Since(began).Round(time.Millisecond))
			}
			return ended
		}
		if try == pastTries {
			e.Log().Warn("the demo has not all of its past", "orders", all, "error", err)
			return nil
		}
		select { // the store or the other nodes may have failed
		case <-time.After(time.Second):
		case <-ctx.Done():
		case <-e.Dead():
		}
	}
}

// openDemo makes an account of the demo, if it is missing.
func openDemo(e *actors.Engine, name string) error {
	_, err := e.CreateAccount(demoOperator, name, demomarket.Email(name))
	if _, exists := errors.AsType[*actors.RequestError](err); exists {
		return nil
	}
	return err
}

// fillDemo makes the demo's missing accounts, deposits and keys: see pastIsOver.
func fillDemo(e *actors.Engine) error {
	for _, name := range demomarket.Accounts {
		if err := openDemo(e, name); err != nil {
			return err
		}
		for _, d := range demoDeposits {
			if _, err := e.Deposit(demoOperator, name, d.currency, d.amount,
				"demo-"+name+"-"+d.currency); err != nil {
				return err
			}
		}
		if err := openDemoKeys(e, name); err != nil {
			return err
		}
	}
	return nil
}

// openDemoKeys makes the missing keys of an account, the plain one last.
func openDemoKeys(e *actors.Engine, account string) error {
	parallel, plain := demomarket.ParallelKey(account), demomarket.Key(account)
	var exists *actors.RequestError // or existed: a revoked key is not made again
	if e.Key([]byte(parallel)) == nil {
		if _, err := e.CreateParallelKey(demoOperator, account, parallel,
			demomarket.Secret(parallel),
			event.AllPermissions, nil, event.MaxParallel); err != nil && !errors.As(err, &exists) {
			return err
		}
	}
	if e.Key([]byte(plain)) == nil {
		if _, err := e.CreateKey(demoOperator, account, plain, demomarket.Secret(plain),
			event.AllPermissions, nil); err != nil && !errors.As(err, &exists) {
			return err
		}
	}
	return nil
}
