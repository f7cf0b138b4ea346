package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"exchange/actors/seal"
	"exchange/config"
)

// An exchange has its folder to itself for as long as it runs, and its key is changed meanwhile.
func TestTheServersKeyIsChangedWhileAnExchangeRuns(t *testing.T) {
	data := t.TempDir()
	if _, err := seal.Load("", filepath.Join(data, config.SecretKeyName), true); err != nil {
		t.Fatal(err)
	}
	held, err := holdFolder(data)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release() //nolint:errcheck // the test's end
	for i, command := range []string{"rotate", "retire"} {
		r := runLine(nil, "secret-key", command, "--data", data, "--json")
		var a secretKeyAnswer
		if err := json.Unmarshal([]byte(r.out), &a); err != nil || len(a.Keys) != 2-i {
			t.Errorf("%s: %d %s%s", command, r.code, r.out, r.errOut)
		}
	}
}
