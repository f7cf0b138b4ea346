package committed

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"exchange/actors/metrics"
	"exchange/persistence"
)

func TestUploadPausesNineTimesAsLongAsItWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hurry, begin := make(chan struct{}), time.Now()
		p := &pace{hurry: hurry, pieceStart: begin, until: begin.Add(time.Minute)}
		rest := func(work, want time.Duration) {
			t.Helper()
			time.Sleep(work)
			from := time.Now()
			p.rest()
			if got := time.Since(from); got != want {
				t.Errorf("after a piece of %v the pause is %v, want %v", work, got, want)
			}
		}
		rest(0, 0)
		rest(time.Millisecond, 9*time.Millisecond)
		rest(2*time.Millisecond, 18*time.Millisecond)
		rest(time.Second, restMost)
		time.AfterFunc(time.Second+time.Millisecond, func() { close(hurry) })
		rest(time.Second, time.Millisecond) // the process stops
		rest(time.Second, 0)
		p.hurry, p.pieceStart = nil, time.Now()
		rest(time.Minute, 0) // it must complete
	})
}

// A chunkStore stores snapshots in chunks of one byte, a millisecond each.
type chunkStore struct {
	persistence.Store
	chunks int           // stored in total
	saved  []uint64      // snapshots
	at     chan struct{} // closed after that many chunks
	after  int
}

func (s *chunkStore) Apply(context.Context, persistence.Token, uint64, uint64,
	*persistence.Writes) error {
	return nil
}

func (s *chunkStore) SaveSnapshot(ctx context.Context, _ persistence.Token, seq uint64,
	r io.Reader) error {
	for chunk := make([]byte, 1); ; {
		if _, err := r.Read(chunk); err != nil {
			s.saved = append(s.saved, seq)
			return nil
		}
		time.Sleep(time.Millisecond)
		if s.chunks++; s.chunks == s.after {
			close(s.at)
		}
		if err := persistence.Pace(ctx); err != nil {
			return err
		}
	}
}

func (s *chunkStore) Trim(context.Context, persistence.Token, uint64) error { return nil }

// A stop uploads the last image without pauses. It does not wait for a running upload, unless that
// is of the same state.
func TestStopUploadsOneImage(t *testing.T) {
	const size = 16_384 // chunks: those of 1 GB
	image := func() <-chan *Image {
		made := make(chan *Image, 1)
		made <- &Image{Size: size, pieces: [][]byte{make([]byte, size)}}
		return made
	}
	for name, c := range map[string]struct {
		last   uint64 // sequence of the last snapshot; the running one is of 10
		chunks int    // at most
		saved  []uint64
	}{
		"a later state":  {20, 100 + 1 + size, []uint64{20}},
		"the same state": {10, size, []uint64{10}},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &chunkStore{at: make(chan struct{}), after: 100}
			p := newProjector(&Side{}, ProjectorOptions{Store: store, Meter: metrics.NewEngine(),
				Log: slog.New(slog.DiscardHandler)})
			p.report = func(any) {}
			go p.Run()
			p.in <- projection{to: 10, image: image()}
			<-store.at
			hurry := time.Now()
			p.in <- projection{from: 10, to: c.last, image: image(), last: true}
			<-p.Finished()
			if p.err != nil || store.chunks > c.chunks || !slices.Equal(store.saved, c.saved) {
				t.Errorf("%s: %d chunks were stored, of the snapshots %v: %v", name, store.chunks,
					store.saved, p.err)
			}
			// The clock advances only for chunks and pauses.
			if most := time.Duration(c.chunks) * time.Millisecond; time.Since(hurry) > most {
				t.Errorf("%s: the stop took %v, its chunks at most %v", name, time.Since(hurry),
					most)
			}
		})
	}
}
