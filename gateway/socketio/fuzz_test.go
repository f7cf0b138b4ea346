package socketio

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// Decoding loses nothing: made into a packet again, the result decodes to the same.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"0", `0{"a":1}`, "0/x,", "0/x", `0/x,{"a":1}`, "1", "1/x,", `2["a"]`,
		`2/x,12["a",1,{"b":[]}]`, `2[1]`,
		`2[-1.5e3]`, `2["a"`, "2[]", `31[]`, `3/x,1["a"]`, `4{"message":"x"}`,
		`51-["a",{"_placeholder":true,"num":0}]`,
		`50-["a"]`, `599999999999999999999-["a"]`, `61-/x,3[{"_placeholder":true,"num":0}]`,
		`2["connect"]`, `2["\u0063onnect"]`,
		"", "7", "2/", "2/,", "2null", `29007199254740991["a"]`, `29007199254740992["a"]`,
		`2["a"]x`, "2[\"\xff\"]", `2[{}]`,
		`2` + strings.Repeat("[", 10001)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		p, err := decode(text, 1000)
		if !bytes.Equal(text, before) {
			t.Fatal("the text is changed")
		}
		if err != nil {
			if err != errPacket {
				t.Fatalf("%v", err)
			}
			return
		}
		for _, a := range p.args {
			if !json.Valid(a) {
				t.Fatalf("%q is no JSON", a)
			}
			if n, ok := placeholder(a); ok && a[0] != '{' {
				t.Fatalf("%q is placeholder %d", a, n)
			}
		}
		if p.id < -1 || p.id > maxSafe || p.attachments < 0 ||
			!strings.HasPrefix(p.namespace, "/") {
			t.Fatalf("%+v", p)
		}
		var frames []byte
		args := make([]any, len(p.args))
		for i, a := range p.args {
			args[i] = a
		}
		switch p.kind {
		case typeConnect:
			if p.auth != nil && !json.Valid(p.auth) {
				t.Fatalf("%q is no JSON", p.auth)
			}
			return
		case typeDisconnect:
			return
		case typeEvent, typeBinaryEvent:
			frames, err = encode(typeEvent, p.namespace, p.id, &p.name, args)
		case typeAck, typeBinaryAck:
			frames, err = encode(typeAck, p.namespace, p.id, nil, args)
		default:
			t.Fatalf("%+v", p)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, payload, rest, ok := nextFrame(frames)
		if !ok || len(rest) > 0 {
			t.Fatalf("%q", frames)
		}
		q, err := decode(payload[1:], 1000)
		if err != nil || q.name != p.name || q.id != p.id || q.namespace != p.namespace ||
			len(q.args) != len(p.args) {
			t.Fatalf("%+v became %+v, %v", p, q, err)
		}
	})
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{"", "3", "40\x1e42[1]", "bAQID", "bAQI", "b", "b\x1e", "\x1e",
		"4\xff", "4é\x1ebAA==\x1e3", "bAA==\x1e"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var list []enginePacket
		if err := split(body, func(p enginePacket) error {
			list = append(list, p)
			return nil
		}); err != nil {
			if err != errPacket {
				t.Fatalf("%v", err)
			}
			return
		}
		var again []byte
		for _, p := range list {
			kind := byte(textFrame)
			if p.binary {
				kind = binaryFrame
			} else if len(p.data) == 0 {
				t.Fatal("an empty packet")
			}
			again = appendPoll(again, kind, p.data)
		}
		var once []enginePacket
		if err := split(again, func(p enginePacket) error {
			once = append(once, p)
			return nil
		}); err != nil || len(once) != len(list) {
			t.Fatalf("%q became %q: %v", body, again, err)
		}
		for i := range once {
			if once[i].binary != list[i].binary || !bytes.Equal(once[i].data, list[i].data) {
				t.Fatalf("%q became %q", body, again)
			}
		}
	})
}

func FuzzNextFrame(f *testing.F) {
	frames := AppendFrame(AppendFrame(nil, "/", "a", []byte("1")), "/b", "c",
		[]byte(`"`+strings.Repeat("x", 300)+`"`))
	f.Add(frames)
	f.Add(AppendFrame(nil, "/", "a", bytes.Repeat([]byte("1"), 70_000)))
	f.Add(appendFrame(appendClose(nil, 1000), binaryFrame, nil))
	f.Add(frames[:len(frames)-1])
	f.Add([]byte{0x81, 0x80, 0, 0, 0, 0})
	f.Add([]byte{0x81, 126, 0, 5, 1, 2, 3, 4, 5})
	f.Add([]byte{0x81, 127, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		var again []byte
		rest := b
		for {
			kind, payload, r, ok := nextFrame(rest)
			if !ok {
				break
			}
			again = appendFrame(again, kind, payload)
			rest = r
		}
		if !bytes.Equal(append(again, rest...), b) {
			t.Fatalf("%x became %x and %x", b, again, rest)
		}
	})
}
