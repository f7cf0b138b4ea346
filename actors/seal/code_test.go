package seal

import (
	"regexp"
	"strings"
	"testing"
)

func TestACodeIsOfOneWithdrawIssueAndKey(t *testing.T) {
	s := sealer(t, serverKey)
	seen := map[string]bool{}
	for withdraw := uint64(1); withdraw <= 100; withdraw++ {
		for issue := uint32(1); issue <= 100; issue++ {
			code := s.Code(withdraw, issue)
			if !regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){2}$`).MatchString(code) {
				t.Fatalf("%q is no code", code)
			}
			if seen[code] {
				t.Fatalf("%s is there twice", code)
			}
			seen[code] = true
			if !s.CodeFits(withdraw, issue, code) || s.CodeFits(withdraw+1, issue, code) || s.CodeFits(withdraw, issue+1, code) {
				t.Fatalf("%s fits others, or not its own", code)
			}
		}
	}
	if code := s.Code(1, 1); code != sealer(t, serverKey).Code(1, 1) || sealer(t, otherKey()).CodeFits(1, 1, code) {
		t.Error("a code is not of its key alone")
	}
}

func TestACodeIsReadHoweverItIsWritten(t *testing.T) {
	s := sealer(t, serverKey)
	withdraw := uint64(1)
	for !strings.ContainsAny(s.Code(withdraw, 1), "0") || !strings.ContainsAny(s.Code(withdraw, 1), "1") {
		withdraw++
	}
	code := s.Code(withdraw, 1)
	for _, text := range []string{code, strings.ToLower(code), strings.ReplaceAll(code, "-", ""), strings.ReplaceAll(code, "-", " "), " " + code + " ",
		strings.ReplaceAll(code, "0", "O"), strings.ReplaceAll(code, "0", "o"), strings.ReplaceAll(code, "1", "I"), strings.ReplaceAll(code, "1", "l")} {
		if !s.CodeFits(withdraw, 1, text) {
			t.Errorf("%q is not read as %s", text, code)
		}
	}
	for _, text := range []string{"", "-", code[:len(code)-1], code + "0", "0" + code, code + "\n", code + "\x00", strings.Repeat("-", 1000), code + code, "\xff" + code} {
		if s.CodeFits(withdraw, 1, text) {
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
		if text := code[:i] + other + code[i+1:]; s.CodeFits(withdraw, 1, text) {
			t.Errorf("%q is taken for %s", text, code)
		}
	}
}
