package pebble

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"exchange/persistence"
)

// The counter of the index reveals a missing entry.
func TestLostReferenceIsReported(t *testing.T) {
	s, tok, _ := mustOpen(t, t.TempDir(), Options{})
	w := &persistence.Writes{}
	for i, reference := range []string{"one", "two", "three"} {
		w.Deposits = append(w.Deposits,
			persistence.Deposit{ID: uint64(i + 1), Account: 1, Currency: 1, Amount: 5,
				Reference: reference})
	}
	succeeds(t, s.Apply(t.Context(), tok, 0, 9, w))
	if wrong := verified(t, s); wrong != "" {
		t.Fatalf("nothing is lost, and wrong is %s", wrong)
	}
	succeeds(t, s.db.Delete(s.reference("two"), pebble.Sync))
	wrong := verified(t, s)
	if !strings.Contains(wrong, "reference, list : its counter says 3 rows") {
		t.Errorf("the findings are %q", wrong)
	}
	succeeds(t, s.db.Delete(s.counterKey(s.reference("")), pebble.Sync))
	if wrong := verified(t, s); !strings.Contains(wrong, "2 rows without a counter") {
		t.Errorf("the findings are %q", wrong)
	}
	if n, err := s.CountReferences(t.Context()); n != 0 || err != nil {
		t.Errorf("without a counter there are %d, %v", n, err)
	}
}
