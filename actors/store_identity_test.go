package actors

import (
	"errors"
	"slices"
	"testing"

	"exchange/persistence"
	"exchange/persistence/memory"
)

// remembered stores histories beyond the life of a process.
type remembered struct {
	ids     []persistence.HistoryID
	crashes bool // its processes crash
}

func (r *remembered) Known() ([]persistence.HistoryID, error) { return r.ids, nil }

func (r *remembered) Remember(id persistence.HistoryID) error {
	if !slices.Contains(r.ids, id) {
		r.ids = append(r.ids, id)
	}
	return nil
}

func (r *remembered) Forget() error {
	r.ids = nil
	return nil
}

// on starts an exchange on a disk, stops it, and returns the id of its history.
func (r *remembered) on(t *testing.T, disk *memory.Disk, change func(*Options)) (
	id persistence.HistoryID, err error) {
	t.Helper()
	s := memory.Open(disk, persistence.Retention{})
	defer s.Close()
	o := testOptions(s)
	o.Histories = r
	change(&o)
	e, err := Start(t.Context(), o)
	if err != nil {
		return id, err
	}
	id = e.history
	if r.crashes {
		e.Abandon()
	} else {
		stop(t, e)
	}
	return id, nil
}

// onBothKindsOfStores runs a test with an exclusive store and with a shared one.
func onBothKindsOfStores(t *testing.T, test func(t *testing.T, own func(*Options))) {
	for name, shared := range map[string]bool{"own": false, "shared": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				test(t, func(o *Options) { o.Store.(*memory.Store).Server = shared })
			})
		})
	}
}

// With an unmounted disk the store is empty, in place of the remembered one.
func TestAStartCreatesNoExchangeInPlaceOfARememberedOne(t *testing.T) {
	onBothKindsOfStores(t, func(t *testing.T, own func(*Options)) {
		var host remembered
		disk, empty := memory.NewDisk(), memory.NewDisk()
		first := must[persistence.HistoryID](t)(host.on(t, disk, own))
		if !slices.Equal(host.ids, []persistence.HistoryID{first}) {
			t.Fatalf("the host remembers %x, the history is %x", host.ids, first)
		}
		if _, err := host.on(t, empty, own); !errors.Is(err, persistence.ErrAbsent) {
			t.Errorf("an empty store is answered with %v", err)
		}
		s := memory.Open(empty, persistence.Retention{})
		if _, n, _, err := persistence.First(t.Context(), s, 0); err != nil || n != 0 {
			t.Errorf("the empty store has records up to %d, %v", n, err)
		}
		succeeds(t, s.Close())
		if again := must[persistence.HistoryID](t)(host.on(t, disk, own)); again != first {
			t.Errorf("when the disk is there, the history is %x, not %x", again, first)
		}
		fresh := must[persistence.HistoryID](t)(host.on(t, empty, func(o *Options) {
			own(o)
			o.NewExchange = true
		}))
		if !slices.Equal(host.ids, []persistence.HistoryID{fresh}) {
			t.Errorf("the host remembers %x, the new history is %x", host.ids, fresh)
		}
		if _, err := host.on(t, disk, own); !errors.Is(err, persistence.ErrForeign) {
			t.Errorf("a store of another history is answered with %v", err)
		}
	})
}

// without simulates a start that finds no HEAD.
func without(o *Options) { o.Store.(*memory.Store).Head = new(memory.Head) }

// A host recognises its store by any history up to the newest: another host may have begun that.
func TestAStartRecognisesAStoreWhoseHistoryHasChanged(t *testing.T) {
	for _, crashes := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			host, other := &remembered{crashes: crashes}, &remembered{crashes: crashes}
			disk := memory.NewDisk()
			first := must[persistence.HistoryID](t)(host.on(t, disk, func(*Options) {}))
			second := must[persistence.HistoryID](t)(other.on(t, disk, without))
			if first == second ||
				!slices.Equal(other.ids, []persistence.HistoryID{first, second}) {
				t.Fatalf("the other host remembers %x", other.ids)
			}
			// the snapshot of a stop contains only the second history
			_, err := host.on(t, disk, func(*Options) {})
			if crashes && (err != nil || len(host.ids) != 2) ||
				!crashes && !errors.Is(err, persistence.ErrForeign) {
				t.Errorf("%v, and the host remembers %x", err, host.ids)
			}
		})
	}
}

// After a crash around the first record of a new history the host still recognises the store.
func TestANewHistoryIsRememberedBeforeItIsWritten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var host remembered
		disk := memory.NewDisk()
		must[persistence.HistoryID](t)(host.on(t, disk, func(*Options) {}))
		for _, known := range []int{1, 0} { // 0: the data folder is a new one, too
			host.ids = host.ids[:known]
			_, err := host.on(t, disk, func(o *Options) {
				without(o)
				o.Store, o.Timing.StallMax = refusingStore{o.Store}, 1
			})
			if !errors.Is(err, ErrStalled) || len(host.ids) != 2 {
				t.Fatalf("%v, and the host remembers %x", err, host.ids)
			}
			before := host.ids[0]
			if now := must[persistence.HistoryID](t)(host.on(t, disk,
				func(*Options) {})); now != before {
				t.Errorf("the next start has history %x, not %x", now, before)
			}
		}
	})
}
