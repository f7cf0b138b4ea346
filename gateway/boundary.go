package gateway

import (
	"bytes"
	"errors"
	"io"
)

// boundaries follow the requests of a connection as they arrive, for what the server under this does
// not see to: each line of a head, and the line that ends a chunked body, end with CR LF. The server
// waits without end for the rest of a head whose lines end with LF alone, and takes LF alone for the
// end of a chunked body. The first line of a request, and empty lines before it, may end with LF.
//
// What is wrong is not passed on: the server gets what came before it, and then an error.
type boundaries struct {
	part     uint8
	chunked  bool   // of the head
	upgrade  bool   // it asks for a websocket
	off      bool   // what comes is no HTTP any more
	broken   bool   // nothing more is passed on
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
		if b.size < len(b.beginsBy) {
			copy(b.beginsBy[b.size:], line)
		}
		if b.size += len(line); len(line) > 0 {
			b.last = line[len(line)-1]
		}
		if good += len(line); end < 0 {
			return good
		}
		if b.broken = !b.endOfLine(); b.broken {
			return good
		}
		good++
		b.size, b.last = 0, 0
	}
	return len(p)
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

// endOfLine is false of a line that is not what it must be.
func (b *boundaries) endOfLine() bool {
	whole := b.last == '\r'
	empty := b.size == 0 || b.size == 1 && whole
	text := b.beginsBy[:min(b.size, len(b.beginsBy))]
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
			return b.field(text)
		}
		return b.endOfHead()
	case inChunkSize:
		return whole && b.chunk(text)
	}
	if whole && empty { // behind chunks; fields there are refused when the request is whole
		b.end()
	}
	return whole
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
		n, ok := integer(value)
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
