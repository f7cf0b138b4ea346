//go:build prove

package redis

import (
	"testing"

	"exchange/persistence/conformance"
	"exchange/persistence/redistest"
)

func BenchmarkStore(b *testing.B) {
	s, err := Open(b.Context(), redistest.Start(b).URL(), Options{Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	conformance.Bench(b, s)
}
