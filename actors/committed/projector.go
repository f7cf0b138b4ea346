package committed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"exchange/actors/metrics"
	"exchange/persistence"
)

// A SnapshotPolicy says when an image of the state is due: after MaxRecords, or after MinRecords
// and MinInterval.
type SnapshotPolicy struct {
	MinRecords  uint64
	MaxRecords  uint64
	MinInterval time.Duration
}

// Due reports whether a snapshot is due: at the earliest after a tenth of the interval, so that a
// failing store is not retried at once.
func (p SnapshotPolicy) Due(records uint64, age time.Duration) bool {
	return records >= p.MaxRecords && age >= p.MinInterval/10 ||
		records >= p.MinRecords && age >= p.MinInterval
}

// A projection is one step of the store's projections, from one sequence to another, with an image
// of the whole state at its end if one is due.
type projection struct {
	from, to uint64
	writes   *persistence.Writes
	rows     int
	image    <-chan *Image // nil: none
	last     bool          // the projector ends after it
}

// ProjectorOptions configure a projector.
type ProjectorOptions struct {
	Store persistence.Store
	Token persistence.Token
	Log   *slog.Logger
	Meter *metrics.Engine
	Fail  func(error)     // ends the engine
	Stop  <-chan struct{} // ends the projector
	// Archive is called before a trim, and returns the sequence to trim up to; 0 with an error: no
	// trim. nil: nothing is archived.
	Archive func(ctx context.Context, upTo uint64) (trim uint64, err error)
	// Remember is called before a snapshot is published, with the id of its history; optional.
	Remember func(persistence.HistoryID) error
}

// newProjector makes the projector of a committed side, for Connect.
func newProjector(c *Side, o ProjectorOptions) *Projector {
	return &Projector{o: o, in: make(chan projection, 1), newest: c.began,
		hurry: make(chan struct{}), finished: make(chan struct{})}
}

// A Projector is the goroutine that writes projections, after the journal and without delaying it.
// It gets one projection at a time and retries until the store has taken it. Another goroutine
// uploads snapshots, one at a time, so that no projection waits for them.
type Projector struct {
	o        ProjectorOptions
	in       chan projection
	report   func(any) // to the committed actor; set by its Connect
	newest   uint64    // sequence of the newest snapshot; owned by an upload while one runs
	upload   sync.WaitGroup
	hurry    chan struct{} // closed before the last snapshot: uploads pause no more
	last     uint64        // sequence of the last snapshot; set before hurry is closed
	finished chan struct{} // closed when the last projection is done, or the store is lost
	err      error         // of the last snapshot; set before finished is closed
}

// Run is the goroutine.
func (p *Projector) Run() {
	defer close(p.finished)
	defer p.upload.Wait()
	for {
		select {
		case <-p.o.Stop:
			return
		case w := <-p.in:
			if !p.write(&w) {
				return
			}
		}
	}
}

// Finished is closed when the last projection is done, or the store is lost.
func (p *Projector) Finished() <-chan struct{} { return p.finished }

// write writes one projection, and starts the upload of its image. false: it was the last.
func (p *Projector) write(w *projection) bool {
	if !p.apply(w) {
		return false
	}
	to, image := w.to, w.image
	p.report(&projectionDone{to: to, rows: w.rows, writes: w.writes})
	if w.last {
		p.last = to
		close(p.hurry)
		p.upload.Wait()
		p.err = p.save(to, image)
		return false
	}
	if image != nil {
		p.upload.Go(func() { p.report(&uploadDone{to, p.save(to, image)}) })
	}
	return true
}

var (
	// errNoImage: the engine ended before the imager had made an image.
	errNoImage = errors.New("no image was made before the end")
	// errNoImages: an observer has no imager.
	errNoImages = errors.New("no images are made here")
	// errOutdated: an upload is superseded by the last snapshot. A stop has little time, so it
	// uploads one image only.
	errOutdated = errors.New("the last snapshot follows at once")
)

// outdated returns errOutdated once a last snapshot is due, for an image of another sequence.
func (p *Projector) outdated(to uint64) error {
	select {
	case <-p.hurry:
		if to != p.last {
			return errOutdated
		}
	default:
	}
	return nil
}

func (p *Projector) apply(w *projection) bool {
	start := metrics.Now()
	for wait := projectLeast; ; wait = min(2*wait, projectMost) {
		ctx, cancel := context.WithTimeout(context.Background(), projectionTimeout)
		err := p.o.Store.Apply(ctx, p.o.Token, w.from, w.to, w.writes)
		cancel()
		switch {
		case err == nil:
			p.o.Meter.Apply.Observe(metrics.Now() - start)
			return true
		case persistence.Definite(err):
			p.o.Fail(err)
			return false
		}
		p.o.Meter.Failures[metrics.OperationApply].Add(1)
		if wait == projectLeast { // once for each outage
			p.o.Log.Warn("a projection was not written, trying again", "from", w.from, "to", w.to,
				"error", err)
		}
		select {
		case <-p.o.Stop:
			return false
		case <-time.After(wait):
		}
	}
}

// Bounds of an attempt, and of the wait for the next.
const (
	projectLeast, projectMost = 5 * time.Millisecond, 200 * time.Millisecond

	projectionTimeout = 10 * time.Second
	snapshotTimeout   = 5 * time.Minute
)

// save publishes an image as soon as it is made, and trims the journal below the previous one.
func (p *Projector) save(to uint64, made <-chan *Image) error {
	defer p.o.Meter.Snapshotting.End()
	if to == p.newest || made == nil {
		return nil // no record since, or no imager
	}
	var image *Image
	select {
	case image = <-made:
	case <-p.o.Stop:
		return errNoImage
	}
	p.o.Meter.SnapshotStage(metrics.StageImage, image.took)
	ctx, cancel := context.WithTimeout(context.Background(), snapshotTimeout)
	defer cancel()
	start := time.Now()
	pace := &pace{hurry: p.hurry, stop: p.o.Stop, pieceStart: start,
		until: start.Add(snapshotTimeout / 2)}
	ctx = persistence.WithPace(ctx, func() error {
		pace.rest()
		return p.outdated(to)
	})
	var err error
	if p.o.Remember != nil {
		err = p.o.Remember(image.history)
	}
	if err == nil {
		err = p.o.Store.SaveSnapshot(ctx, p.o.Token, to, image)
	}
	switch {
	case errors.Is(err, errOutdated):
		return err
	case err != nil:
		p.o.Meter.Failures[metrics.OperationSnapshot].Add(1)
		p.o.Log.Warn("no snapshot was taken, the next one is tried later", "seq", to, "error", err)
		if errors.Is(err, persistence.ErrFenced) {
			p.o.Fail(err)
		}
		return fmt.Errorf("taking a snapshot: %w", err)
	}
	uploaded := time.Now()
	p.o.Meter.Snapshot.Observe(int64(uploaded.Sub(start)))
	p.o.Meter.SnapshotStage(metrics.StageUpload, uploaded.Sub(start))
	p.o.Meter.SnapshotTaken(to, start.UnixMicro(), image.Size)
	older := p.newest
	p.newest = to
	p.o.Log.Info("snapshot taken", "seq", to, "bytes", image.Size, "took",
		time.Since(start).Round(time.Millisecond))
	p.trim(ctx, older)
	p.o.Meter.SnapshotStage(metrics.StageTrim, time.Since(uploaded))
	return nil
}

// trim archives the journal up to the snapshot before the newest, and trims it.
func (p *Projector) trim(ctx context.Context, upTo uint64) {
	if p.o.Archive != nil {
		trim, err := p.o.Archive(ctx, upTo)
		if err != nil {
			p.o.Meter.Failures[metrics.OperationTrim].Add(1)
			p.o.Log.Error(
				"the journal was not archived and is not trimmed, the next snapshot tries again",
				"up_to", upTo, "error", err)
			if trim == 0 {
				return
			}
		}
		upTo = trim
	}
	err := p.o.Store.Trim(ctx, p.o.Token, upTo)
	if err == nil {
		p.o.Meter.Trimmed.Store(max(upTo, p.o.Meter.Trimmed.Load()))
	}
	if err == nil || errors.Is(err, errOutdated) {
		return
	}
	p.o.Meter.Failures[metrics.OperationTrim].Add(1)
	p.o.Log.Warn("the journal was not trimmed, the next snapshot tries again", "up_to", upTo,
		"error", err)
	if errors.Is(err, persistence.ErrFenced) {
		p.o.Fail(err)
	}
}

// A pace delays an upload between pieces, so that the store works for others most of the time. One
// goroutine owns it.
type pace struct {
	hurry      <-chan struct{} // closed: no more delays
	stop       <-chan struct{} // the same
	pieceStart time.Time       // start of the store's work on the piece
	until      time.Time       // no delays from then on, so that the upload completes
}

// The pause after a piece is restFor times the piece's duration, at most restMost.
const (
	restFor  = 9
	restMost = 25 * time.Millisecond
)

// rest pauses after a piece.
func (p *pace) rest() {
	now := time.Now()
	wait := min(restFor*now.Sub(p.pieceStart), restMost)
	if wait > 0 && now.Before(p.until) {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-p.hurry:
		case <-p.stop:
		}
	}
	p.pieceStart = time.Now()
}
