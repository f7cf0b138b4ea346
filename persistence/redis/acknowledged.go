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

// openHead opens the file that says up to where appends were acknowledged, if the options name one.
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

// version is that of all that is in a Redis, and raising any is raising it. A claim notes it.
// unnamed is the newest version of programs that noted none.
const (
	version = 5
	unnamed = 4
)

// otherVersion returns the error of a Redis with a version that is noted, "" if none is.
func (s *Store) otherVersion(noted string) error {
	found := uint64(unnamed)
	if noted != "" {
		var err error
		if found, err = s.number("the store's version", noted); err != nil {
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

// whole refuses a Redis whose journal has lost acknowledged records. It does so before this process
// becomes the owner, because another process may serve from that Redis.
func (s *Store) whole(ctx context.Context, opts *Options) error {
	m, err := fields(s.history.HMGet(ctx, s.head(), "seq", "dig", "epoch", "version"))
	if err != nil {
		return s.fault("read the journal's end", err)
	}
	if m[3] != strconv.Itoa(version) && (m[0] != "" || m[2] != "") {
		return s.otherVersion(m[3])
	}
	end, err := s.mark(m[0], m[1])
	if err != nil {
		return err
	}
	switch empty := end == (head.Mark{}); {
	case empty && opts.Anew && s.acknowledged.Acknowledged() != end:
		return s.acknowledged.Reset(0)
	case empty && opts.Known && !opts.Anew:
		return fmt.Errorf("%s: %w, and this data folder knows a store there: bring its files "+
			"back; serve --new begins a new exchange", s.name, persistence.ErrAbsent)
	}
	return s.atLeast(end)
}

// mark returns a journal's end as Redis tells it; the digest is unknown where a journal has no
// records.
func (s *Store) mark(seq, digest string) (m head.Mark, err error) {
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
			"replica, is an older copy, or its file was cut off, and what it lacks is lost to "+
			"all who were told of it; "+
			"bring back the Redis that has it, or restore a backup; to accept the loss and go on "+
			"with what is there, remove %s", s.name, persistence.ErrCorrupt, acknowledged.Seq, what,
		s.acknowledged.Name())
}
