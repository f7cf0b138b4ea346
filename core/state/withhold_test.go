package state

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"exchange/core/event"
)

// withheld returns the observers' image of a state.
func withheld(t interface{ Fatalf(string, ...any) }, s *State) (image []byte) {
	if err := WithholdImage(s.AppendTo(nil), func(piece []byte) bool {
		image = append(image, piece...)
		return true
	}); err != nil {
		t.Fatalf("%v", err)
	}
	return image
}

// sentToObservers lists whether observers receive each field of a state that may hold a text or
// bytes, and is not derived from records' money and orders. A missing field has not been
// considered.
var sentToObservers = map[string]bool{
	"State.currencies":     true,
	"State.history":        true,
	"State.maintenance":    true, // its message is for clients
	"State.names":          true,
	"State.keyNames":       true,
	"Currency.Code":        true,
	"Pair.Name":            true,
	"Account.Name":         true,
	"Account.Email":        false,
	"Account.ClientIDs":    true,
	"Withdrawal.Address":   true, // of pending ones; not those of mails
	"Withdrawal.Details":   true,
	"Key.Key":              true, // see the table of core/event
	"State.seq":            true,
	"State.timeUs":         true,
	"State.pairs":          true,
	"State.accounts":       true,
	"State.keys":           true,
	"State.depositCount":   true,
	"State.tradeCounts":    true,
	"State.lastOrder":      true,
	"State.lastTrade":      true,
	"State.withdrawals":    true,
	"State.outbox":         false, // which mails are pending, and nothing of their content
	"State.lastMail":       true,
	"State.maintainedUs":   true,
	"State.settler":        true, // scratch memory
	"State.lastWithdrawal": true,
	"Account.ID":           true,
	"Account.Frozen":       true,
	"Account.Wallet":       true,
	"Account.Open":         true,
	"Account.Closed":       true,
	"Account.lastEvent":    true,
	"Account.Keys":         true,
	"Account.rare":         true,
	"rare.withdrawals":     true,
	"rare.fees":            true,
	"rare.noticeMails":     true, // ids
	"rare.changeMails":     true, // ids
	"rare.selfTrade":       true,
	"rare.switches":        true,
	"rare.operated":        true,
	"rare.withdrawalIDs":   true, // its owner sees them
	"Operated.HoldEndsUs":  true, // the same decisions follow from it
	"Operated.ClosedUs":    true,
	"Withdrawal.ClientID":  true,
	"Withdrawal.ID":        true,
	"Withdrawal.Account":   true,
	"Withdrawal.Currency":  true,
	"Withdrawal.Amount":    true,
	"Withdrawal.Status":    true,
	"Withdrawal.TimeUs":    true,
	"Withdrawal.Issue":     true, // a number; the code derives from it and the server's key
	"Withdrawal.IssuedUs":  true,
	"Withdrawal.Tries":     true,
	"Withdrawal.Stale":     true,
	"Withdrawal.Renewed":   true,
	"Key.Nonce":            true,
	"Key.Used":             true,
	"Key.Revoked":          true,
	"Mail.ID":              true,
	"Mail.TimeUs":          true,
	"Mail.Withdrawal":      false, // its address and details
	"Mail.Change":          false, // its address
	"outbox.mails":         false,
	"outbox.order":         true,
	"outbox.codes":         true,
}

func TestEachFieldOfAStateIsDecidedOnForObservers(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range []any{State{}, Account{}, rare{}, Operated{}, Withdrawal{}, Key{}, Mail{},
		outbox{}} {
		kind := reflect.TypeOf(v)
		for i := range kind.NumField() {
			path := kind.Name() + "." + kind.Field(i).Name
			seen[path] = true
			if _, decided := sentToObservers[path]; !decided {
				t.Errorf("sentToObservers lacks %s", path)
			}
		}
	}
	for _, v := range []any{Currency{}, Pair{}} { // these are public but for the books
		kind := reflect.TypeOf(v)
		for i := range kind.NumField() {
			path := kind.Name() + "." + kind.Field(i).Name
			seen[path] = true
			if kind.Field(i).Type.Kind() == reflect.String && !sentToObservers[path] {
				t.Errorf("sentToObservers lacks %s", path)
			}
		}
	}
	for path := range sentToObservers {
		if !seen[path] {
			t.Errorf("states have no %s", path)
		}
	}
}

// marks returns everything with texts that can be found again.
func marks() *State {
	s := everything()
	for _, a := range s.accounts {
		a.Email = "<email>"
	}
	for _, k := range s.keys {
		if !k.Revoked {
			k.Sealed = []byte("<sealed>")
		}
	}
	for m := range s.MailsAfter(0) {
		m.Withdrawal.Address, m.Withdrawal.Details = "<address>", "<details>"
	}
	return s
}

func TestWithheldTextsAreNotInObserversImages(t *testing.T) {
	s := marks()
	image, got := s.AppendTo(nil), withheld(t, s)
	for _, mark := range []string{"<email>", "<sealed>", "<address>", "<details>"} {
		if !bytes.Contains(image, []byte(mark)) {
			t.Errorf("%s is not in the image", mark)
		}
		if bytes.Contains(got, []byte(mark)) {
			t.Errorf("%s goes to observers", mark)
		}
	}
	o, err := Decode(got)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range o.Accounts() {
		if (a.Email != "") != (s.Accounts()[i].Email != "") {
			t.Errorf("whether account %s has an address is lost", a.Name)
		}
	}
	if again := withheld(t, o); !bytes.Equal(again, got) {
		t.Error("something was left to withhold")
	}
}

func TestWithholdImageRefusesOtherBytes(t *testing.T) {
	for _, damaged := range [][]byte{nil, []byte(imageMagic), append([]byte(imageMagic), 99),
		append([]byte(imageMagic), imageVersion, 1)} {
		if err := WithholdImage(damaged, func([]byte) bool { return true }); err == nil {
			t.Errorf("%q is an image", damaged)
		}
	}
	s := marks()
	n := 0
	if err := WithholdImage(s.AppendTo(nil), func([]byte) bool {
		n++
		return false
	}); err != nil || n != 1 {
		t.Errorf("%d pieces were made for a receiver that stopped: %v", n, err)
	}
}

// An observer starts from an image somewhere in a history, and folds the stripped records after it.
// Its state equals the server's except for the withheld parts.
func TestAnObserverFoldsTheSameState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		begin := rapid.IntRange(0, 100).Draw(t, "begin")
		var o *State
		n := 0
		s := New()
		records := drawHistory(t, 120, nil)
		for i := range records {
			if n == begin {
				var err error
				if o, err = Decode(withheld(t, s)); err != nil {
					t.Fatalf("%v", err)
				}
			}
			n++
			apply(t, s, records[i])
			if o == nil {
				continue
			}
			b := records[i].Append(event.BeginBatch(nil))
			b = event.EndBatch(b, 1, s.Seq()-1, 1)
			b, err := event.WithholdBatch(nil, b)
			if err != nil {
				t.Fatalf("%v", err)
			}
			fold := Fold{State: o}
			if err := fold.Batch(s.Seq()-1, s.Seq(), b); err != nil {
				t.Fatalf("%v", err)
			}
		}
		if o != nil && !bytes.Equal(withheld(t, o), withheld(t, s)) {
			t.Fatalf("an observer that began at %d has another state", begin)
		}
	})
}

func FuzzWithholdImage(f *testing.F) {
	for _, s := range []*State{New(), everything(), speaking(), parallel(), marks(),
		namedOnes()} {
		f.Add(s.AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, image []byte) {
		var got []byte
		if WithholdImage(image, func(piece []byte) bool {
			got = append(got, piece...)
			return true
		}) != nil {
			return
		}
		s, err := Decode(image)
		if err != nil {
			return // its pairs are not read
		}
		o, err := Decode(got)
		if err != nil {
			t.Fatalf("a good image is withheld as a bad one: %v", err)
		}
		if !bytes.Equal(withheld(t, o), withheld(t, s)) {
			t.Fatal("the image is of another state")
		}
	})
}
