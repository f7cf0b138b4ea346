package replicated

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"exchange/actors/seal"
	"exchange/persistence"
	"exchange/persistence/backup"
	"exchange/persistence/internal/link"
	"exchange/persistence/memory"
)

// A cable is a node's transport over the simulated network.
type cable struct{ l *nodeLife }

// Send implements transport.
func (w cable) Send(to string, frame []byte) {
	w.l.r.send(w.l, w.l.at, slices.Index(nodeNames, to), frame)
}

// Check implements transport: each node can be reached.
func (w cable) Check(link.Peer) error { return nil }

// Set implements transport.
func (w cable) Set([]link.Peer) error { return nil }

// Close implements transport.
func (w cable) Close() error { return nil }

// Fetch implements transport. The copy may break off.
func (w cable) Fetch(ctx context.Context, from string, q link.Want) (io.ReadCloser, error) {
	r, at := w.l.r, slices.Index(nodeNames, from)
	if err := w.l.pause(ctx); err != nil {
		return nil, err
	}
	if at < 0 || r.cuts(w.l.at, at) || r.cuts(at, w.l.at) {
		return nil, errors.New("it cannot be reached")
	}
	source := r.nodes[at].life.Load()
	if source == nil {
		return nil, errors.New("it is down")
	}
	var b bytes.Buffer
	err := source.opening.writeCopy(ctx, nodeNames[w.l.at], q, &b)
	switch {
	case err != nil:
		return nil, err
	case source.dead.Load():
		return nil, errors.New("it has crashed")
	case r.draw(5) == 0:
		b.Truncate(r.draw(b.Len()))
	}
	return io.NopCloser(&b), nil
}

// pause waits as long as a frame takes.
func (l *nodeLife) pause(ctx context.Context) error {
	select {
	case <-time.After(l.r.wait(100*time.Microsecond, 50*time.Millisecond)):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// cuts reports whether a link is cut.
func (r *liveCluster) cuts(from, to int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cut[from][to]
}

// A courier writes and installs copies as the program does: as backups. The stores are in memory,
// and a swap is one step.
type courier struct {
	n     *clusterNode
	l     *nodeLife
	newer *memory.Disk
}

var copyKey = func() *seal.Sealer {
	s, err := seal.New(make([]byte, seal.KeyBytes))
	if err != nil {
		panic(err)
	}
	return s
}()

// Write implements Copies.
func (c *courier) Write(ctx context.Context, local persistence.Store, least uint64,
	w io.Writer) error {
	return backup.WriteNewest(ctx, w, local, least, copyKey)
}

// Fill implements Copies. The power may fail before and after it.
func (c *courier) Fill(ctx context.Context, r io.Reader) (uint64, error) {
	b, err := backup.Open(r, copyKey)
	if err != nil {
		return 0, err
	}
	defer b.Close()
	c.newer = memory.NewDisk()
	info, err := b.Copy(ctx, memory.Open(c.newer, persistence.Retention{}))
	if err = errors.Join(err, c.l.pause(ctx)); err != nil {
		return 0, err
	}
	return info.Sequence, nil
}

// Swap implements Copies.
func (c *courier) Swap(ctx context.Context, _ persistence.Store) (persistence.Store, error) {
	r, s := c.l.r, memory.Open(c.newer, persistence.Retention{})
	r.mu.Lock()
	if c.l.dead.Load() {
		r.mu.Unlock()
		return nil, errPower
	}
	c.l.local.Close()
	c.n.local, c.l.local = c.newer, s
	r.counts["copies"]++
	r.mu.Unlock()
	return s, c.l.pause(ctx)
}
