package serve

import (
	"bytes"
	"strings"
	"testing"

	"exchange/persistence"
	"exchange/persistence/memory"
)

// A snapshot that is too old for the requesting node is not sent.
func TestACopyThatIsTooOldIsNotWritten(t *testing.T) {
	ctx, local := t.Context(), memory.Open(memory.NewDisk(), persistence.Retention{})
	tok, _, err := local.Acquire(ctx, persistence.Claim{Owner: "a"})
	if err == nil {
		err = local.Begin(ctx, tok, 7)
	}
	if err == nil {
		err = local.Apply(ctx, tok, 0, 7, nil)
	}
	if err == nil {
		err = local.SaveSnapshot(ctx, tok, 7, strings.NewReader("no image"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for least, want := range map[uint64]string{8: "of sequence 7, below the requested 8",
		7: "the mark of a snapshot"} {
		var b bytes.Buffer
		err := new(copies).Write(ctx, local, least, &b)
		if err == nil || !strings.Contains(err.Error(), want) || b.Len() > 0 {
			t.Errorf("from %d on: %v, with %d bytes", least, err, b.Len())
		}
	}
}
