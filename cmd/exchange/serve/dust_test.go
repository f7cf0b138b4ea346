package serve

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"exchange/config"
	"exchange/core/money"
)

// Each pair without a minimum value is named at the start, and no other.
func TestAPairWithoutAMinimumValueIsNamedAtTheStart(t *testing.T) {
	logged := func(cfg *config.Config) string {
		var b bytes.Buffer
		warnOfDust(cfg, slog.New(slog.NewTextHandler(&b, nil)))
		return b.String()
	}
	if got := logged(config.Demo()); got != "" {
		t.Errorf("of the demo's pairs: %s", got)
	}
	cfg := config.Default()
	cfg.Pairs = []config.Pair{{Name: "A_B"},
		{Name: "C_D", MinimumOrderValue: money.Amount(1).Balance()},
		{Name: "E_F"}}
	got := logged(cfg)
	if strings.Count(got, "level=WARN") != 2 || !strings.Contains(got, "pair=A_B ") ||
		!strings.Contains(got, "pair=E_F ") || strings.Count(got, "minimum_order_value") != 2 {
		t.Errorf("of two of three pairs: %s", got)
	}
}
