package sign

import (
	"bytes"
	"testing"
)

// What an observer is given verifies the same signatures, and is not the secret.
func TestTheStatesOfASecretVerifyItsSignatures(t *testing.T) {
	secret := "a secret that a person would recognize"
	b, err := New([]byte(secret)).MarshalBinary()
	if err != nil || bytes.Contains(b, []byte(secret)[:8]) {
		t.Fatalf("%x, %v", b, err)
	}
	keyed := New([]byte("to be replaced"))
	if err := keyed.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	var v Verifier
	right := signature(secret, demoKey)
	if !keyed.VerifyGet(&v, []byte(demoKey), nil, nil, right) {
		t.Error("a right signature is refused")
	}
	if keyed.VerifyGet(&v, []byte(demoKey), nil, nil, signature("to be replaced", demoKey)) {
		t.Error("the signature of another secret is taken")
	}
	for _, n := range []int{0, 1, 63, 65} {
		if keyed.UnmarshalBinary(make([]byte, n)) == nil {
			t.Errorf("%d bytes are states", n)
		}
	}
	if !keyed.VerifyGet(&v, []byte(demoKey), nil, nil, right) {
		t.Error("what is refused has changed it")
	}
}
