package folder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

const (
	identityName = "owner.id"
	// identityVersion is the file's format, and the only one that this program reads.
	identityVersion  = 4
	identityMaxBytes = 4096
)

// An Identity is the file that remembers a host's claims. The process that holds the folder's lock
// owns it.
//
//tidy:keep Of returns it
type Identity struct {
	dir string
	log *slog.Logger
}

// Of returns the identity of a folder. log hears of a file that cannot be used.
func Of(dir string, log *slog.Logger) *Identity { return &Identity{dir, log} }

// stored is the file's content.
type stored struct {
	Version int                 `json:"version"`
	Newest  persistence.Tenure  `json:"newest"`
	Before  *persistence.Tenure `json:"before,omitempty"`
	Seen    *persistence.Mark   `json:"seen,omitempty"`
	// Accepted belongs to Seen.
	Accepted uint64 `json:"accepted,omitempty"`
	// Lock is the number of the folder's serve.lock: a copy of the folder has another. 0: not
	// known.
	Lock uint64 `json:"lock,omitempty"`
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

// Load returns the claims in the file. With a missing or damaged file the host knows no owner of
// its own. That costs the start a wait, and no more.
func (i *Identity) Load() (persistence.Tenures, error) {
	name := filepath.Join(i.dir, identityName)
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return persistence.Tenures{}, nil
	}
	if err != nil {
		return persistence.Tenures{}, fmt.Errorf("the claims of this host to its store: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, identityMaxBytes))
	if err != nil {
		return persistence.Tenures{}, fmt.Errorf("the claims of this host to its store: %s: %w",
			name, err)
	}
	known, lock, err := parse(b)
	if here := i.lockNumber(); err == nil && lock != 0 && here != 0 && lock != here {
		i.log.Warn(
			"this data folder is a copy of another, or its serve.lock was removed: this start "+
				"waits for the store's owner as for a stranger", "file", name)
		known.Newest, known.Before = persistence.Tenure{}, persistence.Tenure{}
	}
	if err != nil {
		i.log.Warn(
			"the file with the claims of this host to its store cannot be used and is written "+
				"anew: this start waits for the owner as for a stranger",
			"file", name, "error", err)
		return persistence.Tenures{}, nil
	}
	return known, nil
}

// parse also returns the number of the lock that the claims were made under.
func parse(b []byte) (known persistence.Tenures, lock uint64, err error) {
	var s stored
	if err := json.Unmarshal(b, &s); err != nil {
		return known, 0, err
	}
	known = persistence.Tenures{Newest: s.Newest, Accepted: s.Accepted}
	if s.Before != nil {
		known.Before = *s.Before
	}
	if s.Seen != nil {
		known.Seen = *s.Seen
	}
	unused := known.Newest.ID == "" && s.Before == nil && s.Seen != nil // by any claim
	switch {
	case s.Version != identityVersion:
		return persistence.Tenures{}, 0, fmt.Errorf("it is of version %d, and this program reads "+
			"version %d", s.Version, identityVersion)
	case !codec.IsUnique(known.Newest.ID) && !unused,
		s.Before != nil && !codec.IsUnique(known.Before.ID):
		return persistence.Tenures{}, 0, errors.New("an id in it is not 32 hexadecimal digits")
	}
	return known, s.Lock, nil
}

// Save replaces the file, durably.
func (i *Identity) Save(known persistence.Tenures) error {
	s := stored{Version: identityVersion, Newest: known.Newest, Accepted: known.Accepted,
		Lock: i.lockNumber()}
	if known.Before.ID != "" {
		s.Before = &known.Before
	}
	if known.Seen != (persistence.Mark{}) || known.Newest.ID == "" {
		s.Seen = &known.Seen
	}
	b, err := json.Marshal(s)
	if err == nil {
		err = i.write(append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("the claim of this host to its store cannot be remembered: %w", err)
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
