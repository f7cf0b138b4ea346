package actors

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"exchange/actors/metrics"
	"exchange/persistence"
)

// A projection is one step of the store's projections, from one sequence to another, with an image
// of the whole state at its end where one is due.
type projection struct {
	from, to uint64
	writes   *persistence.Writes
	rows     int
	image    []byte // nil: none
	last     bool   // the projector ends after it
}

// A projector is the goroutine that writes projections, behind the journal and never in its way. It
// gets one projection at a time and tries until the store has taken it. Snapshots are uploaded by a
// goroutine of their own, one at a time, so that nobody waits for them.
type projector struct {
	// before a trim; nil: none
	archive  func(ctx context.Context, upTo uint64) (trim uint64, err error)
	store    persistence.Store
	token    persistence.Token
	log      *slog.Logger
	meter    *metrics.Engine
	in       <-chan projection
	report   func(any) // to the committed actor
	fail     func(error)
	newest   uint64 // sequence of the newest snapshot; the uploader's while one is under way
	upload   sync.WaitGroup
	stop     <-chan struct{}
	finished chan struct{} // closed when the last projection is done, or the store is lost
	err      error         // of the last snapshot; set before finished is closed
}

// Run is the goroutine.
func (p *projector) Run() {
	defer close(p.finished)
	defer p.upload.Wait()
	for {
		select {
		case <-p.stop:
			return
		case w := <-p.in:
			if !p.write(&w) {
				return
			}
		}
	}
}

// write writes one projection, and sends its image on its way. false: it was the last.
func (p *projector) write(w *projection) bool {
	if !p.apply(w) {
		return false
	}
	to, image := w.to, w.image
	p.report(&flushed{to: to, rows: w.rows, writes: w.writes})
	if w.last {
		p.upload.Wait()
		p.err = p.save(to, image)
		return false
	}
	if image != nil {
		p.upload.Go(func() { p.report(&imaged{to, p.save(to, image)}) })
	}
	return true
}

func (p *projector) apply(w *projection) bool {
	start := metrics.Now()
	for wait := retryLeast; ; wait = min(2*wait, retryMost) {
		ctx, cancel := context.WithTimeout(context.Background(), projectionTimeout)
		err := p.store.Apply(ctx, p.token, w.from, w.to, w.writes)
		cancel()
		switch {
		case err == nil:
			p.meter.Apply.Observe(metrics.Now() - start)
			return true
		case persistence.Definite(err):
			p.fail(err)
			return false
		}
		p.meter.Failures[metrics.OperationApply].Add(1)
		if wait == retryLeast { // once for each outage
			p.log.Warn("a projection was not written, trying again", "from", w.from, "to", w.to,
				"error", err)
		}
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

// save publishes an image and trims the journal below the one before.
func (p *projector) save(to uint64, image []byte) error {
	if to == p.newest {
		return nil // nothing has happened since
	}
	ctx, cancel := context.WithTimeout(context.Background(), snapshotTimeout)
	defer cancel()
	start := time.Now()
	if err := p.store.SaveSnapshot(ctx, p.token, to, bytes.NewReader(image)); err != nil {
		p.meter.Failures[metrics.OperationSnapshot].Add(1)
		p.log.Warn("no snapshot was taken, the next one is tried later", "seq", to, "error", err)
		if errors.Is(err, persistence.ErrFenced) {
			p.fail(err)
		}
		return fmt.Errorf("taking a snapshot: %w", err)
	}
	p.meter.Snapshot.Observe(int64(time.Since(start)))
	p.meter.SnapshotTaken(to, start.UnixMicro(), len(image))
	older := p.newest
	p.newest = to
	p.log.Info("snapshot taken", "seq", to, "bytes", len(image), "took",
		time.Since(start).Round(time.Millisecond))
	trim := older
	if p.archive != nil {
		var err error
		if trim, err = p.archive(ctx, older); err != nil {
			p.meter.Failures[metrics.OperationTrim].Add(1)
			p.log.Error(
				"the journal was not archived and is not trimmed, the next snapshot tries again",
				"up_to", older, "error", err)
			return nil
		}
	}
	if err := p.store.Trim(ctx, p.token, trim); err != nil {
		p.meter.Failures[metrics.OperationTrim].Add(1)
		p.log.Warn("the journal was not trimmed, the next snapshot tries again", "up_to", trim,
			"error", err)
		if errors.Is(err, persistence.ErrFenced) {
			p.fail(err)
		}
	}
	return nil
}
