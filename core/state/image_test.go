package state

import (
	"encoding/hex"
	"errors"
	"runtime"
	"testing"

	"exchange/core/event"
)

// oneOfEach is small with a revoked key and a cancel: every field of an image is in use.
func oneOfEach() *State {
	s := small()
	apply(must{}, s, cancelOf1(), event.Record{Kind: event.KindKeyRevoked, TimeUs: 50, KeyRevoked: event.KeyRevoked{Number: 1}},
		event.Record{Kind: event.KindOrder, Pair: 1, TimeUs: 51, Order: event.Order{ID: 6, Account: 1, Side: 2, Price: 12 * coin, Amount: coin, Remaining: coin, ClientID: clientID("open")}})
	return s
}

func clientID(s string) event.ClientID {
	id, err := event.NewClientID(s)
	if err != nil {
		panic(err)
	}
	return id
}

// goldenImage is the image of oneOfEach in version 1. Stores hold such images: the stored format may
// not change, and where this test fails it is the code that is wrong.
const goldenImage = "65786368616e67652073746174650a01123306010203034254438080a8ec85afd1b10100000003555344808090bbbad6adf00d00000003455448000000000305616c69636511616c696365406578616d" +
	"706c652e6f726702018080a6adf2bfe0a80100808088fccdbcc323000280ae80c9bfd7e8580000000101056669727374010103626f6200020180b29df190eff008000000028080fcc4f7fec4970d0080" +
	"80c8dcbda1dfbf020001010470617374040105686f75736500020180cee4cd020000000280d293ad030000000000010107616c6963652d3107010a31302e302e302e302f3805067365616c6564090102" +
	"036f6e6501018094ebdc030374776f020280c8afa02502074254435f555344010206013306330301030280d293ad038084af5f8084af5f200002020180d6c28c0480c2d72f80c2d72f1f000206018098" +
	"9abc0480c2d72f80c2d72f33046f70656e074554485f5553440302000000000000"

func TestTheStoredImageIsStillTheSame(t *testing.T) {
	s := oneOfEach()
	if got := hex.EncodeToString(s.AppendTo(nil)); got != goldenImage {
		t.Errorf("the image is\n%s, stored is\n%s", got, goldenImage)
	}
	b, _ := hex.DecodeString(goldenImage)
	back, err := Decode(b)
	if err != nil || back.Hash() != s.Hash() {
		t.Errorf("the stored image is read as another state: %v", err)
	}
	if err == nil && back.Check() != nil {
		t.Error(back.Check())
	}
}

func TestTheImageOfNothing(t *testing.T) {
	s, err := Decode(New().AppendTo(nil))
	if err != nil || s.Hash() != New().Hash() {
		t.Error(err)
	}
}

func TestEveryTruncationOfAnImageIsRefused(t *testing.T) {
	image := oneOfEach().AppendTo(nil)
	for n := range image {
		if _, err := Decode(image[:n:n]); !errors.Is(err, ErrImage) {
			t.Fatalf("the first %d of %d bytes: %v", n, len(image), err)
		}
	}
	if _, err := Decode(append(image, 0)); !errors.Is(err, ErrImage) {
		t.Errorf("a byte too many: %v", err)
	}
}

// A changed byte may make another possible state: telling that is for the checksum around an image.
// But then it is a state that can be used, checked and written.
func usable(t *testing.T, image []byte) {
	t.Helper()
	s, err := Decode(image)
	if err != nil {
		if !errors.Is(err, ErrImage) || s != nil {
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
	next.Deposit.ID, next.Deposit.Reference = s.lastDeposit+1, "a reference that is new"
	if s.Apply(&next, new(Effects)) == nil {
		s.AppendTo(nil)
	}
	for _, r := range []event.Record{buy(), cancelOf1()} {
		if s, err := Decode(image); err == nil {
			s.Apply(&r, new(Effects))
		}
	}
}

func TestAnyChangedByteIsRefusedOrMakesAUsableState(t *testing.T) {
	image := oneOfEach().AppendTo(nil)
	for i := range image {
		was := image[i]
		for _, b := range []byte{0, 1, 2, 3, was - 1, was + 1, 0x7f, 0x80, 0xff, was ^ 0x80} {
			image[i] = b
			usable(t, image)
		}
		image[i] = was
	}
	if _, err := Decode(image); err != nil {
		t.Fatal(err)
	}
}

// spoil is the image of oneOfEach after a change, which Decode must refuse.
func TestImpossibleStatesAreRefused(t *testing.T) {
	f := func(what string, spoil func(s *State)) {
		t.Helper()
		s := oneOfEach()
		spoil(s)
		if _, err := Decode(s.AppendTo(nil)); !errors.Is(err, ErrImage) {
			t.Errorf("%s: %v", what, err)
		}
	}
	f("two currencies of one code", func(s *State) { s.currencies[1].Code = "BTC" })
	f("two accounts of one name", func(s *State) { s.accounts[1].Name = "alice" })
	f("a key of no account", func(s *State) { s.keys[0].Account = 9 })
	f("two keys of one name", func(s *State) { s.keys = append(s.keys, s.keys[0]) })
	f("two pairs of one name", func(s *State) { s.pairs[1].Name = "BTC_USD" })
	f("a pair of an unknown currency", func(s *State) { s.pairs[1].Quote = 9 })
	f("a pair of one currency", func(s *State) { s.pairs[1].Quote = s.pairs[1].Base })
	f("a reference of no account", func(s *State) {
		r := s.references["one"]
		r.Account = 9
		s.references["one"] = r
	})
	f("a reference of no currency", func(s *State) {
		r := s.references["one"]
		r.Currency = 0
		s.references["one"] = r
	})
	f("a deposit without a reference", func(s *State) { s.lastDeposit++ })
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
	f("an order above its counter", func(s *State) { s.pairs[0].lastOrder = 2 })
	f("an order counter above the engine's", func(s *State) { s.pairs[0].lastOrder = 99 })
	f("a trade counter above the engine's", func(s *State) { s.pairs[0].lastTrade = 99 })
	f("an order in two books", func(s *State) {
		o, _ := s.pairs[0].Book.Get(2)
		s.pairs[1].Book.Add(o)
		s.pairs[1].lastOrder = 2
	})
	f("a closed order of the future", func(s *State) {
		_, past := s.accounts[1].ClientIDs.State()
		past[0].At = 99
	})
	f("a closed order without an id", func(s *State) {
		_, past := s.accounts[1].ClientIDs.State()
		past[0].ID = event.ClientID{}
	})
}

func TestAReferenceThatIsThereTwiceIsRefused(t *testing.T) {
	w := writer(append([]byte(imageMagic), imageVersion))
	w.uint(0, 0, 0, 0, 2) // counters: two deposits
	w.uint(1)
	w.text("BTC")
	w.uint(0, 0, 0, 0)
	w.uint(1)
	w.text("alice")
	w.text("")
	w.uint(0, 0, 0) // holdings, closed, past
	w.uint(0)       // keys
	w.uint(2)
	for range 2 {
		w.text("same")
		w.uint(1, 1, 5)
	}
	w.uint(0)
	if _, err := Decode(w); !errors.Is(err, ErrImage) {
		t.Error(err)
	}
}

func TestUnknownImageVersionsAreRefused(t *testing.T) {
	image := New().AppendTo(nil)
	image[len(imageMagic)]++
	if _, err := Decode(image); !errors.Is(err, ErrImage) {
		t.Error(err)
	}
}

func TestHugeCountsInAnImageTakeNoMemory(t *testing.T) {
	const size = 1 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tries := uint64(0)
	for lists := range 6 { // the list that claims an entry for each byte
		w := writer(append([]byte(imageMagic), imageVersion))
		w.uint(0, 0, 0, 0, 0)
		for range lists {
			w.uint(0)
		}
		w.uint(size - 100)
		for _, fill := range []byte{0, 1, 0xff} {
			image := append([]byte(nil), w...)
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
	// Making the images is a few times their size; a decoder that went on would take hundreds of times.
	if each := (after.TotalAlloc - before.TotalAlloc) / tries; each > 10*size {
		t.Errorf("%d bytes for an image of %d", each, size)
	}
}

func FuzzDecode(f *testing.F) {
	image := oneOfEach().AppendTo(nil)
	f.Add(image)
	f.Add(image[:len(image)/2])
	f.Add(small().AppendTo(nil))
	f.Add(New().AppendTo(nil))
	f.Fuzz(func(t *testing.T, image []byte) { usable(t, image) })
}

func BenchmarkAppendTo(b *testing.B) {
	s := oneOfEach()
	image := s.AppendTo(nil)
	b.ReportAllocs()
	for b.Loop() {
		image = s.AppendTo(image[:0])
	}
}
