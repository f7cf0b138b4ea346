package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/valyala/fasthttp/fasthttputil"

	"exchange/gateway"
)

var ClockText = regexp.MustCompile(`^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`)

// StatusPage is the tested part of the page.
type StatusPage struct {
	Version, Started, Time string
	Sequence               uint64
	Ready                  bool
	Cluster                *struct{}
	Maintenance            struct {
		On             bool
		Since, Message string
	}
	Halted []struct{ Pair, Since string }
	Frozen struct {
		Accounts int
		First    []string
	}
	Held struct {
		Accounts int
		First    []string
	}
	Closed  int `json:"closed_accounts"`
	Pending struct {
		New, Verified int
		Oldest        string
	} `json:"pending_withdraws"`
	Switches int
	Open     int `json:"open_orders"`
	Backup   *struct {
		OK     bool
		Result string
	} `json:"last_backup"`
	Audit *struct {
		OK     bool
		Result string
	} `json:"last_audit"`
}

// IsSet wants the page to show what TestTheStatusShowsWhatOperatorsSet sets.
func (p *StatusPage) IsSet(h *Exchange, when, since string) {
	h.T.Helper()
	if !p.Maintenance.On || p.Maintenance.Message != "At 9." || p.Maintenance.Since != since ||
		!ClockText.MatchString(since) || len(p.Halted) != len(h.Engine.Pairs()) ||
		p.Switches != 1 || p.Frozen.Accounts != 2 ||
		!slices.Equal(p.Frozen.First, []string{"alice", "carol"}) {
		h.T.Errorf("%s: %+v", when, p)
	}
	for i, x := range p.Halted {
		if x.Pair != h.Engine.Market(uint16(i+1)).Name || !ClockText.MatchString(x.Since) {
			h.T.Errorf("%s: %+v is halted", when, x)
		}
	}
}

// AsOperator gives a function that asks the operator's listener of a gateway, with the right token.
func AsOperator(t testing.TB, g *gateway.Gateway) func(method, path, body string,
	headers ...string) Answer {
	l := fasthttputil.NewInmemoryListener()
	go g.ServeOperator(fromHere{l}) //nolint:errcheck // ends with the listener
	t.Cleanup(func() { l.Close() })
	h := &Exchange{T: t, Listener: l}
	return func(method, path, body string, headers ...string) Answer {
		t.Helper()
		head := method + " " + path +
			" HTTP/1.1\r\nHost: operator\r\nConnection: close\r\nContent-Length: " +
			fmt.Sprint(len(body)) + "\r\n"
		if len(headers) == 0 {
			headers = []string{"Authorization: Bearer " + OperatorToken}
		}
		for _, line := range headers {
			if line != "" {
				head += line + "\r\n"
			}
		}
		a := h.Raw(method, head+"\r\n"+body)
		OperatorDocument().Fits(t, method, path, body, a)
		return a
	}
}

// fromHere has connections of this machine: for these, wrong tokens are not counted.
type fromHere struct{ *fasthttputil.InmemoryListener }

func (l fromHere) Accept() (net.Conn, error) {
	c, err := l.InmemoryListener.Accept()
	if err != nil {
		return nil, err
	}
	return &elsewhere{c, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}, nil
}

var MadeKey = regexp.MustCompile(`"key":"([0-9a-f]{32})"(.*),"secret":"([0-9a-f]{64})"`)

// Says checks an operator's answer as a whole; a new key and secret are shown as K and S.
func Says(t testing.TB, what string, a Answer, status int, body string) {
	t.Helper()
	if got := string(a.Header.ContentType()); got != "application/json" {
		t.Errorf("%s: Content-Type %s", what, got)
	}
	if got := MadeKey.ReplaceAllString(a.Body, `"key":"K"$2,"secret":"S"`); a.Status != status ||
		got != body+"\n" {
		t.Errorf("%s:\n got %d %swant %d %s", what, a.Status, got, status, body)
	}
}

func Refusal(text string) string {
	b, err := json.Marshal(map[string]string{"error": text})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// A Captured log can be searched while it is written.
type Captured struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (c *Captured) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

func (c *Captured) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// Moderated is trading with two withdrawals of carol's: 1 is new, 2 is verified.
func Moderated(t *testing.T) *Exchange {
	h := Traded(t)
	h.AccountAt("carol", "carol@example.org")
	h.Deposit("carol", "10", "BTC", "to-carol")
	for range 2 {
		h.Post("carol", "/api/v1/withdraw", "address=x&amount=1&currency=BTC")
	}
	h.Post("carol", "/api/v1/withdraw-confirm", "code="+h.Code(2)+"&withdraw=2").Must(t, 200)
	return h
}

// Audit wants the operator's audit to find these differences and no others.
func (h *Exchange) Audit(differences ...string) {
	h.T.Helper()
	a := AsOperator(h.T, h.Gateway)("POST", "/operator/v1/audit", "{}")
	lines := strings.Split(strings.TrimSpace(a.Body), "\n")
	got := Decode[struct {
		End struct{ Differences []string }
	}](h.T, Answer{a.Status, a.Header, lines[len(lines)-1]})
	if !slices.Equal(got.End.Differences, differences) {
		h.T.Errorf("the audit finds %q, want %q", got.End.Differences, differences)
	}
}
