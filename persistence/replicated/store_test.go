package replicated

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/link"
	"exchange/persistence/internal/raftlog"
	"exchange/persistence/memory"
	"exchange/persistence/replicated/memnet"
)

// A group is three stores that are linked.
type group struct {
	*testing.T
	net       memnet.Network
	files     []vfs.FS
	disks     []*memory.Disk
	stores    []*store
	links     []*link.Link
	authority *Authority
}

func newGroup(t *testing.T) *group {
	g := &group{T: t, stores: make([]*store, voters), links: make([]*link.Link, voters)}
	var err error
	g.authority, err = NewAuthority(cluster)
	must(t, err)
	for range voters {
		g.files = append(g.files, vfs.NewMem())
		g.disks = append(g.disks, memory.NewDisk())
	}
	for i := range voters {
		g.start(i)
	}
	return g
}

// start opens a node.
func (g *group) start(i int) {
	g.Helper()
	names := namesOf(voters)
	var peers []link.Peer
	for k, name := range names {
		if k != i {
			peers = append(peers, link.Peer{Name: name, Address: addressAt(k)})
		}
	}
	ready := make(chan struct{})
	l, err := link.Open(link.Options{Cluster: cluster, Name: names[i], Peers: peers,
		Listener: g.net.Listen(g.T, addressAt(i)), Dial: g.net.Dial, Logger: quiet,
		Credentials: credentials(g.T, g.authority, names[i]),
		Receive: func(from string, frame []byte) {
			<-ready
			g.stores[i].receive(from, frame)
		}})
	must(g.T, err)
	ticker := time.NewTicker(usualTick)
	g.Cleanup(ticker.Stop)
	g.stores[i] = openNode(g.T, options{dir: fmt.Sprint("node", i), files: g.files[i],
		local: memory.Open(g.disks[i], persistence.Retention{}), ticks: ticker.C, send: l.Send}, i,
		voters)
	close(ready)
	g.links[i] = l
	g.Cleanup(func() { l.Close() })
}

// credentials returns those of a node.
func credentials(t *testing.T, a *Authority, node string) *Credentials {
	t.Helper()
	cert, key, err := a.Issue(node)
	must(t, err)
	return proof(t, a, cert, key)
}

// proof returns credentials with a certificate of the authority.
func proof(t *testing.T, a *Authority, cert, key []byte) *Credentials {
	t.Helper()
	certificate, err := tls.X509KeyPair(cert, key)
	must(t, err)
	roots := x509.NewCertPool()
	if ca, _ := a.PEM(); !roots.AppendCertsFromPEM(ca) {
		t.Fatal("the authority has no certificate")
	}
	return &Credentials{Certificate: certificate, Roots: roots}
}

func (g *group) stop(i int) {
	g.Helper()
	must(g.T, errors.Join(g.links[i].Close(), g.stores[i].Close()))
	g.stores[i] = nil
}

// leader returns the place of a node that leads.
func (g *group) leader() int {
	g.Helper()
	ctx, cancel := context.WithTimeout(g.Context(), time.Minute)
	defer cancel()
	led := make(chan int, voters)
	for i, s := range g.stores {
		if s != nil {
			go func() {
				if s.lead(ctx) == nil {
					led <- i
				}
			}()
		}
	}
	select {
	case i := <-led:
		return i
	case <-ctx.Done():
		g.Fatal("no node leads")
		return 0
	}
}

// own makes an owner at a node that leads, however often the lead changes.
func (g *group) own() (int, persistence.Token, uint64) {
	g.Helper()
	for range 1000 {
		i := g.leader()
		tok, last, err := g.stores[i].Acquire(g.Context(), persistence.Claim{Owner: fmt.Sprint(i)})
		if err == nil {
			return i, tok, last
		}
		if persistence.Definite(err) {
			g.Fatal(err)
		}
	}
	g.Fatal("no node leads for long enough")
	return 0, "", 0
}

// fill appends up to a sequence. Other owners follow when the lead changes.
func (g *group) fill(upTo uint64) (int, persistence.Token) {
	g.Helper()
	i, tok, seq := g.own()
	for seq < upTo {
		err := g.stores[i].Append(g.Context(), tok, seq, seq+1, fmt.Appendf(nil, "batch %d", seq))
		switch {
		case err == nil:
			seq++
		case persistence.Definite(err), errors.Is(err, errNotLeading):
			i, tok, seq = g.own()
		}
	}
	return i, tok
}

// journal returns the batches that a node has, once it has them up to a sequence.
func (g *group) journal(i int, upTo uint64) []string {
	g.Helper()
	for ticks := 0; g.stores[i].seen.Load().beat.End.Seq < upTo; ticks++ {
		if ticks > 1000 {
			g.Fatalf("node %d does not reach %d", i, upTo)
		}
		time.Sleep(usualTick)
	}
	var all []string
	must(g.T, g.stores[i].Read(g.Context(), 0, func(prev, _ uint64, batch []byte) error {
		all = append(all, fmt.Sprint(prev, " ", string(batch)))
		return nil
	}))
	return all
}

// Three nodes go on when the one that leads ends, and it has all when it comes back.
func TestAClusterGoesOnWithoutTheNodeThatLed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		first, old := g.fill(40)
		g.stop(first)
		second, tok := g.fill(80)
		if second == first {
			t.Fatal("a node that has ended leads")
		}
		err := g.stores[second].Append(t.Context(), old, 80, 81, []byte("late"))
		if !errors.Is(err, persistence.ErrFenced) || !persistence.Definite(err) {
			t.Fatalf("the owner before: %v", err)
		}
		other := 3 - first - second
		err = g.stores[other].Append(t.Context(), tok, 80, 81, []byte("elsewhere"))
		if err == nil || persistence.Definite(err) {
			t.Fatalf("a node that does not lead: %v", err)
		}
		g.start(first)
		want := g.journal(second, 80)
		for i := range g.stores {
			if got := g.journal(i, 80); !slices.Equal(got, want) || len(got) != 80 {
				t.Errorf("node %d has %d batches", i, len(got))
			}
		}
	})
}

// A nonce of a read is refused by the node that leads next.
func TestNoncesOfReadsAreKnownToTheNextOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		i, tok, _ := g.own()
		ctx := t.Context()
		must(t, g.stores[i].Apply(ctx, tok, 0, 1, &persistence.Writes{
			Nonces: []persistence.Nonce{{Key: "a", Nonce: 7}, {Key: "b", Nonce: 1}}}))
		must(t, g.stores[i].Apply(ctx, tok, 1, 1, &persistence.Writes{
			Nonces: []persistence.Nonce{{Key: "b", Nonce: 5}, {Key: "c", Nonce: 3}}}))
		nonces := func(s *store) map[string]uint64 {
			got := map[string]uint64{}
			must(t, s.Nonces(ctx, func(key string, nonce uint64) { got[key] = nonce }))
			return got
		}
		want := map[string]uint64{"a": 7, "b": 5, "c": 3}
		if got := nonces(g.stores[i]); !maps.Equal(got, want) {
			t.Fatalf("%v", got)
		}
		g.stop(i)
		next, _, _ := g.own()
		if got := nonces(g.stores[next]); got["b"] != 5 || got["c"] != 3 {
			t.Fatalf("%v", got)
		}
	})
}

func TestANodeWithoutALogIsNotOpened(t *testing.T) {
	local := memory.Open(memory.NewDisk(), persistence.Retention{})
	_, err := open(options{dir: "node", files: vfs.NewMem(), local: local, logger: quiet,
		now: time.Now})
	if !errors.Is(err, raftlog.ErrNotFormed) {
		t.Fatal(err)
	}
}

// Callers of a store that is closed get an error, and none that is definite.
func TestAClosedStoreTakesNothing(t *testing.T) {
	s := openNode(t, options{dir: "node", files: vfs.NewMem(),
		local: memory.Open(memory.NewDisk(), persistence.Retention{})}, 0, 1)
	tok, _, err := s.Acquire(t.Context(), persistence.Claim{Owner: "an owner"})
	must(t, err)
	must(t, s.Close())
	must(t, s.Close())
	for what, err := range map[string]error{
		"append": s.Append(t.Context(), tok, 0, 1, []byte("x")),
		"check":  s.Check(t.Context(), tok),
		"read":   s.Read(t.Context(), 0, nil),
		"nonces": s.Nonces(t.Context(), nil),
	} {
		if err == nil || persistence.Definite(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// What a caller learns that does not wait any more is not definite.
func TestACallerMayStopWaiting(t *testing.T) {
	s := openNode(t, options{dir: "node", files: vfs.NewMem(), send: func(string, []byte) {},
		local: memory.Open(memory.NewDisk(), persistence.Retention{})}, 0, 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := s.Acquire(ctx, persistence.Claim{Owner: "an owner"})
	if err == nil || persistence.Definite(err) {
		t.Fatal(err)
	}
	if err := s.lead(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
