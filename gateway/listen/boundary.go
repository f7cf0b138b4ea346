package listen

import (
	"bytes"
	"errors"
	"io"
	"strconv"
)

// All readers of a connection must agree on the end of each request. Otherwise a client can hide a
// request from a proxy in the body of another. The server above accepts more forms than the
// standard.

// boundaries follow the requests of a connection as they arrive, and pass on only unambiguous
// bytes. Each line of a head, and the line that ends a chunked body, ends with CR LF. A field has a
// name without blanks and does not continue on the next line. A head has one length, or chunks and
// no length. No field follows the chunks. The first line of a request, and empty lines before that
// line, may end with LF without CR, as the standard allows: nothing there decides where a request
// ends.
//
// At malformed bytes the server gets the bytes before them, and then an error. An empty Host, which
// the standard allows for an address without a name, is passed on as noName, because the server
// refuses it.
type boundaries struct {
	part     uint8
	chunked  bool   // the head has Transfer-Encoding: chunked
	upgrade  bool   // the head asks for a websocket
	off      bool   // the rest is no longer HTTP
	broken   bool   // nothing more is passed on
	named    bool   // the name of the field is complete
	lengths  int    // number of Content-Length fields in the head
	left     uint64 // missing bytes of the body, or of a chunk and its CR LF
	size     int    // bytes of the line so far
	last     byte   // last byte of the line so far
	beginsBy [48]byte
	hosts    []int  // indexes of noName in the bytes of the last read
	rest     []byte // bytes after noName that had no room, for the next read
}

// Parts of a request.
const (
	beforeHead uint8 = iota
	inHead
	inBody
	inChunkSize
	inChunk
	behindChunks
)

var errBoundary = errors.New("gateway: the length of a request is ambiguous")

// read reads from a connection for the server.
func (b *boundaries) read(from io.Reader, p []byte) (int, error) {
	if len(b.rest) > 0 {
		n := copy(p, b.rest)
		b.rest = b.rest[n:]
		return n, nil
	}
	if b.broken {
		return 0, errBoundary
	}
	n, err := from.Read(p)
	if b.off {
		return n, err
	}
	b.hosts = b.hosts[:0]
	if n = b.follow(p[:n]); n == 0 && b.broken {
		return 0, errBoundary
	}
	if len(b.hosts) > 0 {
		n = b.nameHosts(p, n)
	}
	if len(b.rest) > 0 {
		err = nil // the error repeats after these bytes
	}
	return n, err
}

// noName replaces an empty Host. No answer depends on it.
const noName = '-'

// nameHosts puts noName into the first n bytes of p, and returns the new number of bytes.
func (b *boundaries) nameHosts(p []byte, n int) int {
	var all []byte
	from := 0
	for _, at := range b.hosts {
		all = append(append(all, p[from:at]...), noName)
		from = at
	}
	all = append(all, p[from:n]...)
	n = copy(p, all)
	b.rest = all[n:]
	return n
}

// follow takes the next bytes, and returns the number of valid ones.
func (b *boundaries) follow(p []byte) (good int) {
	for good < len(p) && !b.off {
		if b.part == inBody || b.part == inChunk {
			n := min(b.left, uint64(len(p)-good))
			good += int(n)
			if b.left -= n; b.left == 0 {
				b.next()
			}
			continue
		}
		end := bytes.IndexByte(p[good:], '\n')
		line := p[good:]
		if end >= 0 {
			line = line[:end]
		}
		if b.part == inHead && !b.named {
			if n := b.name(line); n < len(line) {
				b.broken = true
				return good + n
			}
		}
		text := line[:min(len(line), len(b.beginsBy))]
		if b.size > 0 || end < 0 { // the line is split over several reads
			if b.size < len(b.beginsBy) {
				copy(b.beginsBy[b.size:], line)
			}
			text = b.beginsBy[:min(b.size+len(line), len(b.beginsBy))]
		}
		if b.size += len(line); len(line) > 0 {
			b.last = line[len(line)-1]
		}
		if b.part == inHead && len(line) > 0 && b.isEmptyHost(text) {
			b.hosts = append(b.hosts, good+len(line)-1)
		}
		if good += len(line); end < 0 {
			return good
		}
		if b.broken = !b.endOfLine(text); b.broken {
			return good
		}
		good++
		b.size, b.last, b.named = 0, 0, false
	}
	return len(p)
}

// isEmptyHost reports whether the line so far is a Host without a value, and its CR.
func (b *boundaries) isEmptyHost(text []byte) bool {
	if b.last != '\r' || b.size != len(text) || text[0]|0x20 != 'h' {
		return false
	}
	name, value, _ := bytes.Cut(text[:len(text)-1], []byte{':'})
	return len(name) == len(hostName) && bytes.EqualFold(name, hostName) &&
		len(bytes.Trim(value, " \t")) == 0 && len(name) < len(text)-1
}

// none reports whether no byte of a next request has come.
func (b *boundaries) none() bool {
	return b.part == beforeHead && b.size == 0 && !b.off && !b.broken
}

// name checks the next piece of a line before the end of its field's name. It returns the number of
// good bytes: all, unless the name is empty, has blanks, or continues the line before.
func (b *boundaries) name(piece []byte) int {
	for i, c := range piece {
		switch c {
		case ' ', '\t':
			return i
		case ':':
			b.named = true
			if b.size+i == 0 {
				return i
			}
			return len(piece)
		}
	}
	return len(piece)
}

// next starts the part after a body or a chunk.
func (b *boundaries) next() {
	if b.part == inChunk {
		b.part = inChunkSize
		return
	}
	b.end()
}

// end starts the next request.
func (b *boundaries) end() { *b = boundaries{off: b.upgrade, hosts: b.hosts} }

// endOfLine ends a line, and returns false if the line is wrong. text is the line's begin.
func (b *boundaries) endOfLine(text []byte) bool {
	whole := b.last == '\r'
	empty := b.size == 0 || b.size == 1 && whole
	switch b.part {
	case beforeHead:
		if !empty {
			b.part = inHead
		}
		return true
	case inHead:
		if !whole {
			return false
		}
		if !empty {
			return b.named && b.field(text)
		}
		return b.endOfHead()
	case inChunkSize:
		return whole && b.chunk(text)
	}
	if whole && empty { // after chunks
		b.end()
	}
	return whole && empty
}

// field records a field about the body.
func (b *boundaries) field(line []byte) bool {
	if c := line[0] | 0x20; c != 'c' && c != 't' && c != 'u' { // true of most fields
		return true
	}
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.Trim(value, " \t\r")
	switch {
	case len(name) == len(lengthName) && bytes.EqualFold(name, lengthName):
		b.lengths++
		return b.size <= len(b.beginsBy) && b.length(value)
	case len(name) == len(transferName) && bytes.EqualFold(name, transferName):
		b.chunked = bytes.EqualFold(value, chunkedCoding)
		return b.chunked && b.size <= len(b.beginsBy)
	case len(name) == len(upgradeName) && bytes.EqualFold(name, upgradeName):
		// a long list may name it after the part of the line that is kept
		b.upgrade = b.upgrade || b.size > len(b.beginsBy) || namesWebsocket(value)
	}
	return true
}

// namesWebsocket reports whether a list of protocols has the websocket's.
func namesWebsocket(list []byte) bool {
	for protocol := range bytes.SplitSeq(list, []byte{','}) {
		if bytes.EqualFold(bytes.TrimSpace(protocol), websocketProtocol) {
			return true
		}
	}
	return false
}

var (
	lengthName        = []byte("Content-Length")
	transferName      = []byte("Transfer-Encoding")
	chunkedCoding     = []byte("chunked")
	upgradeName       = []byte("Upgrade")
	hostName          = []byte("Host")
	websocketProtocol = []byte("websocket")
)

func (b *boundaries) endOfHead() bool {
	switch {
	case b.lengths > 1, b.lengths > 0 && b.chunked:
		return false
	case b.chunked:
		b.part = inChunkSize
	case b.left > 0:
		b.part = inBody
	default:
		b.end()
	}
	return true
}

// maxDigits is the most digits of a length.
const maxDigits = 19

// length records the length of a body, and returns false if the text is not a length.
func (b *boundaries) length(text []byte) bool {
	if len(text) > maxDigits {
		return false
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	b.left = n
	return err == nil
}

// chunk reads the line before a chunk.
func (b *boundaries) chunk(line []byte) bool {
	n, digits := uint64(0), 0
	for ; digits < len(line); digits++ {
		c, letter := line[digits]-'0', line[digits]|0x20-'a'
		if letter < 6 {
			c = letter + 10
		} else if c > 9 {
			break
		}
		n = n<<4 | uint64(c)
	}
	if digits == 0 || digits > 15 {
		return false
	}
	b.part, b.left = inChunk, n+2
	if n == 0 {
		b.part, b.left = behindChunks, 0
	}
	return true
}

// Speaks reports whether boundaries can find the end of requests in a version of HTTP.
func Speaks(version []byte) bool {
	return bytes.Equal(version, http11) || bytes.Equal(version, http10)
}

var http11, http10 = []byte("HTTP/1.1"), []byte("HTTP/1.0")
