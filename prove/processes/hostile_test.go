//go:build prove && linux

package processes

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"exchange/prove/exchangetest"
)

// An attack is what a hostile peer says at a port. It is played many times. Each time its
// connection must end, or be answered with the words of a refusal.
type attack struct {
	peer, says string
	play       func(f *foe) error
	log        string // words in the log of the process that is attacked, between |
	times      int    // 0: often
}

const (
	// often is how many times an attack is played that takes no time.
	often = 4
	// foesAtOnce is how many of those are played at once: TLS takes the processors of the nodes.
	foesAtOnce = 4
)

// A stronghold is the processes and ports that are attacked, and what may not change meanwhile.
type stronghold struct {
	*cluster
	*issuer
	w            *world
	led, f, g, o *exchangetest.Server // f and g follow, o is the observer
	other        *issuer              // the authority of another cluster
	ways         map[[2]string]*tapped
	before       knows
	members      []*exchangetest.Server // all processes
	took         map[*exchangetest.Server]usage
	foes         int // so many had addresses
}

// Hostile peers of every kind attack every port of a cluster and of its observer, while traders
// trade. Their connections end, or are refused with words, and nothing changes.
func TestHostilePeersChangeNothing(t *testing.T) {
	v := newStronghold(t)
	v.w.load(30, func() {
		v.rest()
		for _, x := range []struct {
			what   string
			server *exchangetest.Server
			list   []attack
		}{
			{"the nodes' port of the node that leads", v.led, v.ofNodes(v.led, v.f, v.g)},
			{"the nodes' port of a node that follows", v.f, v.ofNodes(v.f, v.g, v.led)},
			{"frames to the node that leads", v.led, v.ofFrames(v.f, v.g)},
			{"frames to a node that follows", v.f, v.ofFrames(v.g, v.led)},
			{"observers at the node that leads", v.led, v.ofObservers(v.led)},
			{"observers at a node that follows", v.f, v.ofObservers(v.f)},
			{"calls of the node that leads", v.led, v.ofCalls(v.led, v.f)},
			{"calls of a node that follows", v.f, v.ofCalls(v.f, v.g)},
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
	if err := v.led.Audit(); err != nil {
		t.Error(err)
	}
	out := v.command(v.led, "account", "list")
	if strings.Contains(out, "mallory") {
		t.Errorf("an account was made:\n%s", out)
	}
}

func newStronghold(t *testing.T) *stronghold {
	t.Helper()
	v := &stronghold{ways: map[[2]string]*tapped{}, took: map[*exchangetest.Server]usage{}}
	v.cluster = prepareCluster(t, func(from, to, address string) string {
		w := newTapped(t, address)
		v.ways[[2]string{from, to}] = w
		return w.listen.Addr().String()
	})
	for _, s := range v.nodes {
		s.Env = append(s.Env, "EXCHANGE_CLUSTER_OBSERVERS=o1,o3",
			"EXCHANGE_TIMING_READ_TIMEOUT_MS=3000", "EXCHANGE_CLUSTER_TICK_MS=500")
		s.Run()
	}
	v.issuer = issuerOf(t, v.folder)
	v.other = issuerOf(t, prepareCluster(t, nil).folder)
	v.led = v.leader(nil)
	others := v.others(v.led)
	v.f, v.g = others[0], others[1]
	v.w = &world{t: t, s: v.led}
	v.w.open(2, newRandom(t))
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

// rest notes what there is before the attacks.
func (v *stronghold) rest() {
	var err error
	if v.before, err = v.asks(v.led); err != nil {
		v.cluster.t.Fatal(err)
	}
	for _, s := range v.members {
		v.took[s] = v.usage(s)
	}
}

// A usage is what a process takes.
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
		x, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			v.cluster.t.Fatal(err)
		}
		return int(x)
	}
	return usage{number("go_memstats_heap_inuse_bytes"), number("go_goroutines"),
		descriptors(v.cluster.t, s)}
}

// descriptors returns the number of a process's open descriptors.
func descriptors(t *testing.T, s *exchangetest.Server) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// attacked plays attacks on a process at the same time, each from an address of its own, and wants
// all to go on as before.
func (v *stronghold) attacked(what string, s *exchangetest.Server, list []attack) {
	t := v.cluster.t
	t.Helper()
	acks := v.w.acks.Load()
	errs := make([]error, len(list))
	foes := make([]*foe, len(list))
	turns := make(chan struct{}, foesAtOnce)
	if strings.HasPrefix(what, "frames") { // a node has one connection for them
		turns = make(chan struct{}, 1)
	}
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
	now, err := v.asks(v.led)
	if err != nil || now.Leader != v.before.Leader || now.Term != v.before.Term {
		t.Errorf("after %s: %+v, and before %+v: %v", what, now, v.before, err)
	}
}

// played plays an attack on a process, and again until its log says so: the line may have been left
// out, because others were like it.
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

// saidOf reports whether one line of a log has all words, which | separates.
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

// calm wants no warning twice in the same second of the clock, but for its numbers: two may be a
// second apart, and round to the same.
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

// recovers wants the memory and the descriptors of all processes to come back to what they were,
// but for what trade has added meanwhile.
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

// The greetings of the nodes' port.
const (
	helloFrames  = "exLINK1 "
	helloCopy    = "exCOPY2 nonce 0 "
	helloCall    = "exCALL1 "
	helloObserve = "exOBSV1 "
)

func (v *stronghold) voter(name string) *tls.Certificate {
	return v.issue(v.identity("voter", name), nil)
}

func (v *stronghold) observes(name string) *tls.Certificate {
	return v.issue(v.identity("observer", name), nil)
}

// greets is an attack that sends pieces over TLS.
func greets(cert *tls.Certificate, pieces ...[]byte) func(*foe) error {
	return func(f *foe) error {
		conn, err := f.secure(cert)
		got, err := f.says(conn, err, pieces...)
		if err == nil && got != "" {
			err = fmt.Errorf("it answers %.100q", got)
		}
		return err
	}
}

// ofNodes are attacks on the nodes' port of target. They have the certificate of another node, as.
// third is the one that is left.
func (v *stronghold) ofNodes(target, as, third *exchangetest.Server) []attack {
	const refused, stranger = "a connection is refused", "it is not a node of this cluster"
	own, name, its := v.voter(v.name(as)), v.identity("voter", v.name(as)), v.name(third)
	posing := v.identity("voter", its)
	hello := framed(helloFrames + name)
	record := v.ways[[2]string{v.name(as), v.name(target)}].recorded()
	list := []attack{
		{"without TLS", "a greeting", func(f *foe) error {
			conn, err := f.dial()
			_, err = f.says(conn, err, hello)
			return err
		}, refused + "|first record does not look like a TLS handshake", 0},
		{"without TLS", "nothing, a thousand times", func(f *foe) error {
			return f.crowd(1000, true, func() error {
				d := *f // the observer's and the nodes' connections come through
				d.server = f.server
				return greets(v.voter("z"), framed(helloCall+v.identity("voter", "z")))(&d)
			})
		}, refused + "|too many connections wait to be known", 1},
		{"without TLS", "a byte at a time", func(f *foe) error {
			conn, err := f.dial()
			_, err = f.slowly(conn, err, []byte{22, 3, 1, 64, 0}, []byte{1})
			return err
		}, refused + "|i/o timeout", 1},
		{"without TLS", "a connection of a node again, as it was", func(f *foe) error {
			conn, err := f.dial()
			_, err = f.says(conn, err, record)
			return err
		}, refused + "|tls: ", 0},
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
		{"another cluster's authority", "a greeting", greets(v.other.issue(name, nil), hello),
			refused + "|signed by unknown authority", 0},
		{"an expired certificate", "a greeting", greets(v.issue(name, func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
		}), hello), refused + "|expired or is not yet valid", 0},
		{"a certificate from tomorrow on", "a greeting",
			greets(v.issue(name, func(c *x509.Certificate) {
				c.NotBefore, c.NotAfter = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
			}), hello), refused + "|expired or is not yet valid", 0},
		{"a certificate for servers", "a greeting", greets(v.issue(name,
			func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] }), hello),
			refused + "|incompatible key usage", 0},
		{"a name of another cluster", "a greeting", greets(v.issue(v.name(as)+".voter.x.exchange",
			nil), framed(helloFrames+v.name(as)+".voter.x.exchange")),
			refused + "|not permitted", 0},
		{"a node that is no member", "a greeting",
			greets(v.voter("d"), framed(helloFrames+v.identity("voter", "d"))),
			refused + "|node d is not a node of this cluster", 0},
		{"the node itself", "a greeting", greets(v.voter(v.name(target)),
			framed(helloFrames+v.identity("voter", v.name(target)))),
			refused + "|is not a node of this cluster", 0},
		{"a node", "a greeting as an observer", greets(own, framed(helloObserve+
			v.identity("observer", v.name(as)))), refused + "|not that of observer", 0},
	}
	for _, kind := range []string{helloFrames, helloCopy, helloCall} {
		list = append(list, attack{"a node", "another one's greeting " + kind,
			greets(own, framed(kind+posing)), refused + "|not that of voter " + its, 0})
		for _, as := range []string{"o3", its} {
			list = append(list, attack{"observer " + as, "a node's greeting " + kind,
				greets(v.observes(as), framed(kind+v.identity("voter", as)),
					framed("a frame")), refused + "|not that of voter " + as, 0})
		}
	}
	for _, says := range []string{"", "exLINK2 " + name, "exCOPY1 " + name, "garbage\x00\xff",
		helloFrames + "..", helloCopy + "x y " + name, helloFrames + v.name(as) +
			".voter.x.exchange", strings.Repeat("x", 256)} {
		list = append(list, attack{"a node", fmt.Sprintf("%.20q", says), greets(own, framed(says)),
			refused + "|" + stranger, 0})
	}
	return append(list,
		attack{"a node", "a greeting of 1 GB", greets(own, []byte{64, 0, 0, 0}),
			refused + "|a frame of 1073741824 bytes", 0},
		attack{"a node", "a greeting, a byte at a time", func(f *foe) error {
			conn, err := f.secure(own)
			_, err = f.slowly(conn, err, hello[:3], hello[3:])
			return err
		}, refused + "|i/o timeout", 1})
}

// ofFrames are attacks of a node that has greeted as it should.
func (v *stronghold) ofFrames(as, third *exchangetest.Server) []attack {
	own := v.voter(v.name(as))
	hello := framed(helloFrames + v.identity("voter", v.name(as)))
	const dropped = "a frame is dropped"
	ids := slices.Sorted(slices.Values(v.names)) // a cluster that was formed numbers them so
	id := func(s *exchangetest.Server) uint64 { return uint64(1 + slices.Index(ids, v.name(s))) }
	start := v.ways[[2]string{v.name(as), v.name(third)}].overhear(v.cluster.t,
		v.voter(v.name(third)))
	if got := binary.BigEndian.Uint64(start[3:]); got != id(as) {
		v.cluster.t.Fatalf("node %s has the number %d", v.name(as), got)
	}
	headOf := func(change func(head []byte)) []byte {
		head := bytes.Clone(start)
		change(head)
		return head
	}
	message := func(from, to uint64, kind raftpb.MessageType) []byte {
		m, err := proto.Marshal(&raftpb.Message{From: proto.Uint64(from), To: proto.Uint64(to),
			Type: kind.Enum(), Term: proto.Uint64(v.before.Term + 100),
			Index: proto.Uint64(1 << 40), LogTerm: proto.Uint64(v.before.Term + 100),
			Commit: proto.Uint64(1 << 40)})
		if err != nil {
			v.cluster.t.Fatal(err)
		}
		return framed(string(headOf(func(head []byte) { head[1] = 1 })) + string(m))
	}
	// it is not told, and its connection goes on
	drops := func(frames ...[]byte) func(f *foe) error {
		return func(f *foe) error {
			conn, err := f.secure(own)
			if err == nil {
				_, err = conn.Write(hello)
			}
			for _, b := range frames {
				if err == nil {
					_, err = conn.Write(b)
				}
			}
			if err == nil { // what ends it, so that all before it was read
				_, err = f.says(conn, nil, []byte{64, 0, 0, 0})
			} else if errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "reset") ||
				strings.Contains(err.Error(), "broken pipe") {
				err = nil // the node itself has dialled meanwhile
			}
			return err
		}
	}
	list := []attack{
		{"a node", "a frame of 1 GB", drops(),
			"the connection of a node was ended|a frame of 107", 0},
		{"a node", "garbage behind a greeting", drops(framed("garbage"), framed("")),
			dropped + "|cannot be read", 0},
		{"a node", "its greeting twice", drops(hello), dropped + "|cannot be read", 0},
		{"a node", "a frame of another version", drops(framed(string(headOf(func(head []byte) {
			head[0]++
		})))), dropped + "|cannot be read", 0},
		{"a node", "a frame of another node", drops(framed(string(headOf(func(head []byte) {
			binary.BigEndian.PutUint64(head[3:], id(third))
		})))), dropped + "|not that of the member", 0},
	}
	for _, kind := range []raftpb.MessageType{raftpb.MsgVote, raftpb.MsgApp, raftpb.MsgHeartbeat,
		raftpb.MsgTimeoutNow, raftpb.MsgHup, raftpb.MsgProp, raftpb.MsgSnap} {
		list = append(list, attack{"a node", "as another node: " + kind.String(),
			drops(message(id(third), 6-id(third)-id(as), kind)), "a message is dropped|" +
				kind.String(), 0})
		list = append(list, attack{"a node", "to another node: " + kind.String(),
			drops(message(id(as), id(third), kind)), "a message is dropped|" + kind.String(), 0})
	}
	return list
}

// lane opens an observer's lane, and sends what follows.
func lane(name string, cert *tls.Certificate, v *stronghold, number, version byte,
	more ...[]byte) [][]byte {
	begin := append([]byte{number, version}, "8 bytes."...)
	return append([][]byte{framed(helloObserve + v.identity("observer", name)), begin}, more...)
}

// The lanes of observers, and the version of what is said on them.
const (
	laneFeed = iota + 1
	laneTalk
	laneRows
	laneCommands

	laneVersion = 2
)

// ofObservers are attacks with the certificates of observers.
func (v *stronghold) ofObservers(target *exchangetest.Server) []attack {
	const gone = "an observer was disconnected|observer=o3"
	o3 := v.observes("o3")
	// each has a connection of its own, of ten that one observer has
	ends := func(number, version byte, more ...[]byte) func(*foe) error {
		return func(f *foe) error {
			conn, err := f.secure(o3)
			_, err = f.says(conn, err, lane("o3", o3, v, number, version, more...)...)
			return err
		}
	}
	query := append([]byte{1, 1, 99}, 0)
	list := []attack{
		{"an observer that is not named", "a greeting", func(f *foe) error {
			conn, err := f.secure(v.observes("o2"))
			got, err := f.says(conn, err, framed(helloObserve+v.identity("observer", "o2")))
			if err == nil && !strings.Contains(got, "takes no observer o2") {
				err = fmt.Errorf("it answers %q", got)
			}
			return err
		}, "an observer is refused|observer=o2", 0},
		{"an observer", "another one's greeting", greets(o3,
			framed(helloObserve+v.identity("observer", "o1"))),
			"a connection is refused|not that of observer o1", 0},
		{"a second process of an observer", "a feed", func(f *foe) error {
			conn, err := f.secure(v.observes("o1"))
			got, err := f.says(conn, err, lane("o1", o3, v, laneFeed, laneVersion)...)
			if err == nil && target == v.followed() && !strings.Contains(got, "another process") {
				err = fmt.Errorf("it answers %q", got)
			}
			return err
		}, "", 1},
	}
	for _, x := range []struct {
		says            string
		number, version byte
		more            []byte
	}{
		{"no lane", 99, laneVersion, nil},
		{"another version", laneTalk, laneVersion + 1, nil},
		{"a feed that begins oddly", laneFeed, laneVersion, append(make([]byte, 16), 2)},
		{"talk that is none", laneTalk, laneVersion, framed("\x4d")},
		{"talk of 1 GB", laneTalk, laneVersion, []byte{64, 0, 0, 0}},
		{"a query that is none", laneRows, laneVersion, framed(string(query))},
		{"a page", laneRows, laneVersion, framed("\x04\x01")},
	} {
		list = append(list, attack{"an observer", x.says, ends(x.number, x.version, x.more), gone,
			0})
	}
	return append(list,
		attack{"an observer", "a frame of a node on talk",
			ends(laneTalk, laneVersion, framed("\x04\x01")), gone, 0},
		attack{"an observer", "an operator's request", ends(laneCommands, laneVersion,
			[]byte("oGET / HTTP/1.1\r\n\r\n")),
			"a connection of an observer is of no use|observer=o3|purpose=111", 0},
		attack{"an observer", "nothing", ends(laneTalk, laneVersion), "", 1},
		attack{"an observer", "a message, a byte at a time", func(f *foe) error {
			conn, err := f.secure(o3)
			first := bytes.Join(lane("o3", o3, v, laneRows, laneVersion,
				[]byte{0, 0, 255, 255}), nil)
			_, err = f.slowly(conn, err, first, []byte{1})
			return err
		}, "", 1})
}

// followed returns the node that the observer follows; nil: none.
func (v *stronghold) followed() *exchangetest.Server {
	at := -1
	names := regexp.MustCompile(`this observer follows a member.* member=(\w+)`)
	if all := names.FindAllStringSubmatch(v.o.Log(), -1); len(all) > 0 {
		at = slices.Index(v.names, all[len(all)-1][1])
	}
	if at < 0 {
		return nil
	}
	return v.nodes[at]
}

// ofCalls are attacks of a node on the calls of another one.
func (v *stronghold) ofCalls(target, as *exchangetest.Server) []attack {
	own, name := v.voter(v.name(as)), v.identity("voter", v.name(as))
	calls := func(want string, pieces ...[]byte) func(*foe) error {
		return func(f *foe) error {
			conn, err := f.secure(own)
			got, err := f.says(conn, err, append([][]byte{framed(helloCall + name)}, pieces...)...)
			if err == nil && !strings.Contains(got, want) {
				err = fmt.Errorf("it answers %.300q, want %q", got, want)
			}
			return err
		}
	}
	const post = "POST /operator/v1/accounts HTTP/1.1\r\nHost: x\r\nContent-Length: 18\r\n"
	const body = "\r\n" + `{"name":"mallory"}`
	wrong := "Authorization: Bearer another-token-of-the-tests-0123456789\r\n"
	refused, useless := "401 Unauthorized", "a connection of another node is of no use|node="+
		v.name(as)
	list := []attack{
		{"a node", "a purpose that is none", calls("", []byte("x and more")), useless, 0},
		{"a node", "no purpose", calls(""), useless + "|purpose=0", 1},
		{"a node", "an operator's request without the token", calls(refused,
			[]byte("o"+post+body)), "", 0},
		{"a node", "an operator's request with another token", calls("HTTP/1.1 4",
			[]byte("o"+post+wrong+body)), "", 0},
		{"a node", "no request", calls("400 Bad Request", []byte("o\x00\x01\x02\r\n\r\n")), "", 0},
		{"a node", "an operator's request of 1 GB", calls("HTTP/1.1 4",
			[]byte("oPOST /operator/v1/accounts HTTP/1.1\r\nHost: x\r\nContent-Length: "+
				"1073741824\r\n\r\n")), "", 0},
		{"a node", "an operator's request, a byte at a time", func(f *foe) error {
			conn, err := f.secure(own)
			_, err = f.slowly(conn, err, append(framed(helloCall+name), 'o'), []byte(post))
			return err
		}, "", 1},
	}
	forward := []byte("c\x00\x00\x00\x02\xff\xff")
	if target != v.led {
		return append(list, attack{"a node", "commands", calls("", forward), "", 0})
	}
	const nonsense = "what forwards commands was disconnected|from="
	return append(list,
		attack{"a node", "commands that are none", calls("", forward), nonsense + v.name(as), 0},
		attack{"a node", "commands of 1 GB", calls("", []byte("c\x40\x00\x00\x00")), nonsense, 0},
		attack{"an observer", "commands that are none", func(f *foe) error {
			conn, err := f.secure(v.observes("o3"))
			_, err = f.says(conn, err, lane("o3", nil, v, laneCommands, laneVersion, forward)...)
			return err
		}, nonsense + "o3", 0})
}

// talks is an attack on a plain listener, which answers with some words or none.
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
	greeting := string(framed(helloFrames + v.identity("voter", "a")))
	return []attack{
		{"a stranger", "TLS", func(f *foe) error {
			d := *f
			d.address = address
			conn, err := d.secure(nil)
			_, err = d.says(conn, err, []byte("GET / HTTP/1.1\r\n\r\n"))
			return err
		}, "", 0},
		{"a stranger", "a node's greeting", talks(address, "400 Bad Request", greeting, greeting,
			"\r\n\r\n"), "", 0},
		{"a stranger", "garbage", talks(address, "400 Bad Request", "\x00\xff\x01\r\n\r\n"), "", 0},
		{"a stranger", "another version", talks(address, "400 Bad Request",
			"GET / HTTP/9.9\r\nHost: x\r\n\r\n"), "", 0},
		{"a stranger", "a head without an end", talks(address, "HTTP/1.1 431",
			"GET / HTTP/1.1\r\nX: "+strings.Repeat("x", 1<<20)), "", 0},
		{"a stranger", "a head, a byte at a time", func(f *foe) error {
			d := *f
			d.address = address
			conn, err := d.dial()
			_, err = d.slowly(conn, err, []byte("GET / HTTP/1.1\r\nX: "), []byte("x"))
			return err
		}, "", 1},
		{"a stranger", "nothing, a thousand times", func(f *foe) error {
			d := *f
			d.address = address
			return d.crowd(1000, false, serves)
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
		attack{"a stranger", "an order with another's key", talks(address, "HTTP/1.1 401",
			fmt.Sprintf("%sX-KEY: %s\r\nX-NONCE: 99999999999999999\r\nX-SIGN: %0128d\r\n"+
				"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
				order, v.w.traders[0].key, 0, len(form), form)), "", 0},
		attack{"a stranger", "an operator's request", talks(address, "HTTP/1.1 404",
			"POST /operator/v1/accounts HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+
				"Content-Length: 0\r\n\r\n"), "", 0})
}

// ofOperators are attacks on the operators' listener.
func (v *stronghold) ofOperators(s *exchangetest.Server) []attack {
	const post = "POST /operator/v1/accounts HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
	const body = "Content-Length: 18\r\n\r\n" + `{"name":"mallory"}`
	return append(v.ofHTTP(s.Operator, func() error {
		_, err := v.asks(s)
		return err
	}),
		attack{"a stranger", "a command without the token", talks(s.Operator, "HTTP/1.1 401",
			post+body), "", 0},
		attack{"a stranger", "a command with another token", talks(s.Operator, "HTTP/1.1 4",
			post+"Authorization: Bearer another-token-of-the-tests-0123456789\r\n"+body), "", 0},
		attack{"a stranger", "a command of 1 GB", talks(s.Operator, "HTTP/1.1 4", post+
			"Content-Length: 1073741824\r\n\r\n"), "", 0},
		attack{"a stranger", "a question for the memory", talks(s.Operator, "HTTP/1.1 401",
			"GET /debug/pprof/heap HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), "", 0})
}
