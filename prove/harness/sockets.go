package harness

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"exchange/gateway/edge"
	"exchange/gateway/sign"
)

// Asks emits an event and returns its acknowledgement.
func (p *Polled) Asks(name, args string) string {
	p.H.T.Helper()
	p.asked++
	p.Say(fmt.Sprintf(`42%d["%s"%s]`, p.asked, name, args))
	head := fmt.Sprintf("43%d[", p.asked)
	p.Receives(head)
	_, rest, _ := strings.Cut(p.Received, "\n")
	ack, _, _ := strings.Cut(rest, "\x1e")
	p.Received = strings.Replace(p.Received, ack, "", 1)
	return strings.TrimSuffix(strings.TrimSpace(ack), "]")
}

// LogsIn asks for a challenge and answers it.
func (p *Polled) LogsIn(key, secret string) string {
	p.H.T.Helper()
	var a struct{ Challenge string }
	if err := json.Unmarshal([]byte(p.Asks("challenge", "")), &a); err != nil ||
		len(a.Challenge) != 64 {
		p.H.T.Fatal(a, err)
	}
	return p.Asks("login", fmt.Sprintf(`,{"key":"%s","sign":"%s"}`, key,
		sign.New([]byte(secret)).Sign(nil, []byte("login\n"+key+"\n"+a.Challenge))))
}

// LoggedIn returns a client of the stream that is logged in with the key of an account.
func (h *Exchange) LoggedIn(account string) *Polled {
	h.T.Helper()
	p := h.Polled(edge.StreamPath)
	if got := p.LogsIn("key-"+account, "secret-"+account); !strings.HasPrefix(got,
		`{"status":200,`) {
		h.T.Fatal(got)
	}
	p.Received = ""
	return p
}

// A Polled client speaks Engine.IO by polling.
type Polled struct {
	H        *Exchange
	Path     string // with its session
	Received string // not waited for yet
	asked    int    // questions until now
}

func (h *Exchange) Polled(path string) *Polled {
	h.T.Helper()
	p := &Polled{H: h, Path: path + "?EIO=4&transport=polling"}
	a := h.Do("GET", p.Path, "", "")
	var open struct{ SID string }
	if a.Status != 200 || !strings.HasPrefix(a.Body, "0{") ||
		json.Unmarshal([]byte(a.Body[1:]), &open) != nil {
		h.T.Fatalf("%d %s", a.Status, a.Body)
	}
	p.Path += "&sid=" + open.SID
	p.Say("40")
	return p
}

func (p *Polled) Say(packets string) {
	p.H.T.Helper()
	if a := p.H.Do("POST", p.Path, "text/plain", packets); a.Status != 200 || a.Body != "ok" {
		p.H.T.Fatalf("%d %s", a.Status, a.Body)
	}
}

// Receives polls until each of these words arrived. Words that came with the last of them count for
// the next call.
func (p *Polled) Receives(words ...string) {
	p.H.T.Helper()
	for {
		words = slices.DeleteFunc(words, func(w string) bool {
			before, after, ok := strings.Cut(p.Received, w)
			if ok {
				p.Received = before + "\n" + after
			}
			return ok
		})
		if len(words) == 0 {
			return
		}
		a := p.H.Do("GET", p.Path, "", "")
		if a.Status != 200 {
			p.H.T.Fatalf("%d %s, after %s", a.Status, a.Body, p.Received)
		}
		if a.Body == "2" {
			p.Say("3")
		}
		p.Received += a.Body
	}
}
