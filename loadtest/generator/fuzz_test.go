package generator

import (
	"bytes"
	"testing"
)

// A complete answer has its announced length. In any pieces it is read once.
func FuzzReadAnswer(f *testing.F) {
	for _, s := range []string{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
		"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nRetry-After: 1\r\nConnection: close\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\n",
		"\r\nContent-Length: 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551617\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\nx"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, whole, err := readAnswer(b)
		if err != nil || !whole {
			return
		}
		if !bytes.HasSuffix(b, a.Body) || a.Status < 0 || a.Status > 999 {
			t.Fatalf("%q is %+v", b, a)
		}
		for n := range len(b) {
			if _, whole, err := readAnswer(b[:n]); whole && err == nil {
				t.Fatalf("%q is whole after %d bytes", b, n)
			}
		}
	})
}
