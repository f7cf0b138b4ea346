package gateway

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"
)

// Where one request ends and the next begins must be the same for everybody who reads them, or a request can be hidden
// from a proxy in the body of another. The server under this reads more than the standard has: what two readers
// may take differently is refused here, and the connection is closed, for nobody knows what the rest of it is.

// wellFramed is false of a request whose head can be read in two ways: fields that do not end with CR LF or go on in the next
// line, blanks in names, a transfer encoding beside a length or another one than chunked, fields behind the body, a version
// that nobody speaks. The request line itself, and empty lines before it, may end with LF alone, as the standard lets them:
// nothing in it says where a request ends.
func wellFramed(h *fasthttp.RequestHeader) bool {
	if version := h.Protocol(); !bytes.Equal(version, http11) && !bytes.Equal(version, http10) {
		return false
	}
	chunked, length := false, false
	for rest := h.RawHeaders(); len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 1 || rest[end-1] != '\r' {
			return false
		}
		line := rest[:end-1]
		if rest = rest[end+1:]; len(line) == 0 {
			break
		}
		colon := bytes.IndexByte(line, ':')
		if colon < 1 || bytes.IndexByte(line[:colon], ' ') >= 0 || line[0] == '\t' {
			return false
		}
		switch name := line[:colon]; {
		case len(name) == len(lengthName) && bytes.EqualFold(name, lengthName):
			length = true
		case len(name) == len(transferName) && bytes.EqualFold(name, transferName):
			if chunked = bytes.EqualFold(bytes.TrimSpace(line[colon+1:]), chunkedCoding); !chunked {
				return false
			}
		}
	}
	return !chunked || !length && !trailed(h)
}

var (
	lengthName    = []byte("Content-Length")
	transferName  = []byte("Transfer-Encoding")
	chunkedCoding = []byte("chunked")

	http11, http10 = []byte("HTTP/1.1"), []byte("HTTP/1.0")
)

// trailed is true if there are fields that did not stand in the head: they came behind the body. The server takes them for
// headers, and so a client could put another address behind the one that its proxy has written.
func trailed(h *fasthttp.RequestHeader) bool {
	stood := map[string]int{"content-length": 1} // the server's own, of what it has read
	for line := range strings.SplitSeq(string(h.RawHeaders()), "\r\n") {
		name, _, _ := strings.Cut(line, ":")
		stood[strings.ToLower(name)]++
	}
	for name := range h.All() {
		key := strings.ToLower(string(name))
		if stood[key]--; stood[key] < 0 {
			return true
		}
	}
	return false
}
