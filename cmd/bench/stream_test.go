package main

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"exchange/gateway/sign"
	"exchange/loadtest/generator"
)

// frames makes frames of a server.
func frames(texts ...string) (b []byte) {
	for _, text := range texts {
		switch n := len(text); {
		case n < 126:
			b = append(b, 0x81, byte(n))
		case n < 1<<16:
			b = append(b, 0x81, 126, byte(n>>8), byte(n))
		default:
			b = append(b, 0x81, 127, 0, 0, 0, 0, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
		}
		b = append(b, text...)
	}
	return b
}

func TestSubscribersCountEventsHoweverTheyAreCut(t *testing.T) {
	long := `42["depth.diff","` + string(bytes.Repeat([]byte{'x'}, 300)) + `"]`
	whole := `42["depth.diff","` + string(bytes.Repeat([]byte{'x'}, 70_000)) + `"]`
	all := frames(`0{"sid":"x"}`, `40{"sid":"y"}`, `42["subscribe.success",{}]`, whole,
		`42["trades",{}]`, `42["e"]`, long, `42["subscribe.success",{}]`, `42["trades",{}]`)
	for _, piece := range []int{1, 3, 7, 30, 1000, len(all)} {
		s, c := &subscribers{opening: 1}, &subscriber{awaited: 2}
		for rest := all; len(rest) > 0; {
			b := rest[:min(piece, len(rest))]
			rest = rest[len(b):]
			b = append(c.kept, b...)
			c.kept = nil
			s.frames(c, b)
		}
		if s.failed != nil || s.seen.Messages != 5 || c.awaited != 0 || s.opening != 0 ||
			len(c.kept) > 0 || c.skip > 0 {
			t.Errorf("pieces of %d: %+v, %+v, %v", piece, s.seen, c, s.failed)
		}
	}
}

func TestSubscribersSayWhatTheyWereTold(t *testing.T) {
	for _, text := range []string{`44{"message":"no"}`, `42["subscribe.error",{}]`, `1`, `41`} {
		s := &subscribers{}
		if s.frames(&subscriber{}, frames(text)); (s.failed == nil) != (text == `41`) {
			t.Errorf("%s: %v", text, s.failed)
		}
	}
}

func TestQuestionsToHelpersKeepTheirFields(t *testing.T) {
	w := wish{Do: "open", Address: "x:1", Groups: []audience{{2, []string{"trades", "ticker"}}},
		Each: 3, Messages: 4, Within: 0.5, Polls: 6}
	b, err := json.Marshal(w)
	var got wish
	if err == nil {
		err = json.Unmarshal(b, &got)
	}
	if err != nil || !reflect.DeepEqual(got, w) || bytes.ContainsRune(b, '\n') {
		t.Errorf("%s, %+v, %v", b, got, err)
	}
}

// A notedPoller keeps what is written.
type notedPoller struct {
	generator.Poller
	written []byte
}

func (p *notedPoller) Write(_ int, b []byte) error {
	p.written = append(p.written, b...)
	return nil
}

func TestSubscribersOfAnAccountLogIn(t *testing.T) {
	p := &notedPoller{}
	s, c := &subscribers{poll: p, opening: 1},
		&subscriber{awaited: 1, login: &listener{"the-key", "the-secret"}}
	said := func(packet string) {
		t.Helper()
		if want := generator.AppendFrame(nil, []byte(packet)); !bytes.Equal(p.written, want) ||
			s.failed != nil {
			t.Errorf("%q, %v, want %q", p.written, s.failed, want)
		}
		p.written = nil
	}
	challenge := string(bytes.Repeat([]byte("c0"), 32))
	signature := sign.New([]byte("the-secret")).Sign(nil, []byte("login\nthe-key\n"+challenge))
	s.frames(c, frames(`430[{"challenge":"`+challenge+`"}]`))
	said(`421["login",{"key":"the-key","sign":"` + string(signature) + `"}]`)
	s.frames(c, frames(`431[{"status":200,"body":{"permissions":["read","trade"]}}]`))
	said(`422["own.subscribe"]`)
	s.frames(c, frames(`432[{"status":200,"body":{"resumed":false}}]`,
		`42["own",{"snapshot":true,"sequence":1,"prev":null}]`, `42["own",{"sequence":2}]`))
	if s.opening != 0 || s.seen.Messages != 1 {
		t.Errorf("%+v", s)
	}
	s, c = &subscribers{poll: p}, &subscriber{awaited: 1, login: c.login}
	if s.frames(c, frames(`431[{"status":401,"body":{"detail":"no"}}]`)); s.failed == nil {
		t.Error("a refused login is taken for one")
	}
}
