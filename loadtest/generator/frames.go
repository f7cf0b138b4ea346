package generator

import (
	"bytes"
	"encoding/binary"
	"strconv"
)

// Frames of websockets, and the packets of Socket.IO in them, as far as a load needs them.

// FrameHeader parses the header of a frame. ok is false if it is incomplete.
func FrameHeader(b []byte) (header, size int, ok bool) {
	switch {
	case len(b) < 2:
		return 0, 0, false
	case b[1] < 126:
		return 2, int(b[1]), true
	case b[1] == 126 && len(b) >= 4:
		return 4, int(binary.BigEndian.Uint16(b[2:])), true
	case b[1] == 127 && len(b) >= 10:
		return 10, int(binary.BigEndian.Uint64(b[2:])), true
	}
	return 0, 0, false
}

// AppendFrame appends a text as a client's frame, with the mask 0.
func AppendFrame(dst, text []byte) []byte {
	switch n := len(text); {
	case n < 126:
		dst = append(dst, frameText, 0x80|byte(n))
	case n < 1<<16:
		dst = binary.BigEndian.AppendUint16(append(dst, frameText, 0x80|126), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint64(append(dst, frameText, 0x80|127), uint64(n))
	}
	return append(append(dst, 0, 0, 0, 0), text...)
}

// Kinds of whole frames.
const (
	frameText  = 0x81
	frameClose = 0x88
)

// mostFrame bounds the length of a frame.
const mostFrame = 64 << 20

// readFrame cuts off the first frame. It returns false if it is incomplete.
func readFrame(b []byte) (kind byte, text, rest []byte, whole bool, err error) {
	header, size, ok := FrameHeader(b)
	switch {
	case !ok:
		return 0, nil, b, false, nil
	case size < 0 || size > mostFrame:
		return 0, nil, b, false, errNotAnAnswer
	case len(b) < header+size:
		return 0, nil, b, false, nil
	}
	return b[0], b[header : header+size], b[header+size:], true, nil
}

var (
	pong        = []byte("3")
	packetEvent = []byte("42")
	packetAck   = []byte("43")
	ackStatus   = []byte(`[{"status":`)
	ackBody     = []byte(`,"body":`)
	ackEnd      = []byte("}]")
	ackLater    = []byte(`,"retry_after":`)
)

// readAck parses an acknowledgement with the answer to a command.
func readAck(text []byte) (id int, a Answer, err error) {
	number, rest, ok1 := bytes.Cut(bytes.TrimPrefix(text, packetAck), ackStatus)
	status, rest, ok2 := bytes.Cut(rest, ackBody)
	rest, ok3 := bytes.CutSuffix(rest, ackEnd)
	id, err1 := strconv.Atoi(string(number))
	a.Status, err = strconv.Atoi(string(status))
	if !ok1 || !ok2 || !ok3 || err1 != nil || err != nil || id < 0 || a.Status < 0 {
		return 0, Answer{}, errNotAnAnswer
	}
	// A body ends with a bracket.
	if i := bytes.LastIndexAny(rest, "]}"); i >= 0 && bytes.HasPrefix(rest[i+1:], ackLater) {
		rest, a.Later = rest[:i+1], a.Status >= 400
	}
	a.Body = rest
	return id, a, nil
}
