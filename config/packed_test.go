package config

import "testing"

// Packed data that unpacks to more than any market part does not take its memory.
func TestAPackedMarketPartIsBounded(t *testing.T) {
	packed := must(PackMarket(make([]byte, 4*maxMarket)))
	text, err := UnpackMarket(packed)
	if err != nil || len(text) != maxMarket+1 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	for _, bad := range [][]byte{nil, []byte("x"), packed[:len(packed)/2][:20]} {
		if _, err := UnpackMarket(bad); err == nil {
			t.Errorf("%d bytes are a market part", len(bad))
		}
	}
}
