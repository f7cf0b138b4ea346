package generator

import (
	"strings"
	"testing"
)

func TestAnswersArriveInParts(t *testing.T) {
	whole := "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 5\r\nRetry-After: " +
		"1\r\nConnection: close\r\n\r\nlater"
	for i := range whole {
		if _, ok, err := readAnswer([]byte(whole[:i])); ok || err != nil {
			t.Fatalf("%q: %v %v", whole[:i], ok, err)
		}
	}
	for _, text := range []string{whole, strings.ToLower(whole)} { // as from a proxy
		a, ok, err := readAnswer([]byte(text))
		if !ok || err != nil || a.Status != 503 || string(a.Body) != "later" || !a.last ||
			!a.Later {
			t.Errorf("%q: %+v %v %v", text, a, ok, err)
		}
	}
	if _, _, err := readAnswer([]byte(whole + "x")); err == nil {
		t.Error("more than an answer is taken for one")
	}
	if _, _, err := readAnswer([]byte("HTTP/1.1 200 OK\r\n\r\n")); err == nil {
		t.Error("an answer without a length is taken")
	}
}
