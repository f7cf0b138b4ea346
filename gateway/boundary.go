package gateway

import (
	"bytes"
	"errors"
	"io"

	"github.com/valyala/fasthttp"

	"exchange/gateway/api"
)

// Where one request ends and the next begins must be the same for all that read them, or a request
// can be hidden from a proxy in the body of another. The server under this reads more than the
// standard has.

// boundaries follow the requests of a connection as they arrive, and pass on what can be read in
// one way only. Each line of a head, and the line that ends a chunked body, end with CR LF; a field
// has a name without blanks and does not go on in the next line; there is one length, or chunks and
// no length; no field stands behind chunks. The first line of a request, and empty lines before it,
// may end with LF alone, as the standard lets them: nothing in it says where a request ends.
//
// What is wrong is not passed on: the server gets what came before it, and then an error.
type boundaries struct {
	part     uint8
	chunked  bool   // of the head
	upgrade  bool   // it asks for a websocket
	off      bool   // what comes is no HTTP any more
	broken   bool   // nothing more is passed on
	named    bool   // the name of the field is over
	lengths  int    // of the head
	left     uint64 // bytes of the body, or of a chunk and its CR LF, that are still to come
	size     int    // bytes of the line so far
	last     byte   // of them
	beginsBy [48]byte
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

var errBoundary = errors.New("gateway: it is not clear where a request ends")

// read reads for the server.
func (b *boundaries) read(from io.Reader, p []byte) (int, error) {
	if b.broken {
		return 0, errBoundary
	}
	n, err := from.Read(p)
	if b.off {
		return n, err
	}
	if n = b.follow(p[:n]); n == 0 && b.broken {
		return 0, errBoundary
	}
	return n, err
}

// follow takes the next bytes, and says how many of them are good.
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
		if b.size > 0 || end < 0 { // the line comes in pieces
			if b.size < len(b.beginsBy) {
				copy(b.beginsBy[b.size:], line)
			}
			text = b.beginsBy[:min(b.size+len(line), len(b.beginsBy))]
		}
		if b.size += len(line); len(line) > 0 {
			b.last = line[len(line)-1]
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

// none reports whether nothing of a next request has come.
func (b *boundaries) none() bool {
	return b.part == beforeHead && b.size == 0 && !b.off && !b.broken
}

// name looks at the next piece of a line whose field's name is not over, and says how much of it is
// good: all, unless the name is empty, has blanks, or belongs to the line before.
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

// next is the part behind a body or a chunk.
func (b *boundaries) next() {
	if b.part == inChunk {
		b.part = inChunkSize
		return
	}
	b.end()
}

// end is behind a request.
func (b *boundaries) end() { *b = boundaries{off: b.upgrade} }

// endOfLine is false of a line that is not what it must be. text is what it begins with.
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
	if whole && empty { // behind chunks
		b.end()
	}
	return whole && empty
}

// field notes what a field says about the body.
func (b *boundaries) field(line []byte) bool {
	if c := line[0] | 0x20; c != 'c' && c != 't' && c != 'u' { // most are none of these
		return true
	}
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.Trim(value, " \t\r")
	switch {
	case len(name) == len(lengthName) && bytes.EqualFold(name, lengthName):
		n, ok := api.Integer(value)
		b.left, b.lengths = n, b.lengths+1
		return ok && b.size <= len(b.beginsBy)
	case len(name) == len(transferName) && bytes.EqualFold(name, transferName):
		b.chunked = bytes.EqualFold(value, chunkedCoding)
		return b.chunked && b.size <= len(b.beginsBy)
	case len(name) == len(upgradeName) && bytes.EqualFold(name, upgradeName):
		b.upgrade = b.upgrade || bytes.EqualFold(value, websocketProtocol)
	}
	return true
}

var (
	lengthName        = []byte("Content-Length")
	transferName      = []byte("Transfer-Encoding")
	chunkedCoding     = []byte("chunked")
	upgradeName       = []byte("Upgrade")
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

// chunk reads the line before a chunk.
func (b *boundaries) chunk(line []byte) bool {
	n, digits := uint64(0), 0
	for digits < len(line) && hexDigits[line[digits]] {
		c := uint64(line[digits] | 0x20)
		if c -= '0'; c > 9 {
			c -= 'a' - '0' - 10
		}
		n, digits = n<<4|c, digits+1
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

// isSpoken reports whether a head has a version of HTTP that is spoken here.
func isSpoken(h *fasthttp.RequestHeader) bool {
	version := h.Protocol()
	return bytes.Equal(version, http11) || bytes.Equal(version, http10)
}

var http11, http10 = []byte("HTTP/1.1"), []byte("HTTP/1.0")
