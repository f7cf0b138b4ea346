package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"exchange/web"
)

// Names of the files in the data folder that have the files of pages.
const (
	pagesName      = "pages.kept"  // of the program that has served last
	olderPagesName = "pages.older" // of the other program before it
)

// keepPages keeps the files of this program's pages in the data folder for the next program, and
// returns those of the program before this one; nil: they are not known. A page that was open
// before an upgrade may ask for them, and so may a page of another node that has the program
// before. The process holds the folder.
func keepPages(dir, hash string, pack func() []byte, log *slog.Logger) *web.Older {
	name, olderName := filepath.Join(dir, pagesName), filepath.Join(dir, olderPagesName)
	older := readPages(name, log)
	isOther := older != nil && older.Hash() != hash
	if !isOther {
		isKept := older != nil
		if older = readPages(olderName, log); older != nil && older.Hash() == hash {
			older = nil
		}
		if isKept {
			return older
		}
	}
	err := writeBeside(dir, func(f *os.File) (string, error) {
		if _, err := f.Write(pack()); err != nil || !isOther {
			return name, err
		}
		return name, os.Rename(name, olderName)
	})
	if err != nil {
		log.Warn("the files of the pages cannot be kept for the next program: pages that are "+
			"open during an upgrade may have to be loaded again", "file", name, "error", err)
	}
	return older
}

// readPages returns the files of pages that a file has; nil: the file is missing or cannot be used,
// which the log says.
func readPages(name string, log *slog.Logger) *web.Older {
	var older *web.Older
	packed, err := readOrdinary(name, web.PackedBytes)
	if err == nil {
		older, err = web.Unpack(packed)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("the kept files of a program's pages cannot be used, and are not served", "file",
			name, "error", err)
	}
	return older
}
