//go:build prove && linux

package processes

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/prove/exchangetest"
)

// An attack is a hostile peer's traffic at a port. It is played many times. Each time its
// connection must end, or be answered with the words of a refusal.
type attack struct {
	peer, says string
	play       func(f *foe) error
	log        string // words in the log of the process that is attacked, between |
	times      int    // 0: often
}

const (
	// often is the number of plays of a fast attack.
	often = 4
	// foesAtOnce bounds their concurrency: TLS takes processor time from the nodes.
	foesAtOnce = 4
)

// A stronghold is the attacked processes and ports, and the state that must not change.
type stronghold struct {
	*cluster
	*issuer
	w            *world
	led, f, g, o *exchangetest.Server // f and g follow, o is the observer
	ways         map[way]*relay
	before       clusterView
	members      []*exchangetest.Server // all processes
	took         map[*exchangetest.Server]usage
	foes         int // number of addresses used
}

// Hostile peers attack every port of a cluster and of its observer, while traders trade. Their
// connections end, or are refused with words, and nothing changes. Attacks with a valid certificate
// are tested in the packages concerned.
func TestHostilePeersChangeNothing(t *testing.T) {
	v := newStronghold(t)
	v.w.load(30, func() {
		v.rest()
		for _, x := range []struct {
			what   string
			server *exchangetest.Server
			list   []attack
		}{
			{"the nodes' port of the node that leads", v.led, v.ofNodes(v.led, v.f)},
			{"the nodes' port of a node that follows", v.f, v.ofNodes(v.f, v.g)},
			{"clients of the node that leads", v.led, v.ofClients(v.led.Listen, v.led)},
			{"clients of the observer", v.o, v.ofClients(v.o.Listen, v.o)},
			{"operators of the node that leads", v.led, v.ofOperators(v.led)},
			{"operators of the observer", v.o, v.ofOperators(v.o)},
		} {
			v.attacked(x.what, x.server, x.list)
		}
	})
	v.recovers()
	v.w.compare()
	v.same()
	clean(t, v.led)
	out := v.command(v.led, "account", "list")
	if strings.Contains(out, "mallory") {
		t.Errorf("an account was made:\n%s", out)
	}
}

func newStronghold(t *testing.T) *stronghold {
	t.Helper()
	v := &stronghold{ways: map[way]*relay{}, took: map[*exchangetest.Server]usage{}}
	v.cluster = prepareCluster(t, relays(t, v.ways))
	v.runs("EXCHANGE_CLUSTER_OBSERVERS=o1", "EXCHANGE_TIMING_READ_TIMEOUT_MS=3000",
		"EXCHANGE_CLUSTER_TICK_MS=500")
	v.issuer = issuerOf(t, v.folder)
	v.led = v.leader(nil)
	others := v.others(v.led)
	v.f, v.g = others[0], others[1]
	v.w = opened(t, v.led, 2)
	for _, s := range others {
		v.follows(s, v.led)
	}
	v.o = v.observer("o1")
	v.o.Env = append(v.o.Env, "EXCHANGE_TIMING_READ_TIMEOUT_MS=3000")
	v.o.Start()
	v.members = append(slices.Clone(v.nodes), v.o)
	v.w.traders[1].s = v.o
	return v
}

// rest records the state before the attacks.
func (v *stronghold) rest() {
	var err error
	if v.before, err = v.view(v.led); err != nil {
		v.cluster.t.Fatal(err)
	}
	for _, s := range v.members {
		v.took[s] = v.usage(s)
	}
}

// A usage is a process's use of resources.
type usage struct{ heap, goroutines, files int }

// usage collects garbage first.
func (v *stronghold) usage(s *exchangetest.Server) usage {
	ask := func(path string) string {
		req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		defer fasthttp.ReleaseRequest(req)
		defer fasthttp.ReleaseResponse(resp)
		req.SetRequestURI("http://" + s.Operator + path)
		req.Header.Set("Authorization", "Bearer "+s.Token())
		exchangetest.Eventually(v.cluster.t, path+" is answered", func() bool {
			return s.Client.Do(req, resp) == nil && resp.StatusCode() == 200
		})
		return string(resp.Body())
	}
	ask("/debug/pprof/heap?gc=1")
	metrics := ask("/metrics")
	number := func(name string) int {
		m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(metrics)
		if m == nil {
			v.cluster.t.Fatalf("there is no %s", name)
		}
		x := must[float64](v.cluster.t)(strconv.ParseFloat(m[1], 64))
		return int(x)
	}
	return usage{number("go_memstats_heap_inuse_bytes"), number("go_goroutines"),
		descriptors(v.cluster.t, s)}
}

// descriptors returns the number of a process's open descriptors.
func descriptors(t *testing.T, s *exchangetest.Server) int {
	t.Helper()
	list := must[[]os.DirEntry](t)(os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.Pid())))
	return len(list)
}

// attacked plays attacks on a process concurrently, each from an address of its own, and expects
// the process to be unaffected.
func (v *stronghold) attacked(what string, s *exchangetest.Server, list []attack) {
	t := v.cluster.t
	t.Helper()
	acks := v.w.acks.Load()
	errs := make([]error, len(list))
	foes := make([]*foe, len(list))
	turns := make(chan struct{}, foesAtOnce)
	var all sync.WaitGroup
	for i, x := range list {
		v.foes++
		foes[i] = &foe{issuer: v.issuer, own: fmt.Sprintf("127.7.%d.%d", v.foes/200, 1+v.foes%200)}
		if s != v.o {
			_, foes[i].address, _ = strings.Cut(v.entry(s), "=")
			foes[i].server = v.identity("voter", v.name(s))
		}
		all.Go(func() {
			if x.times != 1 {
				turns <- struct{}{}
				defer func() { <-turns }()
			}
			errs[i] = x.played(foes[i], s)
		})
	}
	all.Wait()
	for i, x := range list {
		if errs[i] != nil {
			t.Errorf("%s: %s: %s: %v", what, x.peer, x.says, errs[i])
		}
	}
	exchangetest.Eventually(t, "traders trade on after "+what, func() bool {
		return v.w.acks.Load() > acks+20
	})
	for _, s := range v.members {
		exchangetest.Eventually(t, "a process serves after "+what, func() bool {
			return v.status(s, "/readyz") == 200 && v.status(s, "/api/v1/ticker/") == 200
		})
		if bug := regexp.MustCompile(`(?m)^.*(BUG|panic|FATAL|ALARM|goroutine \d+).*$`).FindString(
			s.Log()); bug != "" {
			t.Errorf("after %s: %s", what, bug)
		}
		v.calm(what, s)
	}
	now, err := v.view(v.led)
	if err != nil || now.Leader != v.before.Leader || now.Term != v.before.Term {
		t.Errorf("after %s: %+v, and before %+v: %v", what, now, v.before, err)
	}
}

// played repeats an attack on a process until its log shows it: the line may be suppressed after
// similar ones.
func (x *attack) played(f *foe, s *exchangetest.Server) error {
	late := time.Now().Add(2 * time.Minute)
	for i := 0; i < cmp.Or(x.times, often) || !saidOf(s.Log(), x.log); i++ {
		if err := x.play(f); err != nil {
			return err
		}
		if time.Now().After(late) {
			return fmt.Errorf("the log does not say %q", x.log)
		}
	}
	return nil
}

// saidOf reports whether one line of a log contains all words, separated by |.
func saidOf(log, words string) bool {
	for line := range strings.Lines(log) {
		has := true
		for word := range strings.SplitSeq(words, "|") {
			has = has && strings.Contains(line, word)
		}
		if has {
			return true
		}
	}
	return false
}

var (
	lineTime = regexp.MustCompile(`time=(\S+?)\.\d+`)
	ports    = regexp.MustCompile(`:\d+`)
)

// calm expects no warning twice in the same second, ignoring numbers: two may be a second apart,
// and round to the same.
func (v *stronghold) calm(what string, s *exchangetest.Server) {
	t := v.cluster.t
	t.Helper()
	seen := map[string]int{}
	for line := range strings.Lines(s.Log()) {
		at := lineTime.FindStringSubmatch(line)
		if at == nil || !strings.Contains(line, "level=WARN") {
			continue
		}
		_, text, _ := strings.Cut(line, "level=WARN")
		text, _, _ = strings.Cut(text, " left_out=")
		key := at[1] + ports.ReplaceAllString(text, "")
		if seen[key]++; seen[key] == 3 {
			t.Errorf("after %s: the log repeats: %s", what, line)
		}
	}
}

// recovers expects the memory and descriptors of all processes to return to the earlier values,
// except for the growth by trade.
func (v *stronghold) recovers() {
	most := usage{heap: 64 << 20, goroutines: 60, files: 40} // more than before
	for _, s := range v.members {
		before, now := v.took[s], usage{}
		exchangetest.Eventually(v.cluster.t, "a process has given back what foes have taken",
			func() bool {
				now = v.usage(s)
				return now.heap <= before.heap+most.heap && now.files <= before.files+most.files &&
					now.goroutines <= before.goroutines+most.goroutines
			})
		v.cluster.t.Logf("before %+v, after %+v", before, now)
	}
}

// greets is an attack that sends a greeting over TLS.
func greets(cert *tls.Certificate, hello []byte) func(*foe) error {
	return func(f *foe) error {
		conn, err := f.secure(cert)
		got, err := f.says(conn, err, hello)
		if err == nil && got != "" {
			err = fmt.Errorf("it answers %.100q", got)
		}
		return err
	}
}

// ofNodes are attacks on the nodes' port of target. They use the name of another node, as.
func (v *stronghold) ofNodes(target, as *exchangetest.Server) []attack {
	const refused = "a connection is refused"
	name := v.identity("voter", v.name(as))
	own, stranger := v.issue(name, nil), v.identity("voter", "z")
	hello := framed("f\x02" + name)
	record := v.ways[way{v.name(as), v.name(target)}].recorded()
	valid := func(from, to time.Duration) func(*foe) error {
		return greets(v.issue(name, func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(from), time.Now().Add(to)
		}), hello)
	}
	plain := func(text []byte) func(*foe) error {
		return func(f *foe) error {
			conn, err := f.dial()
			_, err = f.says(conn, err, text)
			return err
		}
	}
	says := func(pieces ...[]byte) func(*foe) error {
		return func(f *foe) error {
			conn, err := f.secure(own)
			_, err = f.says(conn, err, pieces...)
			return err
		}
	}
	list := []attack{
		{"without TLS", "a greeting", plain(hello),
			refused + "|first record does not look like a TLS handshake", 0},
		{"without TLS", "a connection of a node again, as it was", plain(record),
			refused + "|tls: ", 0},
		{"without TLS", "nothing, a thousand times", func(f *foe) error {
			return f.crowd(1000, true, func() error { // the nodes' connections come through
				return greets(v.issue(stranger, nil), framed("d\x02"+stranger))(f)
			})
		}, refused + "|too many connections wait to be identified", 1},
		{"without TLS", "a byte at a time", func(f *foe) error {
			conn, err := f.dial()
			_, err = f.slowly(conn, err, []byte{22, 3, 1, 64, 0}, []byte{1})
			return err
		}, refused + "|i/o timeout", 1},
		{"TLS 1.2", "a greeting", func(f *foe) error {
			conn, err := f.dial()
			if err != nil {
				return err
			}
			_, err = f.says(tls.Client(conn, &tls.Config{RootCAs: f.roots, ServerName: f.server,
				MaxVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*own}}), nil, hello)
			return err
		}, refused + "|unsupported versions", 0},
		{"no certificate", "a greeting", greets(nil, hello),
			refused + "|client didn't provide a certificate", 0},
		{"an expired certificate", "a greeting", valid(-2*time.Hour, -time.Hour),
			refused + "|expired or is not yet valid", 0},
		{"a certificate from tomorrow on", "a greeting", valid(time.Hour, 2*time.Hour),
			refused + "|expired or is not yet valid", 0},
		{"a certificate for servers", "a greeting", greets(v.issue(name,
			func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] }), hello),
			refused + "|incompatible key usage", 0},
		{"a node that is no member", "a greeting",
			greets(v.issue(stranger, nil), framed("f\x02"+stranger)),
			refused + "|node z is not a node of this cluster", 0},
		{"an observer", "another one's greeting", greets(v.issue(v.identity("observer", "o3"), nil),
			framed("o\x02"+v.identity("observer", "o1"))),
			refused + "|not that of observer o1", 0},
		{"a node", "a frame of 1 GB", says(hello, []byte{64, 0, 0, 0}),
			"the connection of a node was ended|a message of 107", 0},
	}
	const noNode, noKind = "it is not a node of this cluster", "it is not for a service"
	for text, why := range map[string]string{"": noKind, "f\x63" + name: "version 99",
		"x\x02" + name: noKind, "garbage\x00\xff": noKind, "f\x02..": noNode,
		"f\x02" + v.name(as) + ".voter.x.exchange": noNode, strings.Repeat("x", 256): noKind} {
		list = append(list, attack{"a node", fmt.Sprintf("%.20q", text), says(framed(text)),
			refused + "|" + why, 0})
	}
	if target != v.led {
		return list
	}
	const useless = "malformed greeting from another node|node="
	calls := framed("d\x02" + name)
	return append(list,
		attack{"a node", "a purpose that is none", says(calls, framed("x\x01 and more")),
			useless + v.name(as), 0},
		attack{"a node", "an operator's request of 1 GB", says(calls, framed("o\x01"), []byte(
			"POST /operator/v1/accounts HTTP/1.1\r\nHost: x\r\n"+
				"Content-Length: 1073741824\r\n\r\n")), "", 0},
		attack{"a node", "commands of another version", says(calls, framed("c\x63")),
			useless + "|version 99", 0},
		attack{"a node", "commands under other rules", says(calls, framed("c\x04other rules")),
			"", 0},
		attack{"a node", "a greeting of 1 GB", says(calls, []byte{64, 0, 0, 0}),
			useless + "|of 107", 0})
}

// talks is an attack on a plain listener, whose answer contains some words, or none.
func talks(address, want string, pieces ...string) func(*foe) error {
	return func(f *foe) error {
		d := *f
		d.address = address
		conn, err := d.dial()
		var list [][]byte
		for _, p := range pieces {
			list = append(list, []byte(p))
		}
		got, err := d.says(conn, err, list...)
		if err == nil && !strings.Contains(got, want) {
			err = fmt.Errorf("it answers %.300q, want %q", got, want)
		}
		return err
	}
}

// ofHTTP are attacks on each listener of HTTP.
func (v *stronghold) ofHTTP(address string, serves func() error) []attack {
	at := func(f *foe) *foe {
		d := *f
		d.address = address
		return &d
	}
	return []attack{
		{"a stranger", "garbage", talks(address, "400 Bad Request", "\x00\xff\x01\r\n\r\n"), "", 0},
		{"a stranger", "a head without an end", talks(address, "HTTP/1.1 431",
			"GET / HTTP/1.1\r\nX: "+strings.Repeat("x", 1<<20)), "", 0},
		{"a stranger", "a head, a byte at a time", func(f *foe) error {
			conn, err := at(f).dial()
			_, err = f.slowly(conn, err, []byte("GET / HTTP/1.1\r\nX: "), []byte("x"))
			return err
		}, "", 1},
		{"a stranger", "nothing, a thousand times", func(f *foe) error {
			return at(f).crowd(1000, false, serves)
		}, "", 1},
	}
}

// ofClients are attacks on the public listener.
func (v *stronghold) ofClients(address string, s *exchangetest.Server) []attack {
	const order = "POST /api/v1/order/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
	form := "amount=1&pair=BTC_USDT&price=1&type=buy"
	return append(v.ofHTTP(address, func() error {
		if got := v.status(s, "/api/v1/ticker/"); got != 200 {
			return fmt.Errorf("it answers others with %d", got)
		}
		return nil
	}),
		attack{"a stranger", "an order of 1 GB", talks(address, "HTTP/1.1 413", order+
			"Content-Length: 1073741824\r\n\r\n"), "", 0},
		attack{"a stranger", "an order without a key", talks(address, "HTTP/1.1 401",
			fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", order, len(form), form)), "", 0},
		attack{"a stranger", "an operator's request", talks(address, "HTTP/1.1 404",
			"POST /operator/v1/accounts HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+
				"Content-Length: 0\r\n\r\n"), "", 0})
}

// ofOperators are attacks on the operators' listener.
func (v *stronghold) ofOperators(s *exchangetest.Server) []attack {
	const post = "POST /operator/v1/accounts HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
	const body = "Content-Length: 18\r\n\r\n" + `{"name":"mallory"}`
	return append(v.ofHTTP(s.Operator, func() error {
		_, err := v.view(s)
		return err
	}),
		attack{"a stranger", "a command without the token", talks(s.Operator, "HTTP/1.1 401",
			post+body), "", 0},
		attack{"a stranger", "a command of 1 GB", talks(s.Operator, "HTTP/1.1 4", post+
			"Content-Length: 1073741824\r\n\r\n"), "", 0},
		attack{"a stranger", "a question for the memory", talks(s.Operator, "HTTP/1.1 401",
			"GET /debug/pprof/heap HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), "", 0})
}
