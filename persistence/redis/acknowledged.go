package redis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/head"
)

// HeadFile is the usual name of Options.Head, in the exchange's data folder.
const HeadFile = "HEAD.redis"

// openHead opens the file with the end of the acknowledged appends, if the options name one.
func (s *Store) openHead(opts *Options) (err error) {
	switch {
	case opts.Head == "":
		return nil
	case opts.Fill:
		s.acknowledged, err = head.OpenOld(vfs.Default, opts.Head)
	default:
		s.acknowledged, err = head.Open(vfs.Default, opts.Head)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// version covers all content of a Redis: raising one part's raises it. A claim stores it. unnamed
// is the newest version of programs that stored none.
const (
	version = 5
	unnamed = 4
)

// otherVersion returns the error of a Redis with a stored version; "": none.
func (s *Store) otherVersion(stored string) error {
	found := uint64(unnamed)
	if stored != "" {
		var err error
		if found, err = s.number("the store's version", stored); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", s.name, persistence.OtherVersion(found, version))
}

// Readable returns the ErrVersion of a file of another version that Options.Head names. It changes
// nothing.
func Readable(file string) error { return head.Readable(vfs.Default, file) }

// HeadMissing reports whether the store was opened without its HEAD and no append was acknowledged
// since.
func (s *Store) HeadMissing() bool { return s.acknowledged.Missing() }

// checkComplete refuses a Redis whose journal has lost acknowledged records. It does so before this
// process becomes the owner, because another process may serve from that Redis.
func (s *Store) checkComplete(ctx context.Context, opts *Options) error {
	m, err := fields(s.history.HMGet(ctx, s.head(), "seq", "dig", "epoch", "version"))
	if err != nil {
		return s.fault("read the journal's end", err)
	}
	if m[3] != strconv.Itoa(version) && (m[0] != "" || m[2] != "") {
		return s.otherVersion(m[3])
	}
	end, err := s.parseMark(m[0], m[1])
	if err != nil {
		return err
	}
	switch empty := end == (head.Mark{}); {
	case empty && opts.StartNew && s.acknowledged.Acknowledged() != end:
		return s.acknowledged.Reset(0)
	case empty && opts.MustExist && !opts.StartNew:
		return fmt.Errorf("%s: %w, and this data folder has used a store there: bring its files "+
			"back; serve --new begins a new exchange", s.name, persistence.ErrAbsent)
	}
	return s.atLeast(end)
}

// mark returns a journal's end from Redis's texts; the digest is unknown for a journal without
// records.
func (s *Store) parseMark(seq, digest string) (m head.Mark, err error) {
	if seq != "" {
		if m.Seq, err = s.number("the journal's end", seq); err != nil {
			return m, err
		}
	}
	if digest != "" {
		if m.Digest, err = strconv.ParseUint(digest, 16, 64); err != nil {
			return m, fmt.Errorf("%s: %w: the digest at the journal's end is %q", s.name,
				persistence.ErrCorrupt, digest)
		}
	}
	return m, nil
}

// atLeast refuses a journal that ends before the acknowledged end, or there with another batch.
func (s *Store) atLeast(end head.Mark) error {
	acknowledged := s.acknowledged.Acknowledged()
	if s.fill || acknowledged.Fits(end) {
		return nil
	}
	what := fmt.Sprintf("ends at %d", end.Seq)
	if end.Seq == acknowledged.Seq {
		what = "has another batch there"
	}
	return fmt.Errorf(
		"%s: %w: appends up to sequence %d were acknowledged, and this Redis %s: it was a "+
			"replica, is an older copy, or its file was cut off, and the rest is lost, "+
			"although it was acknowledged; "+
			"bring back the Redis that has the rest, or restore a backup; to accept the "+
			"loss and continue with this content, remove %s", s.name, persistence.ErrCorrupt,
		acknowledged.Seq, what, s.acknowledged.Name())
}
