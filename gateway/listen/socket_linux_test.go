package listen

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestOverflowUser(t *testing.T) {
	text := must(os.ReadFile("/proc/sys/kernel/overflowuid"))
	if got := fmt.Sprint(OverflowUser()); got != strings.TrimSpace(string(text)) {
		t.Errorf("%s, want %s", got, text)
	}
}
