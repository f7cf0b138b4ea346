package backup

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"exchange/core/state"
	"exchange/core/wire"
	"exchange/persistence"
	"exchange/persistence/internal/codec"
	"exchange/persistence/memory"
	"exchange/persistence/pebble"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// A kind makes new and empty stores of one kind.
type kind func(scope, persistence.Retention) persistence.Store

func opened[S persistence.Store](s scope, store S, err error) persistence.Store {
	s.Helper()
	succeeds(s, err)
	s.Cleanup(func() { store.Close() })
	return store
}

func inPebble(s scope, keep persistence.Retention) persistence.Store {
	s.Helper()
	dir, err := os.MkdirTemp("", "exchange-backup-")
	succeeds(s, err)
	s.Cleanup(func() { os.RemoveAll(dir) })
	store, err := pebble.Open(dir, pebble.Options{Logger: quiet, Retention: keep})
	return opened(s, store, err)
}

func inMemory(s scope, keep persistence.Retention) persistence.Store {
	s.Helper()
	return opened(s, memory.Open(memory.NewDisk(), keep), nil)
}

// others are the kinds of stores that backups go to from Pebble, and from there to Pebble.
var others = map[string]func(*testing.T) kind{
	"memory": func(*testing.T) kind { return inMemory },
}

// onBothKinds runs a test with either of two kinds first.
func onBothKinds(t *testing.T, test func(t *testing.T, from, to kind)) {
	for name, begin := range others {
		other := begin(t)
		t.Run("pebble to "+name, func(t *testing.T) { test(t, inPebble, other) })
		t.Run(name+" to pebble", func(t *testing.T) { test(t, other, inPebble) })
	}
}

func nothing(int) {}

// load opens a backup and restores it.
func load(ctx context.Context, store persistence.Store, r io.Reader, progress func(int),
	step int) (*Info, error) {
	b, err := Open(r, testKey)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return b.load(ctx, store, progress, step)
}

// check reads all of a backup, and its state.
func check(b []byte) (*Info, error) {
	info, err := Verify(bytes.NewReader(b), testKey)
	if err != nil {
		return nil, err
	}
	opened, err := Open(bytes.NewReader(b), testKey)
	if err != nil {
		return nil, err
	}
	opened.Close()
	return info, nil
}

// fails wants an error of one kind whose text has all words.
func fails(s scope, what string, err, want error, words ...string) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("%s: error is %v, want %v", what, err, want)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			s.Fatalf("%s: %q does not say %q", what, err, word)
		}
	}
}

// write returns a backup of a store at an image.
func write(s scope, store persistence.Store, image []byte) []byte {
	s.Helper()
	var b bytes.Buffer
	succeeds(s, Write(context.Background(), &b, store, image, testKey, nothing))
	return b.Bytes()
}

// A store of the other kind gets exactly the history up to the image, whether rows came before or
// after it.
func TestBackupIsRestoredIntoOtherKindOfStore(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		defer f.Value.Set(f.DefValue) //nolint:errcheck // it is its own default
		succeeds(t, f.Value.Set("8"))
	}
	onBothKinds(t, func(t *testing.T, from, to kind) {
		rapid.Check(t, func(rt *rapid.T) {
			h := newHistory(rt, from(rt, persistence.Retention{}), rapid.Uint64().Draw(rt, "seed"))
			h.play(rapid.IntRange(0, 250).Draw(rt, "before"))
			h.flush()
			image, at := h.s.AppendTo(nil), h.s.Seq()
			st, err := state.Decode(image)
			h.must(err)
			want := contentsOf(rt, h.store, st)
			h.play(rapid.IntRange(0, 100).Draw(rt, "after"))
			if rapid.Bool().Draw(rt, "new pair") {
				h.newPair("BTC_ETH", 1, 3)
				h.play(50)
			}
			h.flush()
			now := contentsOf(rt, h.store, h.s)
			want.nonces = now.nonces
			maps.DeleteFunc(want.nonces, func(key string, _ uint64) bool {
				return st.KeyByName(key) == nil
			})

			b := write(rt, h.store, image)
			step := rapid.SampledFrom([]int{50, 300, loadRows}).Draw(rt, "step")
			target := to(rt, persistence.Retention{})
			restoredAs(rt, b, target, step, image, at, want)
			// And back again, from a store that was itself restored.
			restoredAs(rt, write(rt, target, image), from(rt, persistence.Retention{}), loadRows,
				image, at, want)
		})
	})
}

// restoredAs restores a backup and wants the same content.
func restoredAs(s scope, b []byte, store persistence.Store, step int, image []byte, at uint64,
	want *contents) {
	s.Helper()
	ctx := context.Background()
	st, err := state.Decode(image)
	succeeds(s, err)
	verified, err := Verify(bytes.NewReader(b), testKey)
	succeeds(s, err)
	rows := 0
	info, err := load(ctx, store, bytes.NewReader(b), func(n int) { rows = n }, step)
	succeeds(s, err)
	if !reflect.DeepEqual(info, verified) || info.Sequence != at ||
		info.Accounts != len(st.Accounts()) || info.Keys != len(st.Keys()) {
		s.Fatalf("it is of %+v, verified as %+v", info, verified)
	}
	sum := 0
	for _, n := range info.Rows {
		sum += n
	}
	if rows != sum {
		s.Fatalf("%d rows were reported, %d counted", rows, sum)
	}
	counted := map[string]int{"trades": len(want.trades), "closed orders": len(want.orders),
		"deposits": len(want.deposits), "withdraws": len(want.withdrawals),
		"candles": len(want.candles), "actions": len(want.actions), "nonces": len(want.nonces)}
	maps.DeleteFunc(counted, func(_ string, n int) bool { return n == 0 })
	if !maps.Equal(info.Rows, counted) {
		s.Fatalf("there are rows %v, want %v", info.Rows, counted)
	}
	if got := contentsOf(s, store, st); !reflect.DeepEqual(got, want) {
		s.Fatalf("restored is\n%+v\nwant\n%+v", got, want)
	}
	seq, r, err := store.LoadSnapshot(ctx, 0)
	succeeds(s, err)
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || seq != at || !bytes.Equal(got, image) {
		s.Fatalf("the image at %d (%v) is another than that at %d", seq, err, at)
	}
	if watermark, err := store.Watermark(ctx); err != nil || watermark != at {
		s.Fatalf("the watermark is %d (%v), want %d", watermark, err, at)
	}
	err = store.Wallets(ctx, func(w *persistence.Wallet) bool {
		if w.Seq != at {
			s.Fatalf("the wallet of %s is as of %d", w.Name, w.Seq)
		}
		return true
	})
	succeeds(s, err)
	token, last, err := store.Acquire(ctx, persistence.Claim{Owner: "test"})
	if err != nil || last != at {
		s.Fatalf("the journal ends at %d (%v), want %d", last, err, at)
	}
	succeeds(s, store.Append(ctx, token, at, at+1, []byte("goes on")))
}

func TestBackupDescribesItself(t *testing.T) {
	h := newHistory(t, inPebble(t, persistence.Retention{}), 1)
	h.play(100)
	h.flush()
	b := write(t, h.store, h.s.AppendTo(nil))
	info, err := Verify(bytes.NewReader(b), testKey)
	h.must(err)
	slices.Sort(info.SealedBy)
	if info.Store != h.store.String() || info.Taken.IsZero() ||
		!slices.Equal(info.SealedBy, []string{"0000000000000007", "0000000000000008"}) {
		t.Errorf("it is of %+v", info)
	}
	slices.Reverse(info.SealedBy)
	short, err := Describe(bytes.NewReader(b))
	h.must(err)
	if short.Sequence != h.s.Seq() || !short.Taken.Equal(info.Taken) || len(short.Rows) != 0 {
		t.Errorf("its description is %+v", short)
	}
	for what, b := range map[string][]byte{"nothing": nil, "text": []byte("some text"),
		"a stream that is whole and empty": crafted(t, func(*sink) {})} {
		_, err = Describe(bytes.NewReader(b))
		fails(t, what, err, ErrDamaged)
	}
}

func TestEmptyBackupIsRestored(t *testing.T) {
	onBothKinds(t, func(t *testing.T, from, to kind) {
		store := from(t, persistence.Retention{})
		image := state.New().AppendTo(nil)
		b := write(t, store, image)
		// Since then something has happened.
		h := newHistory(t, store, 2)
		h.play(100)
		h.flush()
		late := write(t, store, image)
		for _, b := range [][]byte{b, late} {
			target := to(t, persistence.Retention{})
			info, err := load(t.Context(), target, bytes.NewReader(b), nothing, loadRows)
			h.must(err)
			if len(info.Rows) != 0 {
				t.Errorf("there are rows %v", info.Rows)
			}
			h.must(empty(t.Context(), target))
		}
	})
}

func TestRestoreAppliesRetention(t *testing.T) {
	onBothKinds(t, func(t *testing.T, from, to kind) {
		h := newHistory(t, from(t, persistence.Retention{}), 3)
		h.play(400)
		h.flush()
		all := contentsOf(t, h.store, h.s)
		target := to(t, persistence.Retention{Trades: 10, Orders: 4})
		_, err := load(t.Context(), target, bytes.NewReader(write(t, h.store, h.s.AppendTo(nil))),
			nothing, loadRows)
		h.must(err)
		got := contentsOf(t, target, h.s)
		if !slices.Equal(got.trades, all.trades[:10]) {
			t.Errorf("of %d trades there are %d, which are not the newest", len(all.trades),
				len(got.trades))
		}
		for _, a := range h.s.Accounts() {
			was, is := collect(t, h.store.Orders, persistence.OrderQuery{Account: a.ID}),
				collect(t, target.Orders, persistence.OrderQuery{Account: a.ID})
			if !slices.Equal(is, was[:min(4, len(was))]) {
				t.Errorf("of %d orders of %s there are %d, which are not the newest", len(was),
					a.Name, len(is))
			}
		}
		if !slices.Equal(got.deposits, all.deposits) || !slices.Equal(got.actions, all.actions) {
			t.Error("a row without retention is missing")
		}
	})
}

// failing breaks when it is read, and after that many bytes when it is written.
type failing struct {
	after int
	err   error
}

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

func (f *failing) Write(b []byte) (int, error) {
	if f.after -= len(b); f.after < 0 {
		return 0, f.err
	}
	return len(b), nil
}

// crafted returns a stream with a right checksum and the parts that fill writes.
func crafted(s scope, fill func(*sink)) []byte {
	s.Helper()
	var b bytes.Buffer
	out, err := newSink(&b, testKey)
	if err == nil {
		fill(out)
		err = out.close()
	}
	succeeds(s, err)
	return b.Bytes()
}

func TestImpossibleBackupsAreRefused(t *testing.T) {
	h := newHistory(t, inPebble(t, persistence.Retention{}), 5)
	h.play(50)
	h.flush()
	image := h.s.AppendTo(nil)
	info, err := json.Marshal(describe(h.s, h.store, image))
	h.must(err)
	trades := collect(t, h.store.Trades, persistence.TradeQuery{})
	trade := codec.AppendTrade(wire.AppendUints(nil, trades[0].ID), &trades[0])
	f := func(what string, fill func(*sink), words ...string) {
		t.Helper()
		_, err := check(crafted(t, fill))
		fails(t, what, err, ErrDamaged, words...)
	}
	whole := func(s *sink) {
		s.part(partInfo, info)
		s.part(partImage, image)
		s.part(partTrade, trade)
	}
	if _, err := Verify(bytes.NewReader(crafted(t, whole)), testKey); err != nil {
		t.Fatal(err)
	}
	f("nothing", func(*sink) {})
	f("no image", func(s *sink) { s.part(partInfo, info) })
	f("no description", func(s *sink) { s.part(partImage, image) }, "begin with its description")
	f("a row before the image", func(s *sink) {
		s.part(partInfo, info)
		s.part(partTrade, trade)
		s.part(partImage, image)
	})
	f("more image after the rows", func(s *sink) { whole(s); s.part(partImage, image) })
	f("two descriptions", func(s *sink) {
		s.part(partInfo, info)
		s.part(partInfo, info)
		s.part(partImage, image)
	})
	f("a description that is none", func(s *sink) {
		s.part(partInfo, []byte("{"))
		s.part(partImage, image)
	})
	f("an image that is none", func(s *sink) {
		s.part(partInfo, info)
		s.part(partImage, image[1:])
	})
	f("another sequence", func(s *sink) {
		s.part(partInfo, bytes.Replace(info, fmt.Appendf(nil, `"sequence":%d`, h.s.Seq()),
			[]byte(`"sequence":1`), 1))
		s.part(partImage, image)
	}, "of sequence 1, its state")
	f("a row that is cut off", func(s *sink) { whole(s); s.part(partTrade, trade[:len(trade)-1]) })
	f("a row of an account beyond all numbers", func(s *sink) {
		whole(s)
		s.part(partDeposit, codec.AppendDeposit(wire.AppendUints(nil, 1<<32+1, 1),
			&persistence.Deposit{}))
	})
	f("a row without its key", func(s *sink) { whole(s); s.part(partOrder, nil) })
	f("a part that is too long", func(s *sink) {
		whole(s)
		s.part(partNonce, make([]byte, maxRow+1))
	}, "a part of")
	f("more than the checksum", func(s *sink) { whole(s); s.write([]byte{partEnd, 'x'}) },
		"more after its end")
	newerBackupsNameTheirVersion(t, whole)
}

// newerBackupsNameTheirVersion changes a whole backup to one of a newer program.
func newerBackupsNameTheirVersion(t *testing.T, whole func(*sink)) {
	t.Helper()
	_, err := Verify(bytes.NewReader(
		repacked(t, crafted(t, whole), testKey,
			func(raw []byte) []byte {
				return bytes.Replace(raw, []byte("backup 3"),
					[]byte("backup 9"), 1)
			})), testKey)
	fails(t, "another version", err, persistence.ErrVersion,
		"it is of version 9 and this program reads version 3")
	_, err = Verify(bytes.NewReader(repacked(t, crafted(t, func(s *sink) {
		whole(s)
		s.part('z', nil)
	}), testKey, func(raw []byte) []byte { return raw })), testKey)
	fails(t, "a newer kind of part", err, persistence.ErrVersion, "run the newer program")
	image, at := state.New().AppendTo(nil), 0
	for ; at < len(image); at++ {
		if newer := append(bytes.Clone(image[:at]), 255); state.Readable(newer) != nil {
			break
		}
	}
	_, err = Verify(bytes.NewReader(repacked(t, crafted(t, whole), testKey,
		func(raw []byte) []byte {
			newer := bytes.Clone(image[:at+1])
			newer[at] = 255
			i := bytes.Index(raw, image[:at])
			return slices.Concat(raw[:i], newer, raw[i+at+1:])
		})), testKey)
	fails(t, "a newer image", err, persistence.ErrVersion, "it is of version 255 and this program")
	if errors.Is(err, ErrDamaged) || strings.Contains(err.Error(), "BUG") {
		t.Errorf("a newer backup is called damaged: %v", err)
	}
}

// repacked returns a stream with other content, compressed and proven without a fault.
func repacked(s scope, b []byte, by keyring, change func(raw []byte) []byte) []byte {
	s.Helper()
	in, err1 := zstd.NewReader(nil)
	out, err2 := zstd.NewWriter(nil)
	succeeds(s, err1, err2)
	raw, err := in.DecodeAll(b, nil)
	succeeds(s, err)
	return proven(s, out.EncodeAll(change(raw), nil), by)
}

// A stream that turns out to be damaged or forged, or that is cut off, fills a part of the store;
// such a store is never taken for a whole one. A deposit that a backup lacks could be made again,
// because its reference would be unknown.
func TestDamagedBackupNeverMakesAWholeStore(t *testing.T) {
	onBothKinds(t, func(t *testing.T, from, to kind) {
		h := newHistory(t, from(t, persistence.Retention{}), 6)
		h.play(300)
		h.flush()
		good := write(t, h.store, h.s.AppendTo(nil))
		info, err := Verify(bytes.NewReader(good), testKey)
		h.must(err)
		cut := h.changed(good, info.Rows["trades"], nil)
		cut[len(cut)-1] ^= 1
		gone := errors.New("the disk is gone")
		for what, x := range map[string]struct {
			b         []byte
			end, want error // nil: io.EOF and ErrDamaged
		}{
			"nothing":            {},
			"a cut":              {b: good[:len(good)-1]},
			"half of it":         {b: cut},
			"half, and an error": {b: good[:len(good)-20], end: gone, want: gone},
			"a forged one": {b: underTheName(repacked(t, good, keyring{9},
				func(raw []byte) []byte { return raw })), want: persistence.ErrForged},
			"without a deposit": {b: h.changed(good, 1<<30, func(*sink, []byte) {})},
			"with another amount": {b: h.changed(good, 1<<30, func(out *sink, part []byte) {
				var r rows
				h.must(r.decode(partDeposit, part))
				r.deposit.Amount++
				d := &r.deposit
				out.part(partDeposit, codec.AppendDeposit(wire.AppendUints(nil,
					uint64(d.Account), d.ID), d))
			})},
		} {
			store := to(t, persistence.Retention{})
			_, err := load(t.Context(), store, io.MultiReader(bytes.NewReader(x.b),
				&failing{err: cmp.Or(x.end, io.EOF)}), nothing, 20)
			if fails(t, what, err, cmp.Or(x.want, ErrDamaged)); x.end == nil {
				fails(t, what, err, ErrDamaged)
			}
			if _, _, err := store.LoadSnapshot(t.Context(), 0); !errors.Is(err,
				persistence.ErrNoSnapshot) {
				t.Errorf("%s: there is an image: %v", what, err)
			}
			watermark, err := store.Watermark(t.Context())
			h.must(err)
			if filled := what != "nothing"; filled != (watermark > 0) {
				t.Errorf("%s: the watermark is %d", what, watermark)
			} else if !filled {
				continue
			}
			// Recovery finds neither an image nor a journal, and the next restore finds a store
			// that is not empty.
			err = store.Read(t.Context(), 0, func(uint64, uint64, []byte) error { return nil })
			fails(t, what, err, persistence.ErrCorrupt)
			_, err = load(t.Context(), store, bytes.NewReader(good), nothing, loadRows)
			fails(t, what+": restoring over it", err, ErrNotEmpty)
		}
	})
}

// changed returns the parts of a backup up to a number of rows, with the first deposit written by
// change.
func (h *history) changed(good []byte, rows int, change func(out *sink, part []byte)) []byte {
	h.Helper()
	return crafted(h.scope, func(out *sink) {
		in, err := open(bytes.NewReader(good), testKey)
		h.must(err)
		defer in.close()
		for ; !in.ended && rows > 0; h.must(in.advance()) {
			if in.kind == partDeposit && change != nil {
				change(out, in.part)
				change = nil
			} else {
				out.part(in.kind, in.part)
			}
			if in.kind != partInfo && in.kind != partImage {
				rows--
			}
		}
	})
}

func TestOnlyEmptyStoreIsFilled(t *testing.T) {
	onBothKinds(t, func(t *testing.T, from, to kind) {
		h := newHistory(t, from(t, persistence.Retention{}), 7)
		h.play(30)
		h.flush()
		b := write(t, h.store, h.s.AppendTo(nil))
		f := func(what string, fill func(store persistence.Store, token persistence.Token),
			words ...string) {
			t.Helper()
			store := to(t, persistence.Retention{})
			token, _, err := store.Acquire(t.Context(),
				persistence.Claim{Owner: "a running exchange"})
			h.must(err)
			fill(store, token)
			_, err = load(t.Context(), store, bytes.NewReader(b), nothing, loadRows)
			fails(t, what, err, ErrNotEmpty, words...)
			if err := store.Check(t.Context(), token); err != nil {
				t.Errorf("%s: its owner was fenced: %v", what, err)
			}
		}
		f("with a record", func(s persistence.Store, token persistence.Token) {
			h.must(s.Append(t.Context(), token, 0, 1, []byte("x")))
		}, "journal")
		f("trimmed", func(s persistence.Store, token persistence.Token) {
			h.must(s.Append(t.Context(), token, 0, 1, []byte("x")))
			h.must(s.Append(t.Context(), token, 1, 2, []byte("x")))
			h.must(s.Trim(t.Context(), token, 2))
		}, "journal")
		f("with a history", func(s persistence.Store, token persistence.Token) {
			h.must(s.Apply(t.Context(), token, 0, 3, nil))
		}, "history up to sequence 3")
		f("with an image", func(s persistence.Store, token persistence.Token) {
			h.must(s.SaveSnapshot(t.Context(), token, 0, strings.NewReader("image")))
		}, "snapshot at sequence 0")
		f("begun", func(s persistence.Store, token persistence.Token) {
			h.must(s.Begin(t.Context(), token, 5))
		}, "unfinished restore")
		// The owner of a store that is still empty is fenced, or two would write.
		store := to(t, persistence.Retention{})
		token, _, err := store.Acquire(t.Context(),
			persistence.Claim{Owner: "an exchange that just started"})
		h.must(err)
		_, err = load(t.Context(), store, bytes.NewReader(b), nothing, loadRows)
		h.must(err)
		fails(t, "its append", store.Append(t.Context(), token, 0, 1, []byte("x")),
			persistence.ErrFenced)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err = load(ended, to(t, persistence.Retention{}), bytes.NewReader(b), nothing,
			loadRows); !errors.Is(err, context.Canceled) {
			t.Errorf("a restore that was ended: %v", err)
		}
	})
}

func TestIncompleteBackupIsNotWritten(t *testing.T) {
	onBothKinds(t, func(t *testing.T, from, _ kind) {
		h := newHistory(t, from(t, persistence.Retention{}), 8)
		h.play(200)
		h.flush()
		image := h.s.AppendTo(nil)
		f := func(what string, ctx context.Context, w io.Writer, image []byte, want error) {
			t.Helper()
			if err := Write(ctx, w, h.store, image, testKey, nothing); err == nil ||
				want != nil && !errors.Is(err, want) {
				t.Errorf("%s: %v", what, err)
			}
		}
		gone := errors.New("the client is gone")
		size := len(write(t, h.store, image))
		for _, after := range []int{0, size / 2, size - 50} {
			f("a client that goes", t.Context(), &failing{after: after, err: gone}, image, gone)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		f("an image that is none", t.Context(), io.Discard, image[1:], state.ErrImage)
		h.play(1)
		var b bytes.Buffer
		f("a history that lags behind", t.Context(), &b, h.s.AppendTo(nil), nil)
		if b.Len() > 0 {
			t.Errorf("%d bytes were written", b.Len())
		}
		b.Reset()
		if err := Write(ended, &b, h.store, image, testKey, nothing); err == nil {
			if _, err := Verify(&b, testKey); err != nil {
				t.Errorf("without an error: %v", err)
			}
		}
	})
}
