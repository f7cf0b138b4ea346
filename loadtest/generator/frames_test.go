package generator

import (
	"bytes"
	"strings"
	"testing"
)

// A frame arrives in any pieces, and reads as it was made.
func FuzzFrames(f *testing.F) {
	for _, s := range []string{"", "3", `420["order",{}]`, strings.Repeat("x", 125),
		strings.Repeat("x", 126), strings.Repeat("x", 1<<16)} {
		f.Add([]byte(s), []byte(s))
	}
	f.Add([]byte("\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff"), []byte{})
	f.Fuzz(func(t *testing.T, raw, text []byte) {
		if kind, got, rest, whole, err := readFrame(raw); err == nil && whole &&
			(kind != raw[0] || len(got)+len(rest) > len(raw)) {
			t.Fatalf("%q is %q and %q", raw, got, rest)
		}
		sent := AppendFrame(nil, text)
		sent[1] &^= 0x80 // a server does not mask
		header, _, _ := FrameHeader(sent)
		frame := append(append(bytes.Clone(sent[:header]), text...), raw...)
		for _, n := range []int{0, 1, header, header + len(text) - 1} {
			if n < header+len(text) && n >= 0 {
				if _, _, _, whole, err := readFrame(frame[:n]); whole || err != nil {
					t.Fatalf("%d bytes of %q are whole, %v", n, frame, err)
				}
			}
		}
		kind, got, rest, whole, err := readFrame(frame)
		if kind != frameText || !bytes.Equal(got, text) || !bytes.Equal(rest, raw) || !whole ||
			err != nil {
			t.Fatalf("%q is %q and %q, %t, %v", frame, got, rest, whole, err)
		}
		if _, a, err := readAck(raw); err == nil && !bytes.Contains(raw, a.Body) {
			t.Fatalf("%q has the body %q", raw, a.Body)
		}
	})
}

func TestAcknowledgementsAreAnswers(t *testing.T) {
	f := func(text string, id, status int, body string, later bool) {
		t.Helper()
		n, a, err := readAck([]byte(text))
		if err != nil || n != id || a.Status != status || string(a.Body) != body ||
			a.Later != later {
			t.Errorf("%s: %d, %+v, %v", text, n, a, err)
		}
	}
	f(`430[{"status":200,"body":{"order":["x"]}}]`, 0, 200, `{"order":["x"]}`, false)
	f(`4371[{"status":201,"body":{}}]`, 71, 201, "{}", false)
	f(`437[{"status":429,"body":{"detail":"}"},"retry_after":3}]`, 7, 429, `{"detail":"}"}`, true)
	for _, bad := range []string{"43", `43[{"status":200,"body":{}}]`,
		`43-1[{"status":200,"body":{}}]`, `430[{"status":,"body":{}}]`, `430[{"body":{}}]`, `430[{"status":200,"body":{}}`} {
		if _, a, err := readAck([]byte(bad)); err == nil {
			t.Errorf("%s is %+v", bad, a)
		}
	}
}
