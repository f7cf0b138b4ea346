package codec

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"exchange/persistence"
)

// Every bit of a stored value matters, and so does its place.
func TestSealedValueIsReadOnlyInItsPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := drawRow(t).row
		list, id := rapid.StringN(1, 30, 60).Draw(t, "list"),
			rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "id")
		place := At(list).And(id)
		if place != At(list+string(id)) {
			t.Fatal("a place within another is not that of both names")
		}
		sealed := place.Seal([]byte("before"), row)[len("before"):]
		if got, err := place.Open(sealed); err != nil || !bytes.Equal(got, row) {
			t.Fatalf("%x came back as %x, %v", row, got, err)
		}
		for i := range len(sealed) * 8 {
			other := bytes.Clone(sealed)
			other[i/8] ^= 1 << (i % 8)
			if _, err := place.Open(other); !errors.Is(err, persistence.ErrCorrupt) ||
				!errors.Is(err, errSum) {
				t.Fatalf("bit %d: error is %v", i, err)
			}
		}
		for n := range sealed {
			if _, err := place.Open(sealed[:n]); !errors.Is(err, persistence.ErrCorrupt) {
				t.Fatalf("%d bytes: error is %v", n, err)
			}
		}
		name := slices.Concat([]byte(list), id)
		for i := range len(name) * 8 {
			name[i/8] ^= 1 << (i % 8)
			if _, err := At(name).Open(sealed); !errors.Is(err, persistence.ErrCorrupt) {
				t.Fatalf("in another place, bit %d: error is %v", i, err)
			}
			name[i/8] ^= 1 << (i % 8)
		}
	})
}

func TestRowOfOtherVersionIsNamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawRow(t)
		row := c.row
		row[0] = rapid.Byte().Filter(func(v byte) bool { return v != Version }).Draw(t, "version")
		want := fmt.Sprintf("it is of version %d and this program reads version %d", row[0],
			Version)
		_, decoded := c.decode(row)
		_, opened := At("list").Open(At("list").Seal(nil, row))
		for _, err := range []error{decoded, opened} {
			if !errors.Is(err, persistence.ErrCorrupt) || !strings.Contains(err.Error(), want) {
				t.Fatalf("error is %v, want one with %q", err, want)
			}
		}
	})
}

func TestTextChecksum(t *testing.T) {
	p := At("list")
	if err := p.CheckText("1234", p.Text("1234")); err != nil {
		t.Fatal(err)
	}
	for text, sum := range map[string]string{"1235": p.Text("1234"),
		"1234": At("other").Text("1234"), "": "", "12": "2.0", "123": "x"} {
		if err := p.CheckText(text, sum); !errors.Is(err, persistence.ErrCorrupt) {
			t.Errorf("%q with %q: %v", text, sum, err)
		}
	}
	want := fmt.Sprintf("it is of version %d and this program reads version %d", Version-1, Version)
	if err := p.CheckText("1234", p.textOf(Version-1, "1234")); err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("another version: %v", err)
	}
	flipped := fmt.Sprintf("%d%s", Version-1, p.Text("1234")[1:])
	if err := p.CheckText("1234", flipped); !errors.Is(err, errSum) {
		t.Errorf("a version that was flipped: %v", err)
	}
}

func TestMarkWithFlippedBitIsCorrupt(t *testing.T) {
	mark := AppendMark(nil, At("marks"),
		&persistence.Trade{Pair: 3, TakerSide: 1, Taker: 1, Maker: 2}, 2)
	if len(mark) != MarkSize || CheckMark(At("marks"), string(mark)) != nil ||
		CheckMark(At("other"), string(mark)) == nil {
		t.Fatalf("mark %x", mark)
	}
	for i := range MarkSize * 8 {
		mark[i/8] ^= 1 << (i % 8)
		if err := CheckMark(At("marks"), string(mark)); !errors.Is(err, persistence.ErrCorrupt) {
			t.Errorf("bit %d: error is %v", i, err)
		}
		mark[i/8] ^= 1 << (i % 8)
	}
}
