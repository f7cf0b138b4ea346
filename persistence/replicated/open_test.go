package replicated

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/memory"
	"exchange/prove/memnet"
)

// nodes are three nodes, opened as a process opens them.
type nodes struct {
	*testing.T
	authority *Authority
	net       memnet.Network
	list      []Node
	files     []vfs.FS
	disks     []*memory.Disk
	change    map[int]func(*Options)
	stores    []persistence.Replica
}

func newNodes(t *testing.T) *nodes {
	c := &nodes{T: t}
	var err error
	c.authority, err = NewAuthority(cluster)
	must(t, err)
	for range voters {
		c.add()
	}
	return c
}

// add adds a node with an empty disk, and returns its address.
func (c *nodes) add() string {
	number := len(c.list) + 1
	n := Node{fmt.Sprint("n", number), addressAt(number)}
	c.list, c.stores = append(c.list, n), append(c.stores, nil)
	c.files, c.disks = append(c.files, vfs.NewMem()), append(c.disks, memory.NewDisk())
	return n.Address
}

// addressAt returns the address of a node.
func addressAt(number int) string { return fmt.Sprint("127.0.0.1:", 60_000+number) }

// open opens a node, which ctx may end.
func (c *nodes) open(ctx context.Context, i int, change func(*Options)) (persistence.Replica,
	error) {
	o := Options{Cluster: cluster, Name: c.list[i].Name, Nodes: c.list, Folder: "data",
		Local:       memory.Open(c.disks[i], persistence.Retention{}),
		Credentials: credentials(c.T, c.authority, c.list[i].Name),
		Logger:      quiet, files: c.files[i], Listener: c.net.Listen(c.list[i].Address),
		Dial: c.net.Dial, Fatal: func(err error) { c.Error("fatal:", err) }}
	if change != nil {
		change(&o)
	}
	s, err := Open(ctx, o)
	if err != nil {
		return nil, err
	}
	c.stores[i] = s
	c.Cleanup(func() { s.Close() })
	return s, nil
}

// all opens nodes concurrently, because each waits for the others.
func (c *nodes) all(places ...int) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	failed := make(chan error, len(places))
	for _, i := range places {
		go func() {
			_, err := c.open(ctx, i, c.change[i])
			failed <- err
		}()
	}
	for range places {
		must(c.T, <-failed)
	}
}

// own claims the engine at the leader, and returns its index.
func (c *nodes) own() (int, persistence.Token) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		led := make(chan int, voters)
		all, stop := context.WithCancel(ctx)
		for i, s := range c.stores {
			if s != nil {
				go func() {
					if leads, _ := s.Follow(all, 1<<60); leads {
						led <- i
					}
				}()
			}
		}
		var i int
		select {
		case i = <-led:
		case <-ctx.Done():
			c.Fatal("no node leads")
		}
		stop()
		tok, _, err := c.stores[i].Acquire(ctx, persistence.Claim{Owner: c.list[i].Name})
		if err == nil {
			return i, tok
		}
	}
	c.Fatal("no node owns")
	return 0, ""
}

// confirms checks that an owner is confirmed, at the end of the journal.
func confirms(t *testing.T, s persistence.Replica, tok persistence.Token, end uint64) {
	t.Helper()
	if seq, err := s.Confirm(t.Context(), tok); err != nil || seq != end {
		t.Errorf("%s is confirmed at sequence %d, want %d: %v", tok, seq, end, err)
	}
}

// Three nodes form a cluster, follow the leader, and continue when it ends: the next leader refuses
// nonces of reads at the old one, and the old owner is no longer confirmed.
func TestACompleteClusterFormsAndFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newNodes(t)
		c.all(0, 1, 2)
		i, tok := c.own()
		ctx, led := t.Context(), c.stores[i]
		must(t, led.Append(ctx, tok, 0, 3, []byte("one")))
		confirms(t, led, tok, 3)
		must(t, led.Apply(ctx, led.Own(), 0, 3, &persistence.Writes{Nonces: []persistence.Nonce{
			{Key: "k", Nonce: 7, Read: true}, {Key: "l", Nonce: 5}}}))
		for k, s := range c.stores {
			leads, err := s.Follow(ctx, 2)
			if err != nil || leads != (k == i) {
				t.Fatalf("node %d: %v %v", k, leads, err)
			}
			if seq, err := s.Reach(ctx); err != nil || seq != 3 {
				t.Errorf("node %d reaches %d: %v", k, seq, err)
			}
			if _, err := s.Confirm(ctx, tok); k != i && err == nil {
				t.Errorf("node %d confirms an owner, and does not lead", k)
			}
			st := s.Standing()
			if st.Node != c.list[k].Name || len(st.Peers) != voters ||
				!s.Leads() && st.Leader != c.list[i].Name {
				t.Errorf("%+v", st)
			}
		}
		must(t, led.Close())
		c.stores[i] = nil
		next, newer := c.own()
		s := c.stores[next]
		if next == i {
			t.Fatal("a node that has ended leads")
		}
		got := map[string]uint64{}
		must(t, s.Nonces(ctx, func(key string, nonce uint64) { got[key] = nonce }))
		if got["k"] != 7 || got["l"] != 0 {
			t.Errorf("%v", got)
		}
		if _, err := s.Confirm(ctx, tok); !errors.Is(err, persistence.ErrFenced) {
			t.Errorf("the owner before: %v", err)
		}
		confirms(t, s, newer, 3)
		// the third node gets the lead, and the owner continues nowhere
		c.all(i)
		other := voters - i - next
		for err := errNoTarget; errors.Is(err, errNoTarget); time.Sleep(usualTick) {
			err = s.Transfer(ctx, c.list[other].Name)
			if err != nil && !errors.Is(err, errNoTarget) {
				t.Fatal(err)
			}
		}
		if s.Leads() {
			t.Error("it still leads")
		}
		if err := s.Trim(ctx, s.Own(), 3); err != nil {
			t.Error(err)
		}
	})
}

// A cluster forms when all of its nodes are present, and not before. Then a folder without its log,
// or of another node, is refused.
func TestANodeWithoutItsLogIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newNodes(t)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		failed := make(chan error, 2)
		for i := range 2 {
			go func() {
				_, err := c.open(ctx, i, nil)
				failed <- err
			}()
		}
		for range 2 {
			if err := <-failed; !errors.Is(err, context.DeadlineExceeded) ||
				!strings.Contains(err.Error(), "n3 (no answer)") {
				t.Fatal(err)
			}
		}
		cancel()
		c.all(0, 1, 2)
		c.own()
		must(t, c.stores[2].Close())
		old := c.files[2]
		c.stores[2] = nil
		for what, change := range map[string]func(*Options){
			"its disk was replaced": func(o *Options) { o.files = vfs.NewMem() },
			"it is that of node n3": func(o *Options) {
				o.Name, o.Nodes = "n4", append([]Node{{"n4", "127.0.0.1:1"}}, o.Nodes[:2]...)
			},
			"projections up to sequence": func(o *Options) {
				o.files = vfs.NewMem()
				tok, _, err := o.Local.Acquire(t.Context(), persistence.Claim{Owner: "x"})
				must(t, err)
				must(t, o.Local.Apply(t.Context(), tok, 0, 5, nil))
			},
		} {
			_, err := c.open(t.Context(), 2, change)
			if err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
			c.disks[2] = memory.NewDisk()
		}
		c.files[2] = old
		c.all(2)
		c.own()
	})
}

// A node alone forms its cluster at once, confirms its owner, and can hand the lead to no other.
// Its own Trim drops the log up to the ends of its older image and its archive.
func TestANodeAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(memnet.Network).Listen(addressAt(1))
		o := Options{Cluster: cluster, Name: "n1", Nodes: []Node{{"n1", addressAt(1)}},
			Folder: "data", Local: memory.Open(memory.NewDisk(), persistence.Retention{}),
			Logger: quiet, files: vfs.NewMem(), Listener: l}
		r, err := Open(t.Context(), o)
		must(t, err)
		defer r.Close()
		ctx, s := t.Context(), r.(*replica).store
		must(t, s.awaitLead(ctx))
		tok, _, err := s.Acquire(ctx, persistence.Claim{Owner: "first"})
		must(t, err)
		confirms(t, s, tok, 0)
		for seq := range uint64(4) {
			must(t, s.Append(ctx, tok, seq, seq+1, []byte{1}))
			must(t, s.Apply(ctx, s.Own(), seq, seq+1, nil))
			must(t, s.SaveSnapshot(ctx, s.Own(), seq+1, strings.NewReader("image")))
		}
		allowed := func() (seq uint64) {
			must(t, s.onNode(ctx, func(n *node) { seq = n.trim.allowedSeq }))
			return seq
		}
		for _, step := range []struct{ upTo, want uint64 }{{0, 0}, {2, 2}, {4, 3}} {
			must(t, s.Trim(ctx, s.Own(), step.upTo))
			if got := allowed(); got != step.want || s.view.Load().trimmed != step.upTo {
				t.Errorf("up to %d: %d is allowed, want %d", step.upTo, got, step.want)
			}
		}
		if err := s.Transfer(ctx, ""); !errors.Is(err, errNoTarget) {
			t.Error(err)
		}
		for _, to := range []string{"n1", "n2"} {
			if err := s.Transfer(ctx, to); !errors.Is(err, persistence.ErrInvalid) {
				t.Errorf("%s: %v", to, err)
			}
		}
		if _, _, err = s.Acquire(ctx, persistence.Claim{Owner: "second"}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Confirm(ctx, tok); !errors.Is(err, persistence.ErrFenced) {
			t.Error(err)
		}
	})
}
