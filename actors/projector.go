package actors

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"time"

	"exchange/persistence"
)

// A projection is one step of the store's projections, from one sequence to another, with an image of
// the whole state at its end where one is due.
type projection struct {
	from, to uint64
	writes   *persistence.Writes
	rows     int
	image    []byte // nil: none
	last     bool   // the projector ends after it
}

// A projector is the goroutine that writes projections and snapshots, behind the journal and never in
// its way. It gets one projection at a time and tries until the store has taken it.
type projector struct {
	store    persistence.Store
	token    persistence.Token
	log      *slog.Logger
	in       <-chan projection
	report   func(*flushed)
	fail     func(error)
	newest   uint64 // sequence of the newest snapshot; the journal is trimmed below the one before
	stop     <-chan struct{}
	finished chan struct{} // closed when the last projection is done, or the store is lost
}

func (p *projector) run() {
	defer close(p.finished)
	for {
		select {
		case <-p.stop:
			return
		case w := <-p.in:
			if !p.apply(&w) {
				return
			}
			if w.image != nil {
				if err := p.save(&w); err != nil {
					p.log.Warn("no snapshot was taken, the next one is tried later", "seq", w.to, "error", err)
					if errors.Is(err, persistence.ErrFenced) {
						p.fail(err)
						return
					}
				}
			}
			p.report(&flushed{to: w.to, rows: w.rows, writes: w.writes})
			if w.last {
				return
			}
		}
	}
}

func (p *projector) apply(w *projection) bool {
	for wait := retryLeast; ; wait = min(2*wait, retryMost) {
		ctx, cancel := context.WithTimeout(context.Background(), projectionTimeout)
		err := p.store.Apply(ctx, p.token, w.from, w.to, w.writes)
		cancel()
		switch {
		case err == nil:
			return true
		case errors.Is(err, persistence.ErrFenced), errors.Is(err, persistence.ErrGap), errors.Is(err, persistence.ErrCorrupt):
			p.fail(err)
			return false
		}
		p.log.Warn("a projection was not written, trying again", "from", w.from, "to", w.to, "error", err)
		select {
		case <-p.stop:
			return false
		case <-time.After(wait):
		}
	}
}

// Bounds of one try.
const (
	projectionTimeout = 10 * time.Second
	snapshotTimeout   = 5 * time.Minute
)

func (p *projector) save(w *projection) error {
	ctx, cancel := context.WithTimeout(context.Background(), snapshotTimeout)
	defer cancel()
	start := time.Now()
	if w.to == p.newest {
		return nil // nothing has happened since
	}
	if err := p.store.SaveSnapshot(ctx, p.token, w.to, bytes.NewReader(w.image)); err != nil {
		return err
	}
	older := p.newest
	p.newest = w.to
	p.log.Info("snapshot taken", "seq", w.to, "bytes", len(w.image), "took", time.Since(start).Round(time.Millisecond))
	return p.store.Trim(ctx, p.token, older)
}
