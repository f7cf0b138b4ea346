package pebble

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"exchange/persistence"
)

// A broken is a store on a disk that can be made to fail.
type broken struct {
	*Store
	fs        *vfs.MemFS
	fails     atomic.Pointer[func(errorfs.Op) bool] // nil: nothing does
	fatalErrs chan error                            // errors that would have ended the process
	errors    *errorLines
}

// errorLines keeps the log lines at the level of errors.
type errorLines struct {
	slog.Handler
	mu    sync.Mutex
	lines []string // guarded by mu
}

func (s *errorLines) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

func (s *errorLines) Handle(_ context.Context, r slog.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, r.Message)
	return nil
}

func (s *errorLines) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines)
}

func (b *broken) MaybeError(op errorfs.Op) error {
	if fails := b.fails.Load(); fails != nil && (*fails)(op) {
		return &fs.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
	}
	return nil
}

func (b *broken) String() string { return "a full disk" }

func (b *broken) options() Options {
	return Options{
		files:  errorfs.Wrap(b.fs, b),
		Logger: slog.New(b.errors),
		fatal:  func(err error) { b.fatalErrs <- err },
		pause:  time.Millisecond,
	}
}

func newBroken() *broken {
	return &broken{fs: vfs.NewCrashableMem(), fatalErrs: make(chan error, 100),
		errors: &errorLines{Handler: quiet.Handler()}}
}

// trading appends and applies, and takes snapshots, until the process would have ended: then it
// does not return. seq is the end of the acknowledged appends.
func (b *broken) trading(tok persistence.Token, seq *atomic.Uint64) error {
	ctx := context.Background() // it continues after the test
	for {
		at := seq.Load()
		if err := b.Append(ctx, tok, at, at+1, []byte("a batch")); err != nil {
			return err
		}
		seq.Store(at + 1)
		if err := b.Apply(ctx, tok, at, at+1, trades(at, 1)); err != nil {
			return err
		}
		if at%8 == 0 {
			if err := b.SaveSnapshot(ctx, tok, at+1, strings.NewReader("an image")); err != nil {
				return err
			}
			if err := b.db.Flush(); err != nil {
				return err
			}
		}
		if len(b.fatalErrs) > 0 {
			select {} // it ended in another goroutine
		}
	}
}

// trades returns n trades of one Apply.
func trades(seq, n uint64) *persistence.Writes {
	w := &persistence.Writes{}
	for i := range n {
		w.Trades = append(w.Trades, persistence.Trade{ID: n*seq + i + 1, Pair: 1, TakerSide: 1,
			Taker: 1, Maker: 2})
	}
	return w
}

// A failed write that Pebble does not repeat ends the process at once, before Pebble receives the
// error. Pebble would panic with locks held, or continue.
func TestFailedWriteUnderPebbleEndsProcess(t *testing.T) {
	log := func(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".log") }
	manifest := func(op errorfs.Op) bool { return strings.Contains(op.Path, "MANIFEST-") }
	for _, test := range []struct {
		name  string
		fails func(errorfs.Op) bool
	}{
		{"its log is written", func(op errorfs.Op) bool {
			return log(op) && op.Kind == errorfs.OpFileWrite
		}},
		{"its log is synced", func(op errorfs.Op) bool {
			return log(op) && op.Kind == errorfs.OpFileSyncData
		}},
		{"its next log is created", func(op errorfs.Op) bool {
			return log(op) && op.Kind == errorfs.OpCreate
		}},
		{"its next log is an old one",
			func(op errorfs.Op) bool { return log(op) && op.Kind == errorfs.OpReuseForWrite }},
		{"its folder is synced", func(op errorfs.Op) bool {
			return op.Path == "data" && op.Kind == errorfs.OpFileSync
		}},
		{"its list of tables is written",
			func(op errorfs.Op) bool { return manifest(op) && op.Kind == errorfs.OpFileWrite }},
		{"its list of tables is synced",
			func(op errorfs.Op) bool { return manifest(op) && op.Kind == errorfs.OpFileSync }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBroken()
			s, err := Open("data", b.options())
			succeeds(t, err)
			b.Store = s
			tok, at, err := s.Acquire(t.Context(), persistence.Claim{Owner: "test"})
			succeeds(t, err)
			err = errors.Join(s.Append(t.Context(), tok, at, at+1,
				[]byte("the head is made with the first")),
				s.Apply(t.Context(), tok, at, at+1, trades(at, 1)))
			succeeds(t, err)
			b.fails.Store(&test.fails)
			var seq atomic.Uint64
			seq.Store(at + 1)
			back := make(chan error, 1)
			go func() { back <- b.trading(tok, &seq) }()
			var fatalErr error
			select {
			case fatalErr = <-b.fatalErrs:
			case err := <-back:
				t.Fatal("the store came back with ", err)
			}
			if err := fatalErr; !errors.Is(err, syscall.ENOSPC) ||
				errors.Is(err, persistence.ErrCorrupt) {
				t.Errorf("it ended with %v", err)
			}
			acknowledged := seq.Load()
			_, _, last := mustOpen(t, "data", Options{files: b.fs.CrashClone(vfs.CrashCloneCfg{})})
			if last < acknowledged {
				t.Errorf("the journal ends at %d, %d were acknowledged", last, acknowledged)
			}
		})
	}
}

// Tables are rewritten, at a bounded pace and without a log line for each try.
func TestTablesAreRewrittenForAWhile(t *testing.T) {
	b := newBroken()
	o := b.options()
	o.patience = time.Hour
	s, err := Open("data", o)
	succeeds(t, err)
	defer s.Close()
	tok, seq, err := s.Acquire(t.Context(), persistence.Claim{Owner: "test"})
	succeeds(t, err)
	for range 3 {
		var tries atomic.Int32
		fails := func(op errorfs.Op) bool {
			if op.Kind != errorfs.OpCreate || !strings.HasSuffix(op.Path, ".sst") {
				return false
			}
			return tries.Add(1) <= 20
		}
		succeeds(t, s.Apply(t.Context(), tok, seq, seq+1, trades(seq, 500)))
		seq++
		b.fails.Store(&fails)
		succeeds(t, s.db.Flush())
		b.fails.Store(nil)
	}
	if lines := b.errors.all(); len(lines) < 1 || len(lines) > 3 {
		t.Errorf("of 3 times with 20 tries each the log has %q", lines)
	}
	if len(b.fatalErrs) > 0 {
		t.Error(<-b.fatalErrs)
	}
}

// A start writes tables of the records in Pebble's log. A start without disk space for tables ends,
// because Pebble would retry without end or pause.
func TestStartThatCannotWriteTablesEnds(t *testing.T) {
	b := newBroken()
	s, tok, seq := mustOpen(t, "data", Options{files: b.fs})
	for range 40 {
		succeeds(t, s.Apply(t.Context(), tok, seq, seq+1, trades(seq, 500)))
		seq++
	}
	s.sync()
	b.fs = b.fs.CrashClone(vfs.CrashCloneCfg{})
	fails := func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst")
	}
	b.fails.Store(&fails)
	o := b.options()
	o.patience = 20 * time.Millisecond
	back := make(chan error, 1)
	go func() {
		_, err := Open("data", o)
		back <- err
	}()
	var fatalErr error
	select {
	case fatalErr = <-b.fatalErrs:
	case err := <-back:
		t.Fatal("the start came back with ", err)
	}
	if err := fatalErr; !errors.Is(err, syscall.ENOSPC) ||
		!strings.Contains(err.Error(), "make room") {
		t.Errorf("it ended with %v", err)
	}
	if lines := b.errors.all(); len(lines) != 1 {
		t.Errorf("it is logged %d times: %q", len(lines), lines)
	}
}

// The disk is full from any one call on, of a start or later. The process ends, or the call returns
// the error. A start after a crash finds all acknowledged data.
func TestFullDiskFromAnyCallLosesNothing(t *testing.T) {
	ended := 0
	for n := 1; n < 400; n += 1 + n/12 {
		b := newBroken()
		var calls atomic.Int64
		fails := func(op errorfs.Op) bool {
			switch op.Kind {
			case errorfs.OpLock, errorfs.OpRemove, errorfs.OpFileClose:
				return false // these take no room
			}
			return op.Kind.ReadOrWrite() == errorfs.OpIsWrite && calls.Add(1) >= int64(n)
		}
		b.fails.Store(&fails)
		o := b.options()
		o.patience = 5 * time.Millisecond
		var seq atomic.Uint64
		back := make(chan error, 1)
		go func() {
			s, err := Open("data", o)
			if err != nil {
				back <- err
				return
			}
			b.Store = s
			tok, _, err := s.Acquire(context.Background(), persistence.Claim{Owner: "test"})
			if err == nil {
				err = b.trading(tok, &seq)
			}
			back <- err
		}()
		var err error
		select {
		case err = <-b.fatalErrs:
			ended++
		case err = <-back:
		}
		if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, persistence.ErrCorrupt) {
			t.Errorf("call %d: %v", n, err)
		}
		acknowledged := seq.Load()
		s, err := Open("data", Options{files: b.fs.CrashClone(vfs.CrashCloneCfg{}), Logger: quiet})
		if err != nil {
			t.Errorf("call %d: a start on the remaining data: %v", n, err)
			continue
		}
		if last, _ := s.log.End(); last < acknowledged {
			t.Errorf("call %d: the journal ends at %d, %d were acknowledged", n, last, acknowledged)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if ended < 10 {
		t.Errorf("the process would have ended %d times", ended)
	}
}
