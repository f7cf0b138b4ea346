package replicated

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/conformance"
	"exchange/persistence/memory"
	"exchange/persistence/pebble"
)

// One node uses Pebble on disk, as operators do. Three nodes keep all in memory, so that the suite
// does not wait for the disk three times.
func TestConformance(t *testing.T) {
	t.Run("one node on the disk", func(t *testing.T) {
		conformance.Run(t, func(t *testing.T) conformance.Backend {
			dir := t.TempDir()
			return &backend{nodes: 1, files: vfs.Default, dir: dir,
				local: func(_ int, r persistence.Retention) persistence.Store {
					s, err := pebble.Open(dir+"/local", pebble.Options{Retention: r, Logger: quiet})
					must(t, err)
					return &damageable{Store: s}
				},
				damage: func(c *clustered) { c.local.(*damageable).damaged.Store(true) },
			}
		})
	})
	t.Run("three nodes", func(t *testing.T) {
		conformance.Run(t, func(*testing.T) conformance.Backend {
			disks := []*memory.Disk{memory.NewDisk(), memory.NewDisk(), memory.NewDisk()}
			return &backend{nodes: 3, files: vfs.NewMem(), dir: "nodes",
				local: func(i int, r persistence.Retention) persistence.Store {
					return memory.Open(disks[i], r)
				},
				damage: func(c *clustered) { disks[c.log.Identity().Node-1].DamageSnapshot() },
			}
		})
	})
}

// backend holds the folders of some nodes, and their local stores.
type backend struct {
	nodes  int
	files  vfs.FS
	dir    string
	local  func(i int, r persistence.Retention) persistence.Store
	damage func(c *clustered) // the leader's newest image
}

// damageable is a store whose newest image reads as a damaged one while damaged is set. The suite
// of Pebble itself damages the image where it lies.
type damageable struct {
	persistence.Store
	damaged atomic.Bool
}

func (d *damageable) LoadSnapshot(ctx context.Context, back int) (uint64, io.ReadCloser, error) {
	seq, image, err := d.Store.LoadSnapshot(ctx, back)
	if err == nil && back == 0 && d.damaged.Load() {
		image = damagedImage{image}
	}
	return seq, image, err
}

func (d *damageable) SaveSnapshot(ctx context.Context, tok persistence.Token, seq uint64,
	r io.Reader) error {
	err := d.Store.SaveSnapshot(ctx, tok, seq, r)
	if err == nil {
		d.damaged.Store(false)
	}
	return err
}

// damagedImage shows the damage at the image's end, where the checksum is compared.
type damagedImage struct{ io.ReadCloser }

func (i damagedImage) Read(b []byte) (int, error) {
	n, err := i.ReadCloser.Read(b)
	if err == io.EOF {
		err = persistence.ErrCorrupt
	}
	return n, err
}

// clustered is the leader's store. It also sends local writes to the others, as their own
// projectors would, so that any of them may lead the next time.
type clustered struct {
	*store
	others []*store
}

func (b *backend) Open(t *testing.T, r persistence.Retention) persistence.Store {
	t.Helper()
	nodes := make([]*store, b.nodes)
	opened := make(chan struct{})
	for i := range nodes {
		nodes[i] = openNode(t, options{dir: b.folder(i), files: b.files, local: b.local(i, r),
			send: func(to string, frame []byte) {
				<-opened
				nodes[slices.Index(namesOf(b.nodes), to)].receive(fmt.Sprint("node", i+1), frame)
			}}, i, b.nodes)
	}
	close(opened)
	acquaint(t, nodes)
	c := &clustered{store: longest(t, nodes)}
	elect(t, c.store)
	for _, n := range nodes {
		if n != c.store {
			c.others = append(c.others, n)
		}
	}
	return c
}

func (b *backend) folder(i int) string { return fmt.Sprint(b.dir, "/node", i+1) }

// namesOf returns the names of some nodes.
func namesOf(nodes int) (names []string) {
	for i := range nodes {
		names = append(names, fmt.Sprint("node", i+1))
	}
	return names
}

// openNode opens the folder of the node at a place, and forms it if it is new.
func openNode(t *testing.T, o options, place, nodes int) *store {
	t.Helper()
	if _, err := o.files.Stat(o.dir); errors.Is(err, os.ErrNotExist) {
		names := namesOf(nodes)
		f := newFormation(cluster, names, names[place], "", stageEmpty, nil, quiet)
		must(t, f.form(o.files, o.dir))
	}
	o.now, o.random, o.logger = time.Now, rand.IntN, quiet
	o.fatal = func(err error) { t.Error("fatal:", err) }
	s, err := open(o)
	if err != nil {
		t.Fatal(errors.Join(err, o.local.Close()))
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// acquaint waits until each node has seen the starts of all others: frames of others are dropped.
func acquaint(t *testing.T, nodes []*store) {
	t.Helper()
	for _, s := range nodes {
		must(t, s.onNode(t.Context(), func(n *node) { n.askClocks() }))
	}
	for _, s := range nodes {
		for _, peer := range nodes {
			own := peer.log.Own()
			for seen := s == peer; !seen; {
				must(t, s.onNode(t.Context(), func(n *node) {
					seen = n.log.RecordedStart(peer.log.Identity().Node) == own
				}))
			}
		}
	}
}

// longest returns a node that the others can vote for: one with the longest log. It may have been
// closed before the others had all of it.
func longest(t *testing.T, nodes []*store) (best *store) {
	t.Helper()
	var most uint64
	for _, i := range rand.Perm(len(nodes)) {
		var last uint64
		must(t, nodes[i].onNode(t.Context(), func(n *node) { last, _ = n.log.LastIndex() }))
		if best == nil || last > most {
			best, most = nodes[i], last
		}
	}
	return best
}

// elect lets a node campaign, and waits until it leads. No time passes, and no frame is lost, so it
// stays the leader.
func elect(t *testing.T, s *store) {
	t.Helper()
	must(t, s.onNode(t.Context(), func(n *node) {
		if err := n.raw.Campaign(); err != nil {
			t.Error(err)
		}
	}))
	must(t, s.awaitLead(t.Context()))
}

// Apply writes to all local stores.
func (c *clustered) Apply(ctx context.Context, tok persistence.Token, from, to uint64,
	w *persistence.Writes) error {
	if err := c.store.Apply(ctx, tok, from, to, w); err != nil || from == to {
		return err
	}
	for _, o := range c.others {
		if err := o.local.Apply(ctx, o.localToken, from, to, w); err != nil {
			return err
		}
	}
	return nil
}

// SaveSnapshot writes to all local stores.
func (c *clustered) SaveSnapshot(ctx context.Context, tok persistence.Token, seq uint64,
	r io.Reader) error {
	var image bytes.Buffer
	if err := c.store.SaveSnapshot(ctx, tok, seq, io.TeeReader(r, &image)); err != nil {
		return err
	}
	for _, o := range c.others {
		err := o.local.SaveSnapshot(context.WithoutCancel(context.Background()), o.localToken, seq,
			bytes.NewReader(image.Bytes()))
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *clustered) Close() error {
	err := c.store.Close()
	for _, o := range c.others {
		err = errors.Join(err, o.Close())
	}
	return err
}

func (b *backend) DamageBatch(t *testing.T, s persistence.Store, next uint64) {
	b.change(t, s, next, func(head, record []byte) { record[len(record)-1] ^= 0x40 })
}

func (b *backend) LoseBatch(t *testing.T, s persistence.Store, next uint64) {
	b.change(t, s, next, func(head, record []byte) { clear(head) })
}

func (b *backend) DamageSnapshot(_ *testing.T, s persistence.Store) { b.damage(s.(*clustered)) }

// change changes the leader's record of the entry with the batch that ends at next, where it lies;
// see persistence/internal/wal. The next Read is from there.
func (b *backend) change(t *testing.T, s persistence.Store, next uint64,
	change func(head, record []byte)) {
	t.Helper()
	const head = 40
	c := s.(*clustered)
	entry := c.index.after(next - 1)[0].entry
	c.index.mu.Lock()
	c.index.recent, c.index.bytes = nil, 0 // what is in memory is not damaged
	c.index.mu.Unlock()
	dir := b.folder(int(c.log.Identity().Node-1)) + "/log"
	for _, name := range names(t, b.files, dir) {
		text := get(t, b.files, dir+"/"+name)
		for at := 4096; at+head <= len(text); at += 8 {
			record, length := text[at:], int(binary.BigEndian.Uint32(text[at+8:]))
			if binary.BigEndian.Uint64(record[24:]) != entry ||
				binary.BigEndian.Uint64(record[16:]) != entry-1 || length == 0 {
				continue
			}
			change(record[:head], record[head:head+length])
			f, err := b.files.OpenReadWrite(dir+"/"+name, vfs.WriteCategoryUnspecified)
			must(t, err)
			_, err = f.WriteAt(bytes.Clone(record[:head+length]), int64(at))
			must(t, errors.Join(err, f.Close()))
			return
		}
	}
	t.Fatalf("no record has the batch that ends at %d alone", next)
}
