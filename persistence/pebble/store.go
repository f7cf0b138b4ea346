package pebble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
	"exchange/persistence/internal/head"
	"exchange/persistence/internal/wal"
)

// Options of Open. The zero value keeps everything, for the engine "main".
type Options struct {
	// Retention bounds history; its zero value keeps everything.
	Retention persistence.Retention
	// Logger receives the store's faults; nil means slog.Default.
	Logger *slog.Logger

	// The rest is for this package's tests.

	engine string // name of the journal in the folder; "": "main"
	files  vfs.FS // file system of everything that the store reads and writes; nil: the disk
	// fatal is called with the error of a write that must not be ignored. If it returns, its
	// goroutine blocks with all its locks, as if the process had ended. The store can then
	// not even be closed. nil: the process ends with 75, or with 70 if the error is ErrCorrupt.
	fatal           func(error)
	pause, patience time.Duration // 0: the usual ones
}

const (
	// format is pinned: earlier versions of the program cannot read a newer one.
	format = pebble.FormatTableFormatV6
	// memTableBytes is the size at which a table goes to disk; 64 MB was measured to be ample.
	memTableBytes = 64 << 20
	// cacheBytes holds the newest history for reads.
	cacheBytes = 64 << 20
	// walBytesPerSync spreads the disk writes of an Apply, instead of one burst at the next sync.
	walBytesPerSync = 512 << 10
	// maxTables is how many of its tables Pebble keeps open, each with a descriptor. The exchange
	// reserves descriptors for them.
	maxTables = 400
	// bloomBits per key make the answer "no such row" cheap: 1 % are still read.
	bloomBits = 10

	journalFolder  = "journal." // and the engine's id
	holderFile     = "HOLDER"
	holderMaxBytes = 4096
)

// A Store is one folder. Its methods may be called from any goroutine.
type Store struct {
	dir       string
	prefix    []byte // engine id and a zero byte
	retention persistence.Retention
	logger    *slog.Logger
	fs        vfs.FS
	fatal     func(error) // ends the process: it does not return
	db        *pebble.DB  // all but the journal
	log       *wal.Log    // the journal
	lock      *pebble.Lock

	background background

	// Locks are taken in this order: snapshots, projections, journal, changes.
	snapshots   sync.Mutex // one upload at a time
	projections sync.Mutex // one Apply at a time; guards watermark's writes
	memo        memo       // guarded by projections
	// syncs the writes of Applies; nil: all are synced; guarded by projections
	unsynced *time.Timer
	journal  sync.Mutex // one append at a time
	head     *head.File // end of the acknowledged appends
	changes  sync.Mutex // one change of meta at a time
	meta     atomic.Pointer[meta]

	life struct { // counts calls in progress, so that Close waits for them
		sync.Mutex
		idle   *sync.Cond
		calls  int
		closed bool
	}
}

var _ persistence.Store = (*Store)(nil)

var errClosed = errors.New("the store is closed")

// Open opens or creates the store in dir and holds it until Close. ErrLocked if another process has
// it.
func Open(dir string, opts Options) (*Store, error) {
	if opts.engine == "" {
		opts.engine = "main"
	}
	if err := codec.CheckEngine(opts.engine); err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	s := &Store{
		dir:       dir,
		prefix:    append([]byte(opts.engine), 0),
		retention: opts.Retention,
		logger:    opts.Logger,
		fs:        opts.files,
	}
	s.fatal = func(err error) {
		if opts.fatal == nil {
			s.exit(err)
		}
		opts.fatal(err)
		select {}
	}
	s.background = background{
		logger:   s.logger,
		end:      s.fatal,
		pause:    cmp.Or(opts.pause, pause),
		patience: cmp.Or(opts.patience, patience),
	}
	s.life.idle = sync.NewCond(&s.life)
	s.memo.reset()
	path := dir
	if s.fs == nil {
		s.fs = vfs.Default
		// One spelling of the folder, so that a second Open in this process finds its lock.
		var err error
		if path, err = filepath.Abs(dir); err != nil {
			return nil, fmt.Errorf("data folder %s: %w", dir, err)
		}
	}
	if err := s.fs.MkdirAll(path, 0o700); err != nil {
		return nil,
			fmt.Errorf(
				"data folder %s cannot be made: %w; choose another or create it with "+
					"permissions 0700", dir, err)
	}
	if s.fs == vfs.Default {
		var err error
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return nil, fmt.Errorf("data folder %s: %w", dir, err)
		}
		if fi, err := os.Stat(path); err == nil && fi.Mode().Perm()&0o077 != 0 {
			s.logger.Warn(
				"other users of this machine can read the data folder; set its permissions to 0700",
				"folder", dir, "permissions", fmt.Sprintf("%#o", fi.Mode().Perm()))
		}
	}
	if err := readable(s.fs, path, opts.engine); err != nil {
		return nil, err
	}
	if err := s.hold(path); err != nil {
		return nil, err
	}
	if err := s.open(path); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

// hold takes the folder's lock, which the kernel frees when this process ends, and writes the
// holder's name.
func (s *Store) hold(path string) error {
	lock, err := pebble.LockDirectory(path, s.fs)
	if err != nil {
		if !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EACCES) && !heldHere(err) {
			return fmt.Errorf("data folder %s cannot be locked: %w", s.dir, err)
		}
		if errors.Is(err, syscall.EACCES) && !s.writable(path) {
			return fmt.Errorf(
				"data folder %s cannot be written: %w; give this user permission to it", s.dir, err)
		}
		return fmt.Errorf("%w: %s is held by %s; stop that process or choose another folder",
			persistence.ErrLocked, s.dir, s.holder(path))
	}
	s.lock = lock
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed host"
	}
	text := fmt.Sprintf("process %d on %s, started %s\n", os.Getpid(), host,
		time.Now().UTC().Format(time.RFC3339))
	if err := s.writeHolder(path, text); err != nil {
		return errors.Join(fmt.Errorf("data folder %s cannot be written: %w", s.dir, err),
			s.release())
	}
	return nil
}

// heldHere matches the error of a second Open within this process, which has no type of its own.
func heldHere(err error) bool { return err != nil && err.Error() == "lock held by current process" }

// writable reports whether the folder can be written. Some systems return one error for a lock that
// is held and for a folder without permission.
func (s *Store) writable(path string) bool {
	f, err := os.OpenFile(filepath.Join(path, "LOCK"), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

func (s *Store) writeHolder(path, text string) error {
	f, err := s.fs.Create(s.fs.PathJoin(path, holderFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Close())
}

// holder reads the name of the folder's holder. The holder may not have written it yet.
func (s *Store) holder(path string) string {
	f, err := s.fs.Open(s.fs.PathJoin(path, holderFile))
	if err != nil {
		return "another process"
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, holderMaxBytes))
	if err != nil || len(b) < 2 {
		return "another process"
	}
	return string(b[:len(b)-1])
}

func (s *Store) release() error {
	if s.lock == nil {
		return nil
	}
	lock := s.lock
	s.lock = nil
	return lock.Close()
}

func (s *Store) open(path string) error {
	o := &pebble.Options{
		FS:                 &guard{s.fs, s.fatal},
		Lock:               s.lock,
		FormatMajorVersion: format,
		MemTableSize:       memTableBytes,
		CacheSize:          cacheBytes,
		MaxOpenFiles:       maxTables,
		WALBytesPerSync:    walBytesPerSync,
		Logger:             logger{s.logger, s.fatal},
		EventListener:      s.background.listener(),
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(bloomBits)
	}
	var err error
	if o.ErrorIfNotExists, err = hasStore(s.fs, path, s.Engine()); err != nil {
		return s.fault("list the folder", err)
	}
	if err = s.writeVersion(path); err != nil {
		return s.fault("write the folder's version", err)
	}
	db, err := s.openPebble(path, o)
	if err != nil {
		return err
	}
	s.db = db
	m, err := s.readMeta(db)
	if err == nil {
		err = s.checkLinks(&m)
	}
	if err == nil {
		s.meta.Store(&m)
		err = s.openJournal(path)
	}
	if err != nil {
		return errors.Join(err, db.Close())
	}
	s.background.onOpened()
	return nil
}

// openPebble opens Pebble. Each fault that Pebble finds in its files is damage; some make it panic.
func (s *Store) openPebble(path string, o *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: open: %w: %v\n%s", s, persistence.ErrCorrupt, r, debug.Stack())
		}
	}()
	db, err = pebble.Open(path, o)
	if err != nil && damaged(err) {
		return nil,
			fmt.Errorf(
				"%s: open: %w: a file of the folder is missing or damaged: %w; restore a backup",
				s, persistence.ErrCorrupt, err)
	}
	return db, s.fault("open", err)
}

// openJournal opens the journal's log and its head.
func (s *Store) openJournal(path string) error {
	folder := s.fs.PathJoin(path, journalFolder+s.Engine())
	h, err := s.openHead(path)
	if err != nil {
		return err
	}
	acknowledged := h.Acknowledged()
	if s.log, err = s.openLog(folder, s.meta.Load().Begin); err != nil {
		return errors.Join(err, h.Close())
	}
	seq, digest := s.log.End()
	end := head.Mark{Seq: seq, Digest: digest}
	if err = s.atLeast(end, acknowledged); err == nil {
		err = s.complete()
	}
	if err == nil && !h.Missing() {
		err = h.Advance(end)
	}
	if err != nil {
		return errors.Join(err, s.log.Close(), h.Close())
	}
	s.head = h
	return nil
}

// complete refuses a journal without a file that the older image, or a reader, needs.
func (s *Store) complete() error {
	m := s.meta.Load()
	from := max(m.Begin, m.Trimmed)
	if older, err := s.image(*m, 1); err == nil {
		from = max(from, older.Seq) // the journal is not trimmed above
	}
	if err := s.log.Complete(from); err != nil {
		return fmt.Errorf("%s: %w; restore a backup", s, err)
	}
	return nil
}

// openLog opens a log.
func (s *Store) openLog(folder string, begin uint64) (*wal.Log, error) {
	log, err := wal.Open(folder, wal.Options{FS: s.fs, Begin: begin, Fatal: s.fatal})
	return log, s.fault("open the journal", err)
}

// write commits to Pebble.
func (s *Store) write(what string, b *pebble.Batch, o *pebble.WriteOptions) error {
	return s.fault(what, b.Commit(o))
}

// syncWithin is the longest time until a projection is synced.
const syncWithin = time.Second

// syncSoon has all written rows synced before long. A killed exchange should not lose rows that are
// seconds old, and the next publication should have little to sync. The caller holds projections.
func (s *Store) syncSoon() {
	if s.unsynced == nil {
		s.unsynced = time.AfterFunc(syncWithin, s.sync)
	}
}

func (s *Store) sync() {
	if s.begin() != nil {
		return // Close has synced them
	}
	defer s.end()
	s.projections.Lock()
	s.unsynced = nil
	s.projections.Unlock()
	b := s.db.NewBatch()
	defer b.Close()
	if err := errors.Join(b.LogData(nil, nil),
		s.write("sync projections", b, pebble.Sync)); err != nil {
		s.logger.Warn("projections were not synced", "error", err)
	}
}

// Engine returns the id of the stored engine.
func (s *Store) Engine() string { return string(s.prefix[:len(s.prefix)-1]) }

// String names the store for people.
func (s *Store) String() string { return "pebble:" + s.dir }

// Size returns how many bytes tables and journal take on the disk.
func (s *Store) Size(context.Context) (int64, error) {
	if err := s.begin(); err != nil {
		return 0, err
	}
	defer s.end()
	return int64(s.db.Metrics().DiskSpaceUsage()) + s.log.Size(), nil
}

// Exclusive returns true: the folder is locked.
func (s *Store) Exclusive() bool { return true }

// HeadMissing reports whether the folder was opened without its HEAD and no append was acknowledged
// since.
func (s *Store) HeadMissing() bool { return s.head.Missing() }

// Close waits for the calls in progress, then frees the folder. No call may be made by a callback
// of another. A second Close does nothing.
func (s *Store) Close() error {
	s.life.Lock()
	if s.life.closed {
		s.life.Unlock()
		return nil
	}
	s.life.closed = true
	for s.life.calls > 0 {
		s.life.idle.Wait()
	}
	s.life.Unlock()
	return errors.Join(s.log.Close(), s.db.Close(), s.head.Close(), s.release())
}

// begin counts a call as in progress. The caller calls end, if begin returned nil.
func (s *Store) begin() error {
	s.life.Lock()
	defer s.life.Unlock()
	if s.life.closed {
		return errClosed
	}
	s.life.calls++
	return nil
}

func (s *Store) end() {
	s.life.Lock()
	defer s.life.Unlock()
	if s.life.calls--; s.life.calls == 0 {
		s.life.idle.Broadcast()
	}
}

// fault adds the failed operation to an error, and ErrCorrupt to damage.
func (s *Store) fault(what string, err error) error {
	if err == nil {
		return nil
	}
	if pebble.IsCorruptionError(err) || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %s: %w: %w", s, what, persistence.ErrCorrupt, err)
	}
	return fmt.Errorf("%s: %s: %w", s, what, err)
}

// get returns a copy of a value, nil if there is none.
func (s *Store) get(r pebble.Reader, key []byte) ([]byte, error) {
	v, c, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, s.fault("read", err)
	}
	b := append(make([]byte, 0, len(v)), v...) // not nil, also when it is empty
	return b, s.fault("read", c.Close())
}

// row is get for a value that is stored with a checksum.
func (s *Store) row(r pebble.Reader, key []byte) ([]byte, error) {
	v, err := s.get(r, key)
	if v == nil || err != nil {
		return nil, err
	}
	return s.unseal(key, v)
}

// unseal checks and removes a value's checksum.
func (s *Store) unseal(key, value []byte) ([]byte, error) {
	row, err := codec.At(key).Open(value)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", s, s.placeOf(key), err)
	}
	return row, nil
}

// exit ends the process.
func (s *Store) exit(err error) {
	if errors.Is(err, persistence.ErrCorrupt) {
		s.logger.Error("FATAL: the store is damaged", "store", s.String(), "error", err.Error())
		os.Exit(70) // EX_SOFTWARE: another start finds the same
	}
	// A promised write could not be made, and the content of the disk is unknown.
	s.logger.Error("FATAL: the store cannot be written", "store", s.String(), "error", err.Error())
	os.Exit(75) // EX_TEMPFAIL: the disk is full or failing; acknowledged records are safe
}

// logger passes Pebble's lines on. Fatalf ends the process, as Pebble requires. The guard has
// caught failed writes, so the cause is damage, or an error of the system.
type logger struct {
	log   *slog.Logger
	fatal func(error)
}

func (l logger) Infof(format string, args ...any) {
	l.log.Debug("pebble: " + fmt.Sprintf(format, args...))
}

func (l logger) Errorf(format string, args ...any) {
	l.log.Error("pebble: " + fmt.Sprintf(format, args...))
}

func (l logger) Fatalf(format string, args ...any) {
	err := fmt.Errorf("pebble: "+format, args...)
	for _, a := range args {
		if cause, ok := a.(error); ok && !damaged(cause) {
			l.fatal(err)
		}
	}
	l.fatal(fmt.Errorf("%w: %w; move the store's folder away, and restore a backup",
		persistence.ErrCorrupt, err))
}
