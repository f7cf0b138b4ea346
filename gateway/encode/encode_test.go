package encode

import (
	"encoding/json"
	"testing"
)

func TestTextIsJSON(t *testing.T) {
	for _, s := range []string{"", "a", `"\`, "\x00\x1f\x7f", "ä€😀", "<script>&", "\xff", "a\xc3"} {
		var back string
		if err := json.Unmarshal(Text(nil, s), &back); err != nil {
			t.Errorf("%q: %v", s, err)
		} else if want := string([]rune(s)); back != want {
			t.Errorf("%q comes back as %q", s, back)
		}
	}
}

func TestSecondsHaveNoZerosAtTheirEnd(t *testing.T) {
	for us, want := range map[int64]string{0: "0", 1: "0.000001", 1_000_000: "1", 1_100_000: "1.1",
		1_700_000_000_123_450: "1700000000.12345", 999_999: "0.999999"} {
		if got := string(Seconds(nil, us)); got != want {
			t.Errorf("%d us are %s, want %s", us, got, want)
		}
	}
}
