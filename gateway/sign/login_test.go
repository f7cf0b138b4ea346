package sign

import (
	"strings"
	"testing"

	"exchange/gateway/params"
)

func TestALoginIsSignedByKeyAndChallenge(t *testing.T) {
	keyed := New([]byte(demoSecret))
	var v Verifier
	challenge := strings.Repeat("5e", 32)
	right := signature(demoSecret, "login\n"+demoKey+"\n"+challenge)
	if !keyed.VerifyLogin(&v, demoKey, challenge, right) {
		t.Error("the signature of a login was refused")
	}
	for name, wrong := range map[string][]byte{
		"of another challenge": signature(demoSecret,
			"login\n"+demoKey+"\n"+strings.Repeat("5f", 32)),
		"of another key":    signature(demoSecret, "login\nanother\n"+challenge),
		"of another secret": signature("another", "login\n"+demoKey+"\n"+challenge),
		"of a request":      signature(demoSecret, demoKey+challenge),
		"that is too short": right[:len(right)-1],
		"that is no hex":    append([]byte("x"), right[1:]...),
		"that is empty":     nil,
	} {
		if keyed.VerifyLogin(&v, demoKey, challenge, wrong) {
			t.Errorf("a signature %s was taken", name)
		}
	}
}

// A key whose name begins the text of a login, and a form that continues it, would make the
// signature of a login that of a request. No such form exists.
func TestTheSignatureOfALoginIsThatOfNoRequest(t *testing.T) {
	for _, key := range []string{"logi", "login"} {
		text := "login\n" + key + "\n" + strings.Repeat("5e", 32)
		var p params.Set
		if p.ParseForm([]byte(text[len(key):])) == nil {
			t.Errorf("the login of the key %q is a request, too", key)
		}
	}
}
