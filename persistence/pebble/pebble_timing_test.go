package pebble

import (
	"testing"

	"exchange/persistence/conformance"
)

func BenchmarkStore(b *testing.B) {
	s, err := Open(b.TempDir(), Options{Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	conformance.Bench(b, s)
}
