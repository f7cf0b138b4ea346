package state

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/matching"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/core/wire"
)

// oneOfEach returns small with a revoked key, another one and a cancel: every field of an image is
// in use.
func oneOfEach() *State {
	s := small()
	second := s.keys[0].Key
	second.Number, second.Key = 2, "alice-2"
	apply(must{}, s, event.Record{Kind: event.KindKey, TimeUs: 40, Key: second}, cancelOf1(),
		event.Record{Kind: event.KindKeyRevoked, TimeUs: 50,
			KeyRevoked: event.KeyRevoked{Number: 1}},
		event.Record{Kind: event.KindOrder, Pair: 1, TimeUs: 51,
			Order: event.Order{ID: 6, Account: 1, Side: 2, Price: 12 * coin, Amount: coin,
				Remaining: coin, ClientID: clientID("open")}})
	return s
}

// everything returns oneOfEach with withdrawals in all their states, mails, and decisions of
// operators.
func everything() *State {
	s := oneOfEach()
	asks := func(id uint64, account uint32, currency uint16, amount money.Amount, timeUs int64,
		address string) event.Record {
		return event.Record{Kind: event.KindWithdrawal, TimeUs: timeUs,
			Withdrawal: event.Withdrawal{ID: id, Account: account, Currency: currency,
				Amount:  amount,
				Address: address}}
	}
	moves := func(id uint64, to uint8, timeUs int64) event.Record {
		r := event.Record{Kind: event.KindWithdrawalStatus, TimeUs: timeUs,
			WithdrawalStatus: event.WithdrawalStatus{ID: id, Account: 1, Currency: 1, Amount: coin,
				To: to}}
		if id == 2 || id == 3 {
			w := &r.WithdrawalStatus
			w.Account, w.Currency, w.Amount = 2, 2, money.Amount(id)*10*coin
		}
		if to == event.WithdrawalRefused {
			r.WithdrawalStatus.Details = "no such place"
		}
		return r
	}
	code := func(expired bool, tries uint32, timeUs int64) event.Record {
		return event.Record{Kind: event.KindCodeRefused, TimeUs: timeUs,
			CodeRefused: event.CodeRefused{Withdrawal: 1, Account: 1, Expired: expired,
				Tries: tries}}
	}
	apply(must{}, s, asks(1, 1, 1, coin, 1001, "first"), asks(2, 2, 2, 20*coin, 1002, "second"),
		asks(3, 2, 2, 30*coin, 1003, ""),
		asks(4, 1, 1, coin, 1004, "4"), asks(5, 1, 1, coin, 1005, "5"),
		code(false, 1, 1006), code(true, 1, 1007), code(false, 2, 1008),
		moves(2, event.WithdrawalVerified, 1009),
		moves(3, event.WithdrawalVerified, 1010), moves(3, event.WithdrawalApproved, 1011),
		moves(4, event.WithdrawalVerified, 1012), moves(4, event.WithdrawalRefused, 1013),
		moves(5, event.WithdrawalCancelled, 1014), mailed(1), mailed(3),
		event.Record{Kind: event.KindHistory, TimeUs: 1014, History: event.HistoryID{15: 7}},
		halt(2, true), freeze(2, true), ownFees(1, 1, 100, 200), ownFees(2, 1, 300, money.MaxRate),
		ownFees(2, 2, 0, 400), maintenance(true, "back at noon"))
	return s
}

// speaking returns instructed with queued orders, switches, settings, an ended maintenance, and a
// partly filled order that prevented another one.
func speaking() *State {
	s := instructed()
	apply(must{}, s, falls()...)
	changed := later(waitsElse(), 55)
	changed.Amended.ID = 11
	apply(must{}, s, changed, event.Record{Kind: event.KindInstructed, Pair: 1, TimeUs: 60,
		Order: event.Order{ID: 12, Account: 1, Side: 1, Price: 10 * coin, Amount: 2 * coin,
			Remaining: coin, ClientID: clientID("twelve"), Trades: []event.Trade{{ID: 3, Maker: 8,
				MakerAccount: 2, Price: 10 * coin, Amount: coin}}},
		Instructions: trading.Instructions{ExpireUs: 3000, SelfTrade: 2,
			Prevented: []trading.Prevented{{Order: 1, Cancel: 13, Price: 10 * coin,
				Amount: coin}}}},
		event.Record{Kind: event.KindSwitch, TimeUs: 61, Switch: event.Switch{Account: 1, Key: 1,
			Armed: true, DueUs: 5000, Seconds: 5, Pair: 2, Side: 2, Prefix: clientID("tw")}},
		event.Record{Kind: event.KindSwitch, TimeUs: 62, Switch: event.Switch{Account: 1, Key: 1,
			Armed: true, Session: true}},
		event.Record{Kind: event.KindSettings, Settings: event.Settings{Account: 2, SelfTrade: 3}},
		maintenance(true, ""), later(maintenance(false, ""), 70))
	return s
}

// parallel is the state of oneOfEach with a key for parallel use.
func parallel() *State {
	s := oneOfEach()
	number := uint32(len(s.Keys()) + 1)
	apply(must{}, s, event.Record{Kind: event.KindKey, Key: event.Key{Number: number,
		Account: 2, Key: "parallel", Permissions: 3, SealedBy: 5, Sealed: []byte("sealed"),
		NonceWindow: 3}}, refusal(2, number, 1000), refusal(2, number, 9))
	return s
}

func refusal(account, key uint32, nonce uint64) event.Record {
	return event.Record{Kind: event.KindRefusal, Refusal: event.Refusal{Account: account, Key: key,
		Nonce: nonce, Reason: event.RefusedFunds}}
}

func clientID(s string) event.ClientID {
	id, err := event.NewClientID(s)
	if err != nil {
		panic(err)
	}
	return id
}

var writeFormats = flag.Bool("write-format", false, "rewrite testdata/*.hex")

// testdata holds the images of oneOfEach and of everything. Stores hold such images: a change of
// the format raises imageVersion and rewrites them:
//
//	go test ./core/state -run TestTheStoredImageIsStillTheSame -write-format
func TestTheStoredImageIsStillTheSame(t *testing.T) {
	f := func(s *State, name string) {
		t.Helper()
		name = filepath.Join("testdata", name)
		got := hex.EncodeToString(s.AppendTo(nil)) + "\n"
		if *writeFormats {
			if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		golden, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(golden) {
			t.Errorf("the image is\n%s, stored is\n%s", got, golden)
		}
		b, err := hex.DecodeString(strings.TrimSpace(string(golden)))
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(b)
		if err != nil || back.Hash() != s.Hash() {
			t.Fatalf("the stored image is read as another state: %v", err)
		}
		if err := back.Check(); err != nil {
			t.Error(err)
		}
	}
	f(oneOfEach(), "image-one-of-each.hex")
	f(everything(), "image-everything.hex")
	f(speaking(), "image-instructions.hex")
	f(parallel(), "image-parallel.hex")
	f(namedOnes(), "image-named.hex")
	f(adjusted(), "image-adjusted.hex")
	f(cancelling(), "image-cancels.hex")
	f(held(), "image-held.hex")
	f(closedOne(), "image-closed.hex")
}

// One of that many changes of a byte is tried. With the tag prove all are.
var oneOf = 4

func TestTheImageOfNothing(t *testing.T) {
	s, err := Decode(New().AppendTo(nil))
	if err != nil || s.Hash() != New().Hash() {
		t.Error(err)
	}
}

func TestAnImageIsTheSameInPieces(t *testing.T) {
	s := everything()
	whole := s.AppendTo(nil)
	var pieces [][]byte
	for piece := range func(yield func([]byte) bool) { s.image(1, yield) } {
		pieces = append(pieces, piece)
	}
	if entries := len(s.accounts) + len(s.keys) + len(s.withdrawals) + s.Mails(); len(pieces) <
		entries {
		t.Errorf("%d pieces, and there are %d entries", len(pieces), entries)
	}
	if got := bytes.Join(pieces, nil); !bytes.Equal(got, whole) {
		t.Errorf("joined the pieces are\n%x, the image is\n%x", got, whole)
	}
}

// A range loop panics when its function yields once more after the loop has ended.
func TestAnImageStopsWhenItsReceiverDoes(t *testing.T) {
	s := everything()
	for taken, more := 1, true; more; taken++ {
		n := 0
		more = false
		for range func(yield func([]byte) bool) { s.image(1, yield) } {
			if n++; n == taken {
				more = true
				break
			}
		}
	}
}

func TestEveryTruncationOfAnImageIsRefused(t *testing.T) {
	for _, image := range [][]byte{oneOfEach().AppendTo(nil), everything().AppendTo(nil),
		speaking().AppendTo(nil), namedOnes().AppendTo(nil)} {
		for n := range image {
			if _, err := Decode(image[:n:n]); !errors.Is(err, ErrImage) {
				t.Fatalf("the first %d of %d bytes: %v", n, len(image), err)
			}
		}
		if _, err := Decode(append(image, 0)); !errors.Is(err, ErrImage) {
			t.Errorf("a byte too many: %v", err)
		}
	}
}

// A changed byte may make another possible state: detecting that is for the checksum around an
// image. But then the state can be used, checked and written.
func usable(t *testing.T, image []byte) {
	t.Helper()
	s, err := Decode(image)
	if err != nil {
		_, other := errors.AsType[*wire.OtherVersion](err)
		if !other && !errors.Is(err, ErrImage) || s != nil {
			t.Fatalf("%v, %v", s, err)
		}
		return
	}
	again := s.AppendTo(nil)
	back, err := Decode(again)
	if err != nil || string(back.AppendTo(nil)) != string(again) {
		t.Fatalf("a decoded image is written as one that is not read: %v", err)
	}
	s.Check()
	for _, a := range s.Accounts() {
		for _, h := range a.Wallet.Holdings() {
			h.Available()
		}
		for o := range a.Open.Newest() {
			if _, _, ok := s.OpenOrder(a, o.ID); !ok {
				t.Fatalf("open order %d is in no book", o.ID)
			}
		}
	}
	next := deposit()
	next.Deposit.ID, next.Deposit.Reference = s.depositCount+1, "a reference that is new"
	if s.Apply(&next, new(Effects)) == nil {
		s.AppendTo(nil)
	}
	for _, r := range []event.Record{buy(), cancelOf1()} {
		if s, err := Decode(image); err == nil {
			s.Apply(&r, new(Effects))
		}
	}
	if s, err := Decode(image); err == nil {
		endEverything(s)
		s.AppendTo(nil)
	}
	if s, err := Decode(image); err == nil {
		endOrders(s)
		s.AppendTo(nil)
	}
}

// endOrders triggers queued orders, lets orders expire and cancels all others, where possible.
func endOrders(s *State) {
	var e Effects
	do := func(r event.Record) bool { return s.Apply(&r, &e) == nil }
	for _, p := range s.pairs {
		timeUs, id := p.timeUs, p.lastOrder
		if head, any := p.Stops.Head(); any {
			o, _ := p.Open(head.Order.ID)
			x := p.Instructed(o.ID).Instructions
			if x.Cancelled = trading.CancelledIOC; !x.IOC && !x.Market {
				x.Cancelled = 0
			}
			x.Prevented = nil
			if !do(event.Record{Kind: event.KindTriggered, Pair: p.Number, TimeUs: timeUs,
				Order: event.Order{ID: o.ID, Account: o.Account, Side: o.Side, Price: o.Price,
					Amount: o.Amount, Remaining: o.Remaining, RestCancelled: x.Cancelled != 0,
					ClientID: s.Account(o.Account).ClientIDs.Of(o.ID)},
				Triggered: event.Triggered{Was: event.Was{Price: o.Price, Open: o.Remaining},
					FromBook: head.InBook}, Instructions: x}) {
				return
			}
		}
		for _, a := range s.accounts {
			list := slices.Collect(a.Open.Newest())
			for _, open := range list {
				o, ok := p.Open(open.ID)
				if !ok {
					continue
				}
				id++
				if x := p.Instructed(o.ID); x != nil && x.ExpireUs != 0 {
					timeUs = max(timeUs, x.ExpireUs)
					if !do(event.Record{Kind: event.KindExpired, Pair: p.Number, TimeUs: timeUs,
						Expired: []event.Expired{{ID: id, Order: o.ID, Account: a.ID, Side: o.Side,
							Price: o.Price, Open: o.Remaining}}}) {
						return
					}
				} else if !do(event.Record{Kind: event.KindCancel, Pair: p.Number, TimeUs: timeUs,
					Cancel: event.Cancel{ID: id, Order: o.ID, Account: a.ID, Side: o.Side,
						Price: o.Price, Remaining: o.Remaining}}) {
					return
				}
			}
		}
	}
}

// endEverything ends everything pending, where possible. After an error a state is not used.
func endEverything(s *State) {
	var records []event.Record
	for _, id := range slices.Sorted(maps.Keys(s.withdrawals)) {
		w := s.withdrawals[id]
		moves := event.WithdrawalStatus{ID: id, Account: w.Account, Currency: w.Currency,
			Amount: w.Amount, To: event.WithdrawalApproved,
			DespiteFreeze: s.Account(w.Account).Frozen}
		if w.Status == event.WithdrawalNew {
			verify := moves
			verify.To, verify.DespiteFreeze = event.WithdrawalVerified, false
			records = append(records, event.Record{Kind: event.KindCodeRefused,
				CodeRefused: event.CodeRefused{Withdrawal: id, Account: w.Account, Expired: true,
					Tries: w.Tries}},
				event.Record{Kind: event.KindWithdrawalStatus, WithdrawalStatus: verify})
		}
		records = append(records, event.Record{Kind: event.KindWithdrawalStatus,
			WithdrawalStatus: moves})
	}
	for m := range s.MailsAfter(0) {
		records = append(records, mailed(m.ID))
	}
	for _, p := range s.pairs {
		r := halt(p.Number, !p.Halted)
		r.TimeUs = p.timeUs
		records = append(records, r)
		for _, a := range s.accounts {
			records = append(records, ownFees(p.Number, a.ID, 1, 1), usualFees(p.Number, a.ID))
		}
	}
	for i := range records {
		if s.Apply(&records[i], new(Effects)) != nil {
			return
		}
	}
}

func TestAnyChangedByteIsRefusedOrMakesAUsableState(t *testing.T) {
	for _, image := range [][]byte{everything().AppendTo(nil), speaking().AppendTo(nil),
		namedOnes().AppendTo(nil)} {
		for i := range image {
			was := image[i]
			for j, b := range []byte{0, 1, 2, 3, was - 1, was + 1, 0x7f, 0x80, 0xff, was ^ 0x80,
				was ^ 4} {
				if image[i] = b; (i+j)%oneOf == 0 {
					usable(t, image)
				}
			}
			image[i] = was
		}
		if _, err := Decode(image); err != nil {
			t.Fatal(err)
		}
	}
}

// impossible corrupts a state whose image Decode must refuse.
func impossible(t *testing.T, what string, s *State, spoil func(s *State), text string) {
	t.Helper()
	spoil(s)
	if _, err := Decode(s.AppendTo(nil)); !errors.Is(err, ErrImage) ||
		!strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v", what, err)
	}
}

// impossibleOf returns impossible for corrupted copies of one state.
func impossibleOf(t *testing.T, sound func() *State) func(what string, spoil func(s *State),
	text string) {
	return func(what string, spoil func(s *State), text string) {
		t.Helper()
		impossible(t, what, sound(), spoil, text)
	}
}

func TestImpossibleStatesAreRefused(t *testing.T) {
	f := func(what string, spoil func(s *State)) {
		t.Helper()
		impossible(t, what, oneOfEach(), spoil, "")
	}
	f("two currencies of one code", func(s *State) { s.currencies[1].Code = "BTC" })
	f("two accounts of one name", func(s *State) { s.accounts[1].Name = "alice" })
	f("a key of no account", func(s *State) { s.keys[1].Account = 9 })
	f("two keys of one name", func(s *State) { s.keys = append(s.keys, s.keys[0]) })
	f("two pairs of one name", func(s *State) { s.pairs[1].Name = "BTC_USD" })
	f("a pair of an unknown currency", func(s *State) { s.pairs[1].Quote = 9 })
	f("a pair of one currency", func(s *State) { s.pairs[1].Quote = s.pairs[1].Base })
	f("a revoked key of no account", func(s *State) { s.keys[0].Account = 9 })
	f("more deposits than records", func(s *State) { s.depositCount = s.seq + 1 })
	f("an event after the last record", func(s *State) { s.accounts[0].lastEvent = s.seq + 1 })
	f("a hold until an impossible time", func(s *State) {
		s.accounts[0].own().operated.HoldEndsUs = -1
	})
	f("an account closed at an impossible time", func(s *State) {
		s.accounts[0].own().operated.ClosedUs = -1
	})
	f("a hold without an e-mail address", func(s *State) {
		s.accounts[0].Email, s.accounts[0].own().operated.HoldEndsUs = "", 1
	})
	f("a reserve above its balance", func(s *State) {
		h := s.accounts[0].Wallet.Get(1)
		h.Reserve = h.Balance.Add(h.Balance)
		s.accounts[0].Wallet.Put(h)
	})
	f("a holding of no currency", func(s *State) {
		h := s.accounts[0].Wallet.Get(1)
		h.Currency = 9
		s.accounts[0].Wallet.Put(h)
	})
	f("a balance above all that there can be", func(s *State) {
		s.accounts[0].Wallet.Put(ledger.Holding{Currency: 1,
			Balance: money.MaxSupply.Add(money.BalanceFromBits(0, 1))})
	})
	f("a currency of which as much as can be was deposited", func(s *State) {
		s.currencies[0].Deposited = money.MaxSupply
	})
	f("a currency of which more was withdrawn than deposited", func(s *State) {
		s.currencies[2].Withdrawn = money.BalanceFromBits(0, 1)
	})
	f("an order above its counter", func(s *State) { s.pairs[0].lastOrder = 2 })
	f("an order counter above the engine's", func(s *State) { s.pairs[0].lastOrder = 99 })
	f("a trade counter above the engine's", func(s *State) { s.pairs[0].lastTrade = 99 })
	f("an account of more trades than there were",
		func(s *State) { s.tradeCounts[1] = s.tradeCounts[0] + 1 })
	f("an account of more closed orders than there were",
		func(s *State) { s.accounts[0].Closed = s.lastOrder + 1 })
	f("an order in two books", func(s *State) {
		o, _ := s.pairs[0].Book.Get(2)
		s.pairs[1].Book.Add(o)
		s.pairs[1].lastOrder = 2
	})
}

// Of speaking, order 6 waits for a rise; 7 and 4 are queued; 2, 3, 4 and 12 rest.

func TestImpossibleInstructionsAreRefused(t *testing.T) {
	f := impossibleOf(t, speaking)
	order := func(id uint64, change func(x *trading.Instructed)) func(s *State) {
		return func(s *State) { change(s.pairs[0].instructed[id]) }
	}
	const form = "the instructions of an order have another form"
	const wait = "an order waits for nothing"
	f("empty instructions", func(s *State) {
		*s.pairs[0].instructed[3] = trading.Instructed{}
	}, form)
	f("a reason of an open order", order(3, func(x *trading.Instructed) { x.Cancelled = 1 }), form)
	f("more prevented orders than are kept", order(12, func(x *trading.Instructed) {
		x.Prevented = make([]trading.Prevented, trading.KeptPrevented+1)
	}), form)
	f("an order that nothing has triggered", order(3, func(x *trading.Instructed) {
		x.Triggered = true
	}), form)
	f("instructions that do not go together", order(2, func(x *trading.Instructed) {
		x.IOC = true
	}), "never rests")
	f("a fok that is post-only", order(7, func(x *trading.Instructed) {
		x.IOC, x.FOK, x.PostOnly = false, true, true
	}), "never rests")
	f("a sum of a sell", order(7, func(x *trading.Instructed) { x.Quote = coin }),
		"spends a sum, but may rest, or is no buy")
	f("another half above the price", func(s *State) {
		s.pairs[0].instructed[4].OCO.Trigger = 13 * coin
		stop, _ := s.pairs[0].Stops.Remove(4)
		stop.Trigger.Price = 13 * coin
		s.pairs[0].Stops.Add(stop)
	}, "not below 13")
	f("a fok that rests", order(3, func(x *trading.Instructed) {
		x.ExpireUs, x.FOK = 0, true
	}), "cannot rest")
	f("an order that rests and cannot", order(3, func(x *trading.Instructed) {
		x.ExpireUs, x.IOC = 0, true
	}), "cannot rest")
	f("an order that rests and waits", order(3, func(x *trading.Instructed) {
		x.Trigger = trading.Trigger{Price: 1, When: trading.Rise}
	}), "cannot rest")
	f("an iceberg that displays all", order(2, func(x *trading.Instructed) {
		x.Display, x.PostOnly = 0, true
	}), "hides a part")
	f("an order that waits for nothing", order(6, func(x *trading.Instructed) {
		x.Trigger, x.PostOnly = trading.Trigger{}, true
	}), wait)
	f("an order that waits and was triggered", order(6, func(x *trading.Instructed) {
		x.Triggered = true
	}), wait)
	f("an order that waits for two things", order(7, func(x *trading.Instructed) {
		x.IOC, x.OCO = false, trading.OCO{Trigger: 1}
	}), wait)
	f("another half that was triggered", order(4, func(x *trading.Instructed) {
		x.Triggered = true
	}), "waits for nothing")
	f("another half that does not wait", func(s *State) { s.pairs[0].Stops.Remove(4) },
		"the other half of an order does not wait")
	f("a waiting order that was filled in part", func(s *State) {
		stop, _ := s.pairs[0].Stops.Remove(6)
		stop.Order.Remaining--
		s.pairs[0].Stops.Add(stop)
	}, wait)
	f("a waiting order above the counter", func(s *State) {
		s.pairs[0].Stops.Add(matching.Stop{Order: trading.Order{ID: 14, Account: 1,
			Side: trading.Buy, Price: 1, Amount: 1, Remaining: 1},
			Trigger: trading.Trigger{Price: 1, When: trading.Rise}})
	}, "above the last id given")
}

func TestImpossibleSwitchesAreRefused(t *testing.T) {
	f := func(what string, change func(list []event.Switch), text string) {
		t.Helper()
		impossible(t, what, speaking(), func(s *State) { change(s.accounts[0].rare.switches) },
			text)
	}
	f("one of no key", func(list []event.Switch) { list[0].Key = 0 }, "are not in order")
	f("one of an unknown key", func(list []event.Switch) { list[1].Key = 9 }, "does not exist")
	f("one of an unknown pair", func(list []event.Switch) { list[0].Pair = 3 }, "does not exist")
	f("one twice", func(list []event.Switch) { list[0] = list[1] }, "are not in order")
	f("two that are not in order", func(list []event.Switch) {
		list[0], list[1] = list[1], list[0]
	}, "are not in order")
	f("one of calls without a time", func(list []event.Switch) { list[0].DueUs = 0 },
		"cannot be armed so")
	f("one of too many seconds", func(list []event.Switch) {
		list[0].Seconds = event.MaxSwitchSeconds + 1
	}, "cannot be armed so")
}

// Of everything, pending are withdrawals 1, new, and 2, verified. In the outbox are mails 7, of the
// refusal of 4, and 8, with the code of 1.

func TestImpossibleWithdrawalsAreRefused(t *testing.T) {
	f := impossibleOf(t, everything)
	for _, status := range []uint8{0, event.WithdrawalApproved, event.WithdrawalRefused,
		event.WithdrawalCancelled, 255} {
		f(fmt.Sprint("a pending withdrawal of status ", status),
			func(s *State) { s.withdrawals[1].Status = status }, "a withdrawal is not pending")
	}
	f("withdrawal 0", func(s *State) { s.withdrawals[1].ID = 0 }, "not in order")
	f("a stale code of a verified withdrawal", func(s *State) { s.withdrawals[2].Stale = true },
		"a withdrawal that needs no code")
	f("a renewed code of a verified withdrawal", func(s *State) { s.withdrawals[2].Renewed = true },
		"a withdrawal that needs no code")
	f("a code that is stale and renewed", func(s *State) { s.withdrawals[1].Stale = true },
		"or its code is both")
	f("a mail of a stale code", func(s *State) { s.outbox.mails[8].Withdrawal.Stale = true },
		"a mail has a code that confirms nothing")
	f("a withdrawal twice", func(s *State) { s.withdrawals[1].ID = 2 }, "not in order")
	f("withdrawals that are not in order",
		func(s *State) { s.withdrawals[1].ID, s.withdrawals[2].ID = 2, 1 }, "not in order")
	f("a withdrawal above the counter", func(s *State) { s.lastWithdrawal = 1 },
		"above the last id given")
	f("a withdrawal of no account", func(s *State) { s.withdrawals[1].Account = 0 },
		"a withdrawal has no account")
	f("a withdrawal of an unknown account", func(s *State) { s.withdrawals[1].Account = 4 },
		"a withdrawal has no account")
	f("a withdrawal of no currency", func(s *State) { s.withdrawals[1].Currency = 0 },
		"a withdrawal has no account, currency")
	f("a withdrawal of an unknown currency", func(s *State) { s.withdrawals[1].Currency = 4 },
		"a withdrawal has no account, currency")
	f("a withdrawal of nothing", func(s *State) { s.withdrawals[1].Amount = 0 },
		"a withdrawal has no account, currency, amount")
	f("a withdrawal of a negative amount", func(s *State) { s.withdrawals[1].Amount = -1 },
		"too large")
	f("a withdrawal without a code", func(s *State) { s.withdrawals[1].Issue = 0 },
		"amount or code")
}

func TestImpossibleMailsAreRefused(t *testing.T) {
	f := impossibleOf(t, everything)
	mail := func(change func(m *Mail)) func(s *State) {
		return func(s *State) { change(s.Mail(8)) }
	}
	notice := func(change func(m *Mail)) func(s *State) {
		return func(s *State) { change(s.Mail(7)) }
	}
	f("mail 0", mail(func(m *Mail) { m.ID = 0 }), "a mail is not in order")
	f("a mail twice", mail(func(m *Mail) { m.ID = 7 }), "a mail is not in order")
	f("mails that are not in order", mail(func(m *Mail) { m.ID = 5 }),
		"a mail is not in order")
	f("a mail above the counter", func(s *State) { s.lastMail = 7 }, "above the last id given")
	const useless = "a mail has a code that confirms nothing"
	f("a code for a withdrawal that is not pending", mail(func(m *Mail) { m.Withdrawal.ID = 4 }),
		useless)
	f("a code for a withdrawal that is verified", mail(func(m *Mail) { m.Withdrawal.ID = 2 }),
		useless)
	f("a code for another account", mail(func(m *Mail) { m.Withdrawal.Account = 2 }), useless)
	f("an old code", mail(func(m *Mail) { m.Withdrawal.Issue = 1 }), useless)
	f("two mails with one code", notice(func(m *Mail) {
		m.Withdrawal = everything().Mail(8).Withdrawal
	}), useless)
	f("a notice too many", func(s *State) {
		for range maxNotices {
			s.lastMail++
			s.outbox.put(&Mail{ID: s.lastMail, Withdrawal: s.Mail(7).Withdrawal})
		}
	}, "an account has more mails of refusals")
	f("a mail about an unknown withdrawal", notice(func(m *Mail) { m.Withdrawal.ID = 6 }),
		"in a status without mails")
	for _, status := range []uint8{0, event.WithdrawalVerified, event.WithdrawalApproved,
		event.WithdrawalCancelled} {
		f(fmt.Sprint("a mail about a withdrawal of status ", status),
			notice(func(m *Mail) { m.Withdrawal.Status = status }), "in a status without mails")
	}
	f("a mail about no account", mail(func(m *Mail) { m.Withdrawal.Account = 0 }),
		"a withdrawal has no account")
	f("a mail about an unknown account", mail(func(m *Mail) { m.Withdrawal.Account = 4 }),
		"a withdrawal has no account")
	f("a mail about an unknown currency", mail(func(m *Mail) { m.Withdrawal.Currency = 4 }),
		"a withdrawal has no account, currency")
}

func TestImpossibleFeesAreRefused(t *testing.T) {
	f := impossibleOf(t, everything)
	f("fees in pair 0", func(s *State) { s.accounts[0].rare.fees[0] = FeeRates{} },
		"the fees of account alice are not in order")
	f("fees in a pair that is not there",
		func(s *State) { s.accounts[0].rare.fees[3] = FeeRates{} },
		"account alice has fees in a pair that does not exist")
	f("a maker's rate above 1", func(s *State) {
		s.accounts[0].rare.fees[1] = FeeRates{Maker: money.MaxRate + 1}
	}, "too large")
	f("a taker's rate above 1", func(s *State) {
		s.accounts[0].rare.fees[1] = FeeRates{Taker: money.MaxRate + 1}
	}, "too large")

	var own, swapped writer
	own.uint(2, 1, 100, 200, 2, 300, uint64(money.MaxRate))
	swapped.uint(2, 2, 100, 200, 1, 300, uint64(money.MaxRate))
	image := everything().AppendTo(nil)
	if bytes.Count(image, own.buf) != 1 {
		t.Fatal("the fees are not where they were")
	}
	if _, err := Decode(bytes.Replace(image, own.buf, swapped.buf, 1)); !errors.Is(err, ErrImage) ||
		!strings.Contains(err.Error(), "the fees of account alice are not in order") {
		t.Errorf("fees that are not in order: %v", err)
	}
}

// Decode does not check the reasons of a reserve: Check does.
func TestTheCheckRefusesAnUnexplainedReserve(t *testing.T) {
	f := func(what string, spoil func(s *State), text string) {
		t.Helper()
		s := everything()
		s.removeMail(8) // of withdrawal 1
		spoil(s)
		back, err := Decode(s.AppendTo(nil))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if err := back.Check(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	f("a withdrawal that is gone", func(s *State) { s.unpend(s.withdrawals[1]) },
		"account alice reserves 3 ")
	f("all withdrawals that are gone",
		func(s *State) { s.unpend(s.withdrawals[1]); s.unpend(s.withdrawals[2]) },
		"account alice reserves 3 ")
	f("a withdrawal of a unit more", func(s *State) { s.withdrawals[2].Amount++ },
		"account bob reserves 38 ")
	f("a withdrawal of another account", func(s *State) { s.withdrawals[2].Account = 1 },
		"account alice reserves")
	f("a withdrawal too many", func(s *State) {
		s.lastWithdrawal++
		s.pend(s.accounts[2], &Withdrawal{ID: s.lastWithdrawal, Account: 3, Currency: 1, Amount: 1,
			Status: event.WithdrawalNew, Issue: 1})
	}, "account house reserves 0 ")
	f("an approved withdrawal that is not counted",
		func(s *State) { s.currencies[1].Withdrawn = money.Balance{} },
		"all balances of USD are 70, but ")
}

// Objects that come and go leave almost nothing. A deposit leaves the width of a number, and a
// revoked key its account and its name.
func TestDepositsAndRevokedKeysDoNotGrowTheImage(t *testing.T) {
	const n = 10_000
	s := small()
	before := len(s.AppendTo(nil))
	reference := strings.Repeat("r", 100)
	for range n {
		apply(t, s, event.Record{Kind: event.KindDeposit, TimeUs: 60,
			Deposit: event.Deposit{ID: s.depositCount + 1, Account: 2, Currency: 2,
				Amount: 1, Reference: fmt.Sprint(reference, s.depositCount)}})
	}
	after := len(s.AppendTo(nil))
	if grown := after - before; grown > 16 {
		t.Errorf("%d deposits grow the image by %d bytes", n, grown)
	}
	names := 0
	for i := range n {
		k := s.keys[0].Key
		k.Number, k.Key, k.Sealed = uint32(len(s.keys)+1), fmt.Sprint("key-", i), make([]byte, 200)
		names += len(k.Key)
		for range 10 {
			k.Allow = append(k.Allow, "192.0.2.0/24")
		}
		apply(t, s, event.Record{Kind: event.KindKey, Key: k},
			event.Record{Kind: event.KindRefusal,
				Refusal: event.Refusal{Account: k.Account, Key: k.Number, Nonce: 1 << 60,
					Reason: event.RefusedFunds}},
			event.Record{Kind: event.KindKeyRevoked,
				KeyRevoked: event.KeyRevoked{Number: k.Number}})
	}
	// An account, the length of the name, and that it is revoked.
	if grown := len(s.AppendTo(nil)) - after - names; grown > 3*n+16 {
		t.Errorf("%d revoked keys with names of %d bytes in all grow the image by %d bytes more", n,
			names, grown)
	}
	for _, k := range s.keys[1:] {
		want := Key{Key: event.Key{Number: k.Number, Account: k.Account, Key: k.Key.Key},
			Revoked: true}
		if !reflect.DeepEqual(*k, want) {
			t.Fatalf("of a revoked key %+v is left", *k)
		}
	}
}

func TestTheNameOfARevokedKeyIsNotReused(t *testing.T) {
	s := oneOfEach()
	again := event.Record{Kind: event.KindKey,
		Key: event.Key{Number: 3, Account: 2, Key: "alice-1", Permissions: 1}}
	for range 2 {
		if err := s.Apply(&again, new(Effects)); err == nil ||
			!strings.Contains(err.Error(), "exists already") {
			t.Error(err)
		}
		var err error
		if s, err = Decode(s.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUnknownImageVersionsAreRefused(t *testing.T) {
	for _, version := range []byte{0, 1, imageVersion - 1, imageVersion + 1, 255} {
		image := New().AppendTo(nil)
		image[len(imageMagic)] = version
		_, err := Decode(image)
		want := fmt.Sprintf("of version %d and this program reads version %d", version,
			imageVersion)
		if errors.Is(err, ErrImage) || err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
}

func TestHugeCountsInAnImageTakeNoMemory(t *testing.T) {
	const size = 1 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tries := uint64(0)
	// These images claim an entry for each byte: currencies, accounts, keys, withdrawals, mails,
	// maintenance, its message, its end, or pairs.
	for lists := range 9 {
		w := writer{buf: append([]byte(imageMagic), imageVersion)}
		// all ids of withdrawals and mails are used
		w.uint(0, 0, 0, 0, 0, math.MaxUint64, math.MaxUint64, 0)
		w.buf = append(w.buf, make([]byte, len(event.HistoryID{}))...) // of no history
		for range lists {
			w.uint(0)
		}
		w.uint(size - 100)
		for _, fill := range []byte{0, 1, 0xff} {
			image := bytes.Clone(w.buf)
			for len(image) < size {
				image = append(image, fill)
			}
			if _, err := Decode(image); !errors.Is(err, ErrImage) {
				t.Fatal(err)
			}
			tries++
		}
	}
	runtime.ReadMemStats(&after)
	// Making the images takes a few times their size; a decoder that continued would take hundreds
	// of times.
	if each := (after.TotalAlloc - before.TotalAlloc) / tries; each > 10*size {
		t.Errorf("%d bytes for an image of %d", each, size)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []*State{oneOfEach(), everything(), speaking(), namedOnes()} {
		image := s.AppendTo(nil)
		f.Add(image)
		f.Add(image[:len(image)/2])
	}
	f.Add(small().AppendTo(nil))
	f.Add(New().AppendTo(nil))
	f.Fuzz(func(t *testing.T, image []byte) { usable(t, image) })
}
