package bars

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAPictureHasABarOfEachRow(t *testing.T) {
	c := &Chart{Title: "<b> & more", From: 1, Begin: "the aim", Footer: "one run",
		Ticks: []Tick{{4, "four"}, {0.4, "too little"}, {9, "too much"}},
		Rows: []Row{{Name: "as it was", Value: 1},
			{Name: "half", Value: 0.5, Text: "0.5 <", Poor: true},
			{Name: "twice", Value: 2, Low: 1, High: 8, Text: "2 x"}}}
	var b bytes.Buffer
	if n, err := c.WriteTo(&b); err != nil || n != int64(b.Len()) {
		t.Fatal(n, err)
	}
	picture := b.String()
	for d := xml.NewDecoder(&b); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, picture)
		}
	}
	// The axis goes from 0.5 to 8, four doublings of 75 each; names are 9 letters at most.
	for _, want := range []string{">&lt;b&gt; &amp; more<", ">as it was<", ">half<", ">0.5 &lt;<",
		">twice<", ">the aim<", ">one run<", `x="299.9" y="36">four<`, `class="poor" x="74.9"`,
		`class="good" x="149.9" y="82.0" width="75.0"`, `d="M149.9 86.5H374.9"`} {
		if !strings.Contains(picture, want) {
			t.Errorf("%q is not in\n%s", want, picture)
		}
	}
	if strings.Contains(picture, "too ") {
		t.Errorf("a tick is outside\n%s", picture)
	}
}

func TestAPictureWithoutADifferenceHasAnAxis(t *testing.T) {
	for _, c := range []*Chart{{From: 1}, {From: 5, Rows: []Row{{Name: "five", Value: 5}}}} {
		var b bytes.Buffer
		if _, err := c.WriteTo(&b); err != nil || strings.Contains(b.String(), "NaN") ||
			strings.Contains(b.String(), "Inf") {
			t.Errorf("%v:\n%s", err, &b)
		}
	}
}
