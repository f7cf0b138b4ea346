package actors

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
	"exchange/persistence"
)

// testdata/format holds what this program writes: a Pebble folder and a Redis's append-only files,
// each with a little of everything: a snapshot, the journal after it, and projections. A change of
// a stored format fails this test. Raise the format's version then, and write the data anew:
//
//	go test -tags prove ./actors -run TestTheStoredFormatsAreThoseOfToday -write-format
const formatFolder = "testdata/format"

// formats open the data of each kind of store, which writeFormats writes anew. A proof has Redis's.
var (
	formats      = map[string]func(*testing.T) persistence.Store{"pebble": openPebbleFormat}
	writeFormats = func(*testing.T) {}
)

func openPebbleFormat(t *testing.T) persistence.Store {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	copyFolder(t, dir, filepath.Join(formatFolder, "pebble"))
	return openPebble(t, dir)
}

// a little of everything
func writeEverything(t *testing.T, store persistence.Store) {
	o := testOptions(store)
	e := start(t, o)
	ann := fund(t, e, "ann", map[string]money.Amount{"BTC": 10 * coin, "USD": 1000 * coin})
	ben := fund(t, e, "ben", map[string]money.Amount{"USD": 1000 * coin, "EUR": 5})
	must[Admin](t)(e.CreateKey("test", "ann", "second-key", "second-secret", event.PermissionRead,
		[]string{"10.0.0.0/8"}))
	nonce := uint64(100)
	place := func(key *directory.Key, pair int, side trading.Side, price money.Price,
		amount money.Amount,
		id string) {
		nonce++
		w := OrderRequest{Pair: e.Pairs()[pair], Side: side, Price: price, Amount: amount}
		if id != "" {
			w.ClientID, _ = event.NewClientID(id)
		}
		must[*Command](t)(e.Place(key, nonce, &w)).Free()
	}
	part := func(price money.Price) {
		place(ann, 0, trading.Sell, price, 2*coin, "")
		place(ann, 0, trading.Sell, price+1e6, coin, fmt.Sprint("named-", price))
		place(ben, 0, trading.Buy, price, 15*coin/10, "ben-"+fmt.Sprint(price))
		place(ben, 0, trading.Buy, price-50e8, coin, "")
		place(ann, 1, trading.Sell, 7e8, coin/2, "")
		place(ben, 0, trading.Buy, 1e10, 1000*coin, "") // refused for funds
		nonce++
		must[*Command](t)(e.Cancel(ben, nonce, 4)).Free()
		nonce++
		must[*Command](t)(e.Cancel(ben, nonce, 999)).Free() // refused
	}
	part(100e8)
	stop(t, e) // with a snapshot
	e = start(t, o)
	ann, ben = e.Key([]byte("key-of-ann")), e.Key([]byte("key-of-ben"))
	part(101e8)
	must[Admin](t)(e.RevokeKey("test", "second-key"))
	must[Admin](t)(e.Deposit("test", "ben", "EUR", 12345678, "late"))
	succeeds(t, e.Ask(new(committed.Barrier), nil, 0))
	e.Abandon() // and with a journal after it
}

// summary returns the expected reading of the data: the state's hash, and the rows of the history.
func summary(t *testing.T, store persistence.Store) string {
	e := start(t, testOptions(store))
	if err := e.VerifyAtRest(); err != nil {
		t.Error(err)
	}
	r := new(committed.Hash)
	if err := e.Ask(r, nil, 0); err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	var text strings.Builder
	e.probe(e.work.Fold, func() { describe(&text, e.committed.State()) })
	auditClean(t, e)
	e.probe(e.work.Fold, func() {
		for _, p := range e.committed.State().Pairs() {
			if last := p.Market.Ticker(0).Last; (last == 0) != (p.LastTrade() == 0) {
				t.Errorf("%s: the newest trade is %d, its price %v", p.Name, p.LastTrade(), last)
			}
		}
	})
	trades, orders, deposits := 0, 0, 0
	ctx := context.Background()
	if err := committed.History(e.Door).Trades(ctx,
		persistence.TradeQuery{}, func(*persistence.Trade) bool {
			trades++
			return true
		}); err != nil {
		t.Fatal(err)
	}
	for account := uint32(1); account <= 2; account++ {
		if err := committed.History(e.Door).Orders(ctx,
			persistence.OrderQuery{Account: account}, func(*persistence.Order) bool {
				orders++
				return true
			}); err != nil {
			t.Fatal(err)
		}
		if err := committed.History(e.Door).Deposits(ctx,
			persistence.DepositQuery{Account: account}, func(*persistence.Deposit) bool {
				deposits++
				return true
			}); err != nil {
			t.Fatal(err)
		}
	}
	e.Abandon()
	fmt.Fprintf(&text, "%d trades, %d closed orders, %d deposits\n", trades, orders, deposits)
	return text.String()
}

// describe writes the contents of a state, independent of its encoding.
func describe(w *strings.Builder, s *state.State) {
	order, trade, deposit := s.LastIDs()
	fmt.Fprintf(w, "sequence %d, newest order %d, trade %d, deposit %d\n", s.Seq(), order, trade,
		deposit)
	for i, c := range s.Currencies() {
		fmt.Fprintf(w, "currency %d %s: %v deposited, %v withdrawn\n", i+1, c.Code, c.Deposited,
			c.Withdrawn)
		if !c.Adjusted.IsZero() {
			fmt.Fprintf(w, "  %v adjusted\n", c.Adjusted)
		}
	}
	for _, a := range s.Accounts() {
		fmt.Fprintf(w, "account %d %s %q: %d orders closed\n", a.ID, a.Name, a.Email, a.Closed)
		for _, h := range a.Wallet.Holdings() {
			fmt.Fprintf(w, "  %v of currency %d, %v reserved\n", h.Balance, h.Currency, h.Reserve)
		}
		for o := range a.Open.Newest() {
			open, _, _ := s.OpenOrder(a, o.ID)
			fmt.Fprintf(w, "  open in pair %d: %+v %v\n", o.Pair, open, a.ClientIDs.Of(o.ID))
		}
	}
	for _, k := range s.Keys() {
		fmt.Fprintf(w,
			"key %d %s of account %d: permissions %d, allow %v, sealed %x by %d, nonce %d, "+
				"revoked %v\n",
			k.Number, k.Key.Key, k.Account, k.Permissions, k.Allow, k.Sealed, k.SealedBy, k.Nonce,
			k.Revoked)
	}
	for _, p := range s.Pairs() {
		fmt.Fprintf(w, "pair %d %s of %d and %d: update id %d at %d\n", p.Number, p.Name, p.Base,
			p.Quote, p.Market.UpdateID, p.Market.TimeUs)
	}
}

func copyFolder(t *testing.T, to, from string) {
	t.Helper()
	succeeds(t, os.CopyFS(to, os.DirFS(from)))
}

func TestTheStoredFormatsAreThoseOfToday(t *testing.T) {
	writeFormats(t)
	for name, open := range formats {
		t.Run(name, func(t *testing.T) {
			want := must[[]byte](t)(os.ReadFile(filepath.Join(formatFolder, name+".txt")))
			s := open(t)
			defer s.Close()
			if got := summary(t, s); got != string(want) {
				t.Errorf("the data are read as\n%swant\n%s", got, want)
			}
		})
	}
}
