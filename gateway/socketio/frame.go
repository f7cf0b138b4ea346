package socketio

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// Packets to clients are websocket frames from the start: unmasked, unfragmented, and free to be
// shared and joined. Polling uses the same frames without their headers.

// Kinds of websocket frames, as in their first byte, with the FIN bit.
const (
	textFrame   = 0x81
	binaryFrame = 0x82
	closeFrame  = 0x88
	pongFrame   = 0x8a
)

// maxHeader is the longest header of a frame from a server.
const maxHeader = 10

// appendHeader appends the header of a frame with size bytes.
func appendHeader(dst []byte, kind byte, size int) []byte {
	switch {
	case size < 126:
		return append(dst, kind, byte(size))
	case size < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, kind, 126), uint16(size))
	}
	return binary.BigEndian.AppendUint64(append(dst, kind, 127), uint64(size))
}

// appendFrame appends a whole frame.
func appendFrame(dst []byte, kind byte, payload []byte) []byte {
	return append(appendHeader(dst, kind, len(payload)), payload...)
}

// appendClose appends a close frame; code 0 is no code.
func appendClose(dst []byte, code uint16) []byte {
	if code == 0 {
		return append(dst, closeFrame, 0)
	}
	return append(dst, closeFrame, 2, byte(code>>8), byte(code))
}

// nextFrame splits off the first of some frames. ok is false if the bytes do not begin with a whole
// unmasked frame in its shortest form, the only form that this package makes.
func nextFrame(b []byte) (kind byte, payload, rest []byte, ok bool) {
	if len(b) < 2 {
		return 0, nil, nil, false
	}
	kind, header, size := b[0], 2, uint64(b[1])
	switch {
	case size > 127:
		return 0, nil, nil, false
	case size == 126:
		if len(b) < 4 {
			return 0, nil, nil, false
		}
		if header, size = 4, uint64(binary.BigEndian.Uint16(b[2:])); size < 126 {
			return 0, nil, nil, false
		}
	case size == 127:
		if len(b) < 10 {
			return 0, nil, nil, false
		}
		if header, size = 10, binary.BigEndian.Uint64(b[2:]); size < 1<<16 {
			return 0, nil, nil, false
		}
	}
	if size > uint64(len(b)-header) {
		return 0, nil, nil, false
	}
	end := header + int(size)
	return kind, b[header:end:end], b[end:], true
}

// separator is the byte between two packets of a polling body.
const separator = 0x1e

// pollSize returns the length of a frame in a polling body, in bytes.
func pollSize(kind byte, payload []byte) int {
	if kind == binaryFrame {
		return 1 + base64.StdEncoding.EncodedLen(len(payload))
	}
	return len(payload)
}

// appendPoll appends a frame in the form of a polling body.
func appendPoll(dst []byte, kind byte, payload []byte) []byte {
	if len(dst) > 0 {
		dst = append(dst, separator)
	}
	if kind == binaryFrame {
		return base64.StdEncoding.AppendEncode(append(dst, 'b'), payload)
	}
	return append(dst, payload...)
}

// AppendFrame appends an event to dst, as the frame for clients of a namespace:
// text `42[/namespace,]["event",payload]`. The payload is valid JSON, or several joined with
// commas, or empty. Several frames in one slice are several packets.
func AppendFrame(dst []byte, namespace, event string, payload []byte) []byte {
	name := jsonString(event)
	size := 2 + len(name) + 2 // 42, and the brackets
	if namespace != mainNamespace {
		size += len(namespace) + 1
	}
	if len(payload) > 0 {
		size += 1 + len(payload)
	}
	dst = slices.Grow(dst, maxHeader+size)
	dst = append(appendHeader(dst, textFrame, size), '4', '0'+typeEvent)
	if namespace != mainNamespace {
		dst = append(append(dst, namespace...), ',')
	}
	dst = append(append(dst, '['), name...)
	if len(payload) > 0 {
		dst = append(append(dst, ','), payload...)
	}
	return append(dst, ']')
}

// jsonString returns a string in JSON.
func jsonString(s string) string {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf || c == '<' ||
			c == '>' || c == '&' {
			quoted, _ := json.Marshal(s) // a string never fails
			return string(quoted)
		}
	}
	return `"` + s + `"`
}

// frameHeads parses the heads of a client's frames, because the library does not report a close
// frame with half a code. The library checks everything else.
type frameHeads struct {
	head   [14]byte
	have   int    // bytes of the head
	left   uint64 // bytes of the payload that are missing
	closed bool   // a close frame came
	half   bool   // its code has one byte instead of two
}

// follow parses the next bytes.
func (f *frameHeads) follow(b []byte) {
	for len(b) > 0 && !f.closed {
		if f.left > 0 {
			n := min(f.left, uint64(len(b)))
			f.left, b = f.left-n, b[n:]
			continue
		}
		f.head[f.have] = b[0]
		f.have, b = f.have+1, b[1:]
		if f.have < 2 {
			continue
		}
		size, length := 2, uint64(f.head[1]&0x7f)
		switch length {
		case 126:
			size, length = 4, uint64(binary.BigEndian.Uint16(f.head[2:]))
		case 127:
			size, length = 10, binary.BigEndian.Uint64(f.head[2:])
		}
		if f.head[1]&0x80 != 0 {
			size += 4 // the mask
		}
		if f.have < size {
			continue
		}
		f.have, f.left = 0, length
		if f.head[0]&0x0f == closeFrame&0x0f {
			f.closed, f.half = true, length == 1
		}
	}
}
