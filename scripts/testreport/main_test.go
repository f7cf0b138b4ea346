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
`, true, "ok  \tp\t0.1s\n\n1 tests passed, 0 failed, 0 skipped.\n"},
		{"a failure shows it", `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: seed 7\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
`, false, "    a_test.go:1: seed 7\nFAIL\tp\t0.1s\n\n0 tests passed, 1 failed, 0 skipped.\nfailed: p TestA\n"},
		{"a skip is listed with its reason", `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: no valkey-server\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}
`, true, "\n0 tests passed, 0 failed, 1 skipped.\nskipped: p TestA: a_test.go:1: no valkey-server\n"},
		{"servers are named", `{"Action":"attr","Package":"p","Test":"TestA","Key":"redis-server","Value":"7.0.15"}
{"Action":"attr","Package":"p","Test":"TestA","Key":"redis-server","Value":"7.0.15"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"attr","Package":"p","Test":"TestB","Key":"redis-server","Value":"7.0.15"}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"pass","Package":"p"}
`, true, "\n2 tests passed, 0 failed, 0 skipped.\n2 of them with redis-server 7.0.15\n"},
		{"what takes long is listed", `{"Action":"pass","Package":"p","Test":"TestA","Elapsed":20.4}
{"Action":"pass","Package":"p","Test":"TestB","Elapsed":19.9}
{"Action":"pass","Package":"p","Test":"TestC/x","Elapsed":70}
{"Action":"pass","Package":"p","Test":"TestC","Elapsed":70.6}
{"Action":"pass","Package":"p","Elapsed":200}
`, true, "\n4 tests passed, 0 failed, 0 skipped.\nslow: p TestC 71 s\nslow: p TestA 20 s\n"},
		{"a broken build fails", `{"ImportPath":"p [p.test]","Action":"build-output","Output":"p.go:1: undefined: x\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}
`, false, "p.go:1: undefined: x\nFAIL\tp [build failed]\n\n0 tests passed, 2 failed, 0 skipped.\nfailed: build of p [p.test]\nfailed: p\n"},
		{"a crash shows what the open test said", `{"Action":"output","Package":"p","Test":"TestA","Output":"panic: x\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
`, false, "FAIL\tp\t0.1s\npanic: x\n\n0 tests passed, 1 failed, 0 skipped.\nfailed: p\n"},
		{"a package without an end fails", `{"Action":"start","Package":"p"}
not json
`, false, "not json\n\n0 tests passed, 1 failed, 0 skipped.\nfailed: p did not end\n"},
		{"nothing at all fails", "", false, "\n0 tests passed, 0 failed, 0 skipped.\n"},
	} {
		t.Run(x.name, func(t *testing.T) {
			var out strings.Builder
			ok, err := report(strings.NewReader(x.in), &out)
			if err != nil || ok != x.ok || out.String() != x.out {
				t.Errorf("got %v %v\n%s\nwant %v\n%s", ok, err, out.String(), x.ok, x.out)
			}
		})
	}
}
