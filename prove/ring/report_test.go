package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	for _, x := range []struct {
		name string
		in   string
		ok   bool
		out  string
	}{
		{"a pass hides what the test said", `{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: seed 7\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}
`, true, "ok  \tp\t0.1s\n1 passed, 0 failed, 0 skipped\n"},
		{"a failure shows it", `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: seed 7\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
`, false, "    a_test.go:1: seed 7\nFAIL\tp\t0.1s\nfailed: p TestA\n0 passed, 1 failed, 0 skipped\n"},
		{"a skip is listed with its reason", `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: no valkey-server\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}
`, true, "skipped: p TestA: a_test.go:1: no valkey-server\n0 passed, 0 failed, 1 skipped\n"},
		{"servers are named", `{"Action":"attr","Package":"p","Test":"TestA","Key":"redis-server","Value":"7.0.15"}
{"Action":"attr","Package":"p","Test":"TestA","Key":"redis-server","Value":"7.0.15"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"attr","Package":"p","Test":"TestB","Key":"redis-server","Value":"7.0.15"}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"pass","Package":"p"}
`, true, "2 tests with redis-server 7.0.15\n2 passed, 0 failed, 0 skipped\n"},
		{"what takes long is listed", `{"Action":"pass","Package":"p","Test":"TestA","Elapsed":20.4}
{"Action":"pass","Package":"p","Test":"TestB","Elapsed":19.9}
{"Action":"pass","Package":"p","Test":"TestC/x","Elapsed":70}
{"Action":"pass","Package":"p","Test":"TestC","Elapsed":70.6}
{"Action":"pass","Package":"p","Elapsed":200}
`, true, "4 passed, 0 failed, 0 skipped\nslowest: 70.6 s p TestC\nslowest: 20.4 s p TestA\nslowest: 19.9 s p TestB\n"},
		{"a broken build fails", `{"ImportPath":"p [p.test]","Action":"build-output","Output":"p.go:1: undefined: x\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}
`, false, "p.go:1: undefined: x\nFAIL\tp [build failed]\nfailed: build of p [p.test]\nfailed: p\n0 passed, 2 failed, 0 skipped\n"},
		{"a crash shows what the open test said", `{"Action":"output","Package":"p","Test":"TestA","Output":"panic: x\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
`, false, "FAIL\tp\t0.1s\npanic: x\nfailed: p\n0 passed, 1 failed, 0 skipped\n"},
		{"a package without an end fails", `{"Action":"start","Package":"p"}
not json
`, false, "not json\nfailed: p did not end\n0 passed, 1 failed, 0 skipped\n"},
		{"nothing at all fails", "", false, "0 passed, 0 failed, 0 skipped\n"},
		{"what statements are covered is kept", `{"Action":"output","Package":"exchange/p","Output":"ok  \tp\t0.1s\tcoverage: 71.5% of statements\n"}
{"Action":"pass","Package":"exchange/p"}
`, true, "ok  \tp\t0.1s\tcoverage: 71.5% of statements\n0 passed, 0 failed, 0 skipped\n"},
	} {
		t.Run(x.name, func(t *testing.T) {
			var out strings.Builder
			r := newReporter(&out)
			r.covered = map[string]string{}
			err := r.read(strings.NewReader(x.in))
			ok := r.end()
			if got := r.covered["p"]; strings.Contains(x.in, "71.5%") && got != "71.5%" {
				t.Errorf("p is covered by %q", got)
			}
			if err != nil || ok != x.ok || out.String() != x.out {
				t.Errorf("got %v %v\n%s\nwant %v\n%s", ok, err, out.String(), x.ok, x.out)
			}
		})
	}
}
