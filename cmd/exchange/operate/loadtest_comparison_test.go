package operate

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"exchange/loadtest"
)

func TestReportsOfLoadTestsAreCompared(t *testing.T) {
	const before, after = "../../../loadtest/testdata/before.json",
		"../../../loadtest/testdata/after.json"
	compare := func(args ...string) (out, errOut string, code int) {
		r := runLine(nil, append([]string{"loadtest", "compare"}, args...)...)
		return r.Out, r.ErrOut, r.Code
	}
	for _, x := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{before, after}, 0, ""},
		{[]string{before, after, "--worse", "250%"}, 0, ""},
		{[]string{before, before, "--worse", "0"}, 0, ""},
		{[]string{before, after, "--worse", "10%"}, 1, after + " is worse than " + before +
			" by more than 10 %: done/s fell by 15 %, from 9,900 to 8,415; p99 rose by 200 %"},
		{[]string{before, after, "--worse", "much"}, 64, `--worse is "much"`},
		{[]string{before, after, "--worse", "NaN"}, 64, "--worse"},
		{[]string{before, after, "--worse", "-1%"}, 64, "--worse"},
		{[]string{before, after, "--worse="}, 64, "--worse"},
		{[]string{before}, 64, "needs B.json"},
		{[]string{before, after, before}, 64, "one argument too many"},
		{[]string{before, filepath.Join(t.TempDir(), "none")}, 64, "no such file"},
		{[]string{t.TempDir(), after}, 64, "the report "},
		{[]string{"loadtest_comparison_test.go", after}, 64, "no JSON report"},
	} {
		out, errOut, code := compare(x.args...)
		if code != x.code || !strings.Contains(errOut, x.say) || (x.say == "") != (errOut == "") ||
			(code <= 1) != strings.Contains(out, "all done") {
			t.Errorf("%q: exit code %d: %s%s", x.args, code, out, errOut)
		}
	}
	out, errOut, code := compare(before, after, "--json", "--worse", "10%")
	var c loadtest.Comparison
	if err := json.Unmarshal([]byte(out), &c); err != nil || code != 1 || len(c.Worse) != 2 ||
		c.A.File != before || len(c.Settings) != 2 || !strings.HasPrefix(errOut, `{"error":`) {
		t.Errorf("%v %d %s %s", err, code, out, errOut)
	}
}
