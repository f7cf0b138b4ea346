package seal

import (
	"regexp"
	"strings"
	"testing"

	"exchange/core/event"
	"exchange/core/state"
)

var ofHistory = event.HistoryID{15: 1}

func example(id uint64, issue uint32) *state.Withdrawal {
	return &state.Withdrawal{ID: id, Account: 2, Currency: 1, Amount: 5,
		Status:  event.WithdrawalNew,
		TimeUs:  1_700_000_000_000_000,
		Address: "bc1q", Issue: issue, IssuedUs: 1_700_000_000_000_000}
}

func TestACodeIsOfOneWithdrawalIssueAndKey(t *testing.T) {
	s := sealer(t, serverKey)
	seen := map[string]bool{}
	for withdrawal := uint64(1); withdrawal <= 100; withdrawal++ {
		for issue := uint32(1); issue <= 100; issue++ {
			code := s.Code(ofHistory, example(withdrawal, issue))
			if !regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){2}$`).
				MatchString(code) {
				t.Fatalf("%q is no code", code)
			}
			if seen[code] {
				t.Fatalf("%s is there twice", code)
			}
			seen[code] = true
			if !s.CodeFits(ofHistory, example(withdrawal, issue), code) {
				t.Fatalf("%s does not fit its own", code)
			}
		}
	}
	code := s.Code(ofHistory, example(1, 1))
	if code != sealer(t, serverKey).Code(ofHistory, example(1, 1)) ||
		sealer(t, otherKey()).CodeFits(ofHistory, example(1, 1), code) {
		t.Error("a code is not of its key alone")
	}
}

// After a restore all counters may repeat, for others. So a code is bound to everything that its
// reader saw, and to the history.
func TestACodeIsBoundToAllThatIsConfirmedAndToTheHistory(t *testing.T) {
	s := sealer(t, serverKey)
	code := s.Code(ofHistory, example(7, 1))
	for what, change := range map[string]func(w *state.Withdrawal){
		"withdraw":           func(w *state.Withdrawal) { w.ID++ },
		"issue":              func(w *state.Withdrawal) { w.Issue++ },
		"account":            func(w *state.Withdrawal) { w.Account++ },
		"currency":           func(w *state.Withdrawal) { w.Currency++ },
		"amount":             func(w *state.Withdrawal) { w.Amount++ },
		"address":            func(w *state.Withdrawal) { w.Address += "x" },
		"address of nothing": func(w *state.Withdrawal) { w.Address = "" },
		"time":               func(w *state.Withdrawal) { w.TimeUs++ },
	} {
		w := example(7, 1)
		if change(w); s.CodeFits(ofHistory, w, code) {
			t.Errorf("it fits a withdraw with another %s", what)
		}
	}
	for _, history := range []event.HistoryID{{}, {1}, {14: 1, 15: 1}} {
		if s.CodeFits(history, example(7, 1), code) {
			t.Errorf("it fits the history %v", history)
		}
	}
	later := example(7, 1)
	later.Tries, later.IssuedUs, later.Status = 3, later.IssuedUs+1, event.WithdrawalVerified
	if !s.CodeFits(ofHistory, later, code) {
		t.Error("it does not fit its withdraw after a try")
	}
}

func TestACodeIsAcceptedInAnySpelling(t *testing.T) {
	s := sealer(t, serverKey)
	w := example(1, 1)
	for !strings.ContainsAny(s.Code(ofHistory, w), "0") ||
		!strings.ContainsAny(s.Code(ofHistory, w), "1") {
		w.ID++
	}
	code := s.Code(ofHistory, w)
	for _, text := range []string{code, strings.ToLower(code), strings.ReplaceAll(code, "-", ""),
		strings.ReplaceAll(code, "-", " "), " " + code + " ",
		strings.ReplaceAll(code, "0", "O"), strings.ReplaceAll(code, "0", "o"),
		strings.ReplaceAll(code, "1", "I"), strings.ReplaceAll(code, "1", "l")} {
		if !s.CodeFits(ofHistory, w, text) {
			t.Errorf("%q is not read as %s", text, code)
		}
	}
	for _, text := range []string{"", "-", code[:len(code)-1], code + "0", "0" + code, code + "\n",
		code + "\x00", strings.Repeat("-", 1000), code + code, "\xff" + code} {
		if s.CodeFits(ofHistory, w, text) {
			t.Errorf("%q is taken for %s", text, code)
		}
	}
	for i := range code {
		if code[i] == '-' {
			continue
		}
		other := "2"
		if code[i] == '2' {
			other = "3"
		}
		if text := code[:i] + other + code[i+1:]; s.CodeFits(ofHistory, w, text) {
			t.Errorf("%q is taken for %s", text, code)
		}
	}
}
