package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A process keeps the files of its pages beside its data, so that the next program can serve them
// to the pages that are open then. It keeps them packed:
//
//	exchange pages 1 HASH
//	gzip of the text whose SHA-256 is HASH: see textOf
//
// HASH has 64 hexadecimal digits, of which addresses have the first 16.
const packedHead = "exchange pages 1 "

// PackedBytes is the most bytes of what Unpack takes. unpackedBytes and unpackedFiles bound what is
// in it.
const (
	PackedBytes   = 4 << 20
	unpackedBytes = 8 << 20
	unpackedFiles = 1000
)

// Hash returns the hash of this program's files, which is in their addresses.
func Hash() string { return made().hash }

// Pack returns this program's files as Unpack takes them.
func Pack() []byte { return pack(contents()) }

func pack(all map[string][]byte) []byte {
	text := textOf(all)
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%x\n", packedHead, sha256.Sum256(text))
	w := gzip.NewWriter(&b)
	w.Write(text) //nolint:errcheck // a buffer takes everything
	w.Close()     //nolint:errcheck // likewise
	return b.Bytes()
}

// An Older is the files of another program's pages, without its HTML. A nil Older has none.
type Older struct {
	hash   string
	assets func() map[string]*File
}

// Hash returns the hash that is in the addresses of the files.
func (o *Older) Hash() string { return o.hash }

// Asset returns the file at an address below Folder, nil if there is none.
func (o *Older) Asset(address string) *File {
	if o == nil || !strings.HasPrefix(address, Folder+o.hash+"/") {
		return nil
	}
	return o.assets()[address]
}

// Unpack returns the files that Pack has packed, once their hash has proved to be right. Their
// names become parts of addresses, and nothing else.
func Unpack(packed []byte) (*Older, error) {
	if len(packed) > PackedBytes {
		return nil, fmt.Errorf("it is larger than %d bytes", PackedBytes)
	}
	head, rest, _ := bytes.Cut(packed, []byte("\n"))
	hash, known := strings.CutPrefix(string(head), packedHead)
	if !known {
		return nil, errors.New("it does not begin as such a file of this format does")
	}
	r, err := gzip.NewReader(bytes.NewReader(rest))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, unpackedBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > unpackedBytes {
		return nil, fmt.Errorf("it has more than %d bytes, unpacked", unpackedBytes)
	}
	if is := fmt.Sprintf("%x", sha256.Sum256(text)); is != hash {
		return nil, fmt.Errorf("its content has the hash %s, and not the one that it names", is)
	}
	all, err := filesOf(text)
	if err != nil {
		return nil, err
	}
	o := &Older{hash: hash[:hashDigits]}
	o.assets = sync.OnceValue(func() map[string]*File {
		assets := map[string]*File{}
		for name, content := range all {
			// As they are: how another program writes its comments is not known here.
			if kind := contentType(name); kind != "" {
				assets[Folder+o.hash+"/"+name] = newFile(kind, content)
			}
		}
		return assets
	})
	return o, nil
}

// fileName is the form of the names in a text.
var fileName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$`)

// filesOf returns the files of a text that textOf has made.
func filesOf(text []byte) (map[string][]byte, error) {
	all := map[string][]byte{}
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		name, digits, _ := strings.Cut(string(line), " ")
		size, err := strconv.ParseUint(digits, 10, 32)
		if err != nil || !fileName.MatchString(name) || size > uint64(len(rest)) {
			return nil, fmt.Errorf("it has no file behind the line %.60q", line)
		}
		if all[name] != nil || len(all) == unpackedFiles {
			return nil, fmt.Errorf("it has a second %.60q, or more than %d files", name,
				unpackedFiles)
		}
		all[name], text = slices.Clip(rest[:size]), rest[size:]
	}
	return all, nil
}
