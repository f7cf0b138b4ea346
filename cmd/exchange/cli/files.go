package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// StreamTimeout bounds a long answer, and so the time of writing a file. It is longer than the
// server's own bound, one hour.
const StreamTimeout = time.Hour + time.Minute

// unfinished is the pattern of the names of files that are being written.
const unfinished = ".exchange-unfinished-*"

// WriteBeside writes a file in a folder. It gets the name that write returns once it is whole and
// durable, and not before; a file of that name is replaced. Only its owner can read it.
func WriteBeside(folder string, write func(*os.File) (name string, err error)) error {
	removeLeftovers(folder, time.Now())
	f, err := os.CreateTemp(folder, unfinished) // with mode 0600
	if err != nil {
		return WithExit(SystemCode(err), fmt.Errorf("nothing can be written in %s: %w",
			filepath.Clean(folder), err))
	}
	defer os.Remove(f.Name()) //nolint:errcheck // the other name of the file, if it got one, stays
	name, err := write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return WithExit(ExitUnavailable, err) // such as a full disk
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return WithExit(SystemCode(err), fmt.Errorf("the file cannot be renamed: %w", err))
	}
	return WithExit(ExitUnavailable, SyncFolder(folder))
}

// MayMakeFolder returns why makeFolder would not make a folder: the one above it is missing.
func MayMakeFolder(dir string) error { return WithExit(ExitUsage, MissingAbove(dir)) }

// MissingAbove returns an error if the parent of a folder to be made is missing: a disk may not be
// mounted, or the name be wrong.
func MissingAbove(dir string) error {
	above := filepath.Dir(filepath.Clean(dir))
	if _, err := os.Stat(above); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the folder %s for %s does not exist: create it, or mount "+
			"its disk; nothing was written", above, filepath.Base(dir))
	}
	return nil
}

// MakeFolder makes a folder, unless it exists. what names it in errors.
func MakeFolder(what, dir string) error {
	if err := MayMakeFolder(dir); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o700)
	if info, e := os.Stat(dir); err == nil || e == nil && info.IsDir() {
		return nil
	}
	return WithExit(SystemCode(err), fmt.Errorf("%s cannot be made: %w", what, err))
}

// SyncFolder makes a folder's list of files durable.
func SyncFolder(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// removeLeftovers removes the files of commands that were killed. A file not written to for longer
// than a long answer may take belongs to no command any longer.
func removeLeftovers(folder string, now time.Time) {
	// A folder that cannot be read cannot be written either, and the command reports that soon.
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		if ours, err := filepath.Match(unfinished, e.Name()); err != nil || !ours {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() &&
			now.Sub(info.ModTime()) > StreamTimeout {
			_ = os.Remove(filepath.Join(folder, e.Name())) // a file that stays does no harm
		}
	}
}

// CheckReplaceable returns nil if a file can get this name without replacing anything but a file.
func CheckReplaceable(flag, name string) error {
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return Usage("%s cannot be written: %w", flag, err)
	case info.Mode().IsRegular():
		return nil
	}
	kind := "no ordinary file"
	switch {
	case info.IsDir():
		kind = "a folder"
	case info.Mode()&fs.ModeSymlink != 0:
		kind = "a symbolic link"
	case info.Mode()&fs.ModeNamedPipe != 0:
		kind = "a pipe"
	case info.Mode()&fs.ModeDevice != 0:
		kind = "a device"
	case info.Mode()&fs.ModeSocket != 0:
		kind = "a socket"
	}
	return Usage("%s is %q, which is %s: name an ordinary file, or one that is not there yet", flag,
		name, kind)
}

// ReadOrdinary returns the text of an ordinary file of at most most bytes. fs.ErrNotExist: no file.
func ReadOrdinary(name string, most int64) ([]byte, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no ordinary file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(text)) > most:
		return nil, fmt.Errorf("it has more than %d bytes", most)
	}
	return text, nil
}

// CleanToken returns the token without the line's end. It must be printable ASCII for a header.
func CleanToken(text, source string) (string, error) {
	token := strings.TrimSpace(text)
	if token == "" {
		return "", fmt.Errorf("%s holds no operator's token: it is empty", source)
	}
	for i := range len(token) {
		if token[i] <= ' ' || token[i] > '~' {
			return "",
				fmt.Errorf(
					"%s holds no operator's token: a token is one word of printable characters",
					source)
		}
	}
	return token, nil
}
