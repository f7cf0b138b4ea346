package operator

import (
	"log/slog"
	"strings"
	"testing"
)

// A panic while an answer is streamed must not end the exchange.
func TestALongAnswerThatPanicsIsAnError(t *testing.T) {
	got, err := guarded(slog.New(slog.DiscardHandler), "/path",
		func() (any, error) { panic("no") })
	if got != nil || err == nil || !strings.Contains(err.Error(), "internal error, request id ") {
		t.Errorf("%v, %v", got, err)
	}
}
