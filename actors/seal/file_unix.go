//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package seal

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock keeps other commands from changing a file, until unlock or the process's end. It locks the
// file itself: an exchange may be running in the folder.
func lock(file string) (unlock func(), err error) {
	for {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		same := false
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			same, err = still(f, file)
		}
		if same {
			return func() { f.Close() }, nil //nolint:errcheck // it frees the lock
		}
		f.Close() //nolint:errcheck // nothing was written
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errBusy
		}
		if err != nil {
			return nil, err
		}
	}
}

// still reports whether an open file still has its name. Another command may have replaced it.
func still(f *os.File, name string) (bool, error) {
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	now, err := os.Stat(name)
	return err == nil && os.SameFile(mine, now), err
}

// chown is replaced by tests: not every user may change a file's owner.
var chown = (*os.File).Chown

// keepOwner gives a new, empty file the owner and group of the file like.
func keepOwner(f *os.File, like string) error {
	want, err := ownerOf(os.Stat(like))
	if err != nil {
		return err
	}
	have, err := ownerOf(f.Stat())
	if err != nil || have == want {
		return err
	}
	if err := chown(f, int(want.uid), int(want.gid)); err != nil {
		return fmt.Errorf(
			"%s belongs to user %d and group %d, and would not belong to them any more (run this "+
				"as that user): %w", like, want.uid, want.gid, err)
	}
	return nil
}

type owner struct{ uid, gid uint32 }

func ownerOf(info os.FileInfo, err error) (owner, error) {
	if err != nil {
		return owner{}, err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return owner{}, errors.ErrUnsupported
	}
	return owner{s.Uid, s.Gid}, nil
}
