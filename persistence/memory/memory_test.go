package memory

import (
	"cmp"
	"errors"
	"slices"
	"testing"

	"exchange/persistence"
	"exchange/persistence/conformance"
	"exchange/persistence/internal/codec"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, func(*testing.T) conformance.Backend { return backend{NewDisk()} })
}

type backend struct{ disk *Disk }

func (b backend) Open(_ *testing.T, r persistence.Retention) persistence.Store {
	return Open(b.disk, r)
}

func (b backend) Wallet(_ *testing.T, _ persistence.Store, account uint32, _ string) (persistence.Wallet, error) {
	w, there := b.disk.live.wallets[account]
	if !there {
		return w, persistence.ErrNotFound
	}
	slices.SortFunc(w.Holdings, func(a, b persistence.Holding) int { return cmp.Compare(a.Currency, b.Currency) })
	return w, nil
}

func (b backend) at(next uint64) int {
	return slices.IndexFunc(b.disk.live.batches, func(s stored) bool { return s.next == next })
}

func (b backend) DamageBatch(_ *testing.T, _ persistence.Store, next uint64) {
	b.disk.live.batches[b.at(next)].batch[0] ^= 0x40
}

func (b backend) LoseBatch(_ *testing.T, _ persistence.Store, next uint64) {
	at := b.at(next)
	b.disk.live.batches = slices.Delete(b.disk.live.batches, at, at+1)
}

func (b backend) DamageSnapshot(_ *testing.T, _ persistence.Store) {
	chunks := b.disk.live.snapshots[0].chunks
	chunks[len(chunks)-1][10] ^= 0x40
}

// filled is a disk with one batch and its projection, and a batch that is written and not synced.
func filled(t *testing.T) (d *Disk, heard *[]uint64) {
	t.Helper()
	d, heard = NewDisk(), new([]uint64)
	d.Durable = func(_, next uint64, _ []byte) { *heard = append(*heard, next) }
	s := Open(d, persistence.Retention{})
	tok, _, err := s.Acquire(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), tok, 0, 1, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), tok, 0, 1, &persistence.Writes{Nonces: []persistence.Nonce{{Key: "key", Nonce: 7}}}); err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := s.append(tok, stored{1, 2, codec.Digest([]byte("two")), []byte("two")}); err != nil {
		t.Fatal(err)
	}
	return d, heard
}

func TestACrashLosesATailOfWhatWasNotSynced(t *testing.T) {
	for kept, want := range []struct{ seq, watermark, nonces uint64 }{{1, 0, 0}, {1, 1, 1}, {2, 1, 1}} {
		d, heard := filled(t)
		if d.Unsynced() != 2 || d.Last() != 1 {
			t.Fatalf("%d writes are not synced, the journal is durable up to %d", d.Unsynced(), d.Last())
		}
		d.Crash(kept)
		if d.live.seq != want.seq || d.live.watermark != want.watermark || uint64(len(d.live.nonces)) != want.nonces {
			t.Errorf("%d writes kept: the journal is at %d, the projections at %d with %d nonces", kept, d.live.seq, d.live.watermark, len(d.live.nonces))
		}
		if d.Last() != want.seq || (*heard)[len(*heard)-1] != want.seq || d.Unsynced() != 0 {
			t.Errorf("%d writes kept: durable are %v, up to %d", kept, *heard, d.Last())
		}
	}
}

func TestARepeatedAppendSyncsWhatTheFirstHasWritten(t *testing.T) {
	d, heard := filled(t)
	s := Open(d, persistence.Retention{})
	if err := s.Append(t.Context(), d.live.token, 1, 2, []byte("two")); err != nil {
		t.Fatal(err)
	}
	if d.Last() != 2 || !slices.Equal(*heard, []uint64{1, 2}) {
		t.Errorf("durable are %v, up to %d", *heard, d.Last())
	}
}

func TestAClosedStoreAnswersNothing(t *testing.T) {
	s := Open(NewDisk(), persistence.Retention{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Acquire(t.Context(), "test"); !errors.Is(err, errClosed) {
		t.Errorf("a closed store answers %v", err)
	}
}
