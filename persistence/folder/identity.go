package folder

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"exchange/core/wire"
	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

const (
	identityName = "owner.id"
	// identityVersion is the file's format, and the only one that this program reads.
	identityVersion  = 4
	identityMaxBytes = 4096
)

// An Identity is the file that stores a host's claims, and the histories of its store and its
// archive. The process that holds the folder's lock owns it. Its methods, and those of its
// Memories, may be called from any goroutine.
//
//tidy:keep Of returns it
type Identity struct {
	dir    string
	log    *slog.Logger
	mu     sync.Mutex // held while the file is read or written
	warned bool       // the file's fault was logged; guarded by mu
}

// Of returns the identity of a folder. log receives a warning if the file cannot be used.
func Of(dir string, log *slog.Logger) *Identity { return &Identity{dir: dir, log: log} }

// stored is the file's content.
type stored struct {
	Version int                    `json:"version"`
	Newest  persistence.Ownership  `json:"newest"`
	Before  *persistence.Ownership `json:"before,omitempty"`
	Seen    *persistence.Mark      `json:"seen,omitempty"`
	// Accepted belongs to Seen.
	Accepted uint64 `json:"accepted,omitempty"`
	// Lock is the number of the folder's serve.lock: a copy of the folder has another. 0: unknown.
	Lock uint64 `json:"lock,omitempty"`
	// Store and Archive are the ids of the Memories, in hex, the newest last.
	Store   []string `json:"store,omitempty"`
	Archive []string `json:"archive,omitempty"`
}

// lockNumber returns the number of the folder's serve.lock; 0 if the file is missing, or the system
// gives no number.
func (i *Identity) lockNumber() uint64 {
	info, err := os.Stat(filepath.Join(i.dir, lockName))
	if err != nil {
		return 0
	}
	return number(info)
}

// Load returns the claims in the file. With a missing or damaged file the host has no claims: the
// start only waits longer.
func (i *Identity) Load() (claims persistence.Ownerships, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	s, err := i.read()
	if err != nil {
		return claims, err
	}
	claims = persistence.Ownerships{Newest: s.Newest, Accepted: s.Accepted}
	if s.Before != nil {
		claims.Before = *s.Before
	}
	if s.Seen != nil {
		claims.Seen = *s.Seen
	}
	return claims, nil
}

// read returns the content of the file; of one that is missing or cannot be used, none. A copy of a
// folder has no claims of its own. The caller holds mu.
func (i *Identity) read() (s stored, err error) {
	name := filepath.Join(i.dir, identityName)
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("the claims of this host to its store: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, identityMaxBytes))
	if err != nil {
		return s, fmt.Errorf("the claims of this host to its store: %s: %w", name, err)
	}
	if s, err = parse(b); err != nil {
		i.warn("the file with the claims of this host to its store, and the histories of that and "+
			"of its archive, cannot be used and is rewritten: this start waits for the owner "+
			"as for a stranger, and accepts the present store and archive",
			"file", name, "error", err)
		return stored{}, nil
	}
	here := i.lockNumber()
	if s.Newest.ID != "" && s.Lock != 0 && here != 0 && s.Lock != here {
		i.warn("this data folder is a copy of another, or its serve.lock was removed: this start "+
			"waits for the store's owner as for a stranger", "file", name)
		s.Newest, s.Before = persistence.Ownership{}, nil
	}
	return s, nil
}

// warn logs the fault of the file, once. The caller holds mu.
func (i *Identity) warn(what string, args ...any) {
	if !i.warned {
		i.warned = true
		i.log.Warn(what, args...)
	}
}

func parse(b []byte) (s stored, err error) {
	err = json.Unmarshal(b, &s)
	if form := (*json.UnmarshalTypeError)(nil); err != nil &&
		!(errors.As(err, &form) && s.Version > identityVersion) { // a newer one may have others
		return s, err
	}
	unused := s.Newest.ID == "" && s.Before == nil && s.Seen != nil // by any claim
	_, err = histories(slices.Concat(s.Store, s.Archive))
	switch {
	case s.Version != identityVersion:
		return s, wire.Version(uint64(max(s.Version, 0)), identityVersion)
	case !codec.IsUnique(s.Newest.ID) && !unused,
		s.Before != nil && !codec.IsUnique(s.Before.ID):
		return s, errors.New("an id in it is not 32 hexadecimal digits")
	}
	return s, err
}

// Save replaces the claims in the file, durably.
func (i *Identity) Save(claims persistence.Ownerships) error {
	return i.change("the claim of this host to its store", func(s *stored) {
		s.Newest, s.Accepted, s.Before, s.Seen = claims.Newest, claims.Accepted, nil, nil
		if claims.Before.ID != "" {
			s.Before = &claims.Before
		}
		if claims.Seen != (persistence.Mark{}) {
			s.Seen = &claims.Seen
		}
	})
}

// Restored notes that the store was filled from a backup, and has not been served since. The
// previous archive does not belong to it.
func (i *Identity) Restored() error {
	return i.change("the restore of the store", func(s *stored) {
		s.Store, s.Archive = []string{hex.EncodeToString(make([]byte, 16))}, nil
	})
}

// change replaces the file by a changed one, durably. what names the change in errors.
func (i *Identity) change(what string, change func(*stored)) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	s, err := i.read()
	if err != nil {
		return err
	}
	change(&s)
	s.Version, s.Lock = identityVersion, i.lockNumber()
	if s.Newest.ID == "" && s.Seen == nil {
		s.Seen = new(persistence.Mark) // no claim was made
	}
	b, err := json.Marshal(s)
	if err == nil {
		err = i.write(append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("%s cannot be remembered: %w", what, err)
	}
	return nil
}

func (i *Identity) write(b []byte) error {
	// One process has the folder, so one name is enough, and a crash leaves one file at most.
	unfinished, name := filepath.Join(i.dir, identityName+".new"),
		filepath.Join(i.dir, identityName)
	f, err := os.OpenFile(unfinished, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(b); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(unfinished, name); err != nil {
		return err
	}
	dir, err := os.Open(i.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
