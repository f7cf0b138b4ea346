package event

import (
	"errors"
	"reflect"
	"testing"

	"exchange/core/wire"
)

func FuzzDecode(f *testing.F) {
	for i := range golden {
		b := golden[i].record.Append(nil)
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Record
		rest, err := r.Decode(b)
		if err != nil {
			if other := (*wire.OtherVersion)(nil); !errors.Is(err, errDamaged) &&
				!errors.As(err, &other) {
				t.Fatal(err)
			}
			return
		}
		if len(rest) > len(b)-recordHeader {
			t.Fatalf("%d bytes follow in %d", len(rest), len(b))
		}
		// A readable record can be written, and reads equal again.
		var again Record
		if _, err := again.Decode(r.Append(nil)); err != nil ||
			!reflect.DeepEqual(again, r) {
			t.Fatalf("%+v came back as %+v, %v", r, again, err)
		}
	})
}

func FuzzOpenBatch(f *testing.F) {
	b := goldenBatch()
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add(EndBatch(BeginBatch(nil), 1, 2, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		batch, err := OpenBatch(b)
		if err != nil {
			if other := (*wire.OtherVersion)(nil); !errors.Is(err, errDamaged) &&
				!errors.As(err, &other) {
				t.Fatal(err)
			}
			return
		}
		var r Record
		for rest := batch.Records; len(rest) > 0 && err == nil; {
			rest, err = r.Decode(rest)
		}
		again := append(BeginBatch(nil), batch.Records...)
		if again = EndBatch(again, batch.Epoch, batch.Prev,
			batch.Count); string(again) != string(b) {
			t.Fatalf("%x is written again as %x", b, again)
		}
	})
}
