package observing

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"exchange/actors/duplex"
)

// The first byte on an observer's connection says what it is for.
const (
	laneFeed = iota + 1
	laneTalk
	laneRows
	laneCommands
)

// version is that of all that is said on the lanes, but for commands, which have their own.
const version = 3

// helloBytes are those with which an observer begins a lane: the lane, the version, and eight bytes
// that no other process with the observer's name has.
const helloBytes = 2 + 8

// Bounds of what is said.
const (
	maxMarket   = 4 << 20 // a market part, as persistence/internal/machine bounds it
	longestTalk = 2*maxMarket + 64<<10
	longestRows = 1 << 20  // a page
	longestFeed = 64 << 20 // a batch
	pieceBytes  = 64 << 10 // of an image; about
	pageRows    = 200
	pageBytes   = 256 << 10 // from which on a page has no more rows
)

// Bounds of what an observer asks for at a time.
const (
	maxQueries = 64 // that wait or are under way
	// maxLeft are those that the observer has left, until the member has noticed.
	maxLeft = 8 * maxQueries
	atOnce  = 4 // queries that are under way
)

// usualSilence is after how long a side that hears nothing, or cannot write, gives up.
const usualSilence = 3 * time.Second

// errSense ends a connection on which something came that makes no sense.
var errSense = errors.New("the other side says what makes no sense")

// lineOptions are those of talk and rows.
func lineOptions(longest int, silence time.Duration) duplex.Options {
	return duplex.Options{Longest: longest, Waiting: 4 * longest, Beat: silence / 4,
		Silence: silence}
}

// hello begins a lane.
func hello(conn net.Conn, lane byte, process uint64, more ...byte) error {
	b := binary.BigEndian.AppendUint64([]byte{lane, version}, process)
	_, err := conn.Write(append(b, more...))
	return err
}

// Frames of the feed: a kind, a length (u32, big endian), and so many bytes.
const (
	feedBeat    = iota + 1
	feedBegin   // resumed u8, sequence u64, digest u64: what follows
	feedPiece   // of an image
	feedImage   // the image is complete
	feedBatch   // prev u64, next u64, digest u64, batch
	feedRefused // why u8, text
)

// Why a feed is refused.
const (
	refusedBusy   = iota + 1
	refusedFuture // the member has not come so far
	refusedGone   // the member's journal does not go on there
	refusedTwice  // another process has the observer's name
)

const frameHead = 5

// appendFrame begins a frame whose payload has n bytes.
func appendFrame(dst []byte, kind byte, n int) []byte {
	return binary.BigEndian.AppendUint32(append(dst, kind), uint32(n))
}

// readFrame reads a frame. Its memory grows with what comes of it.
func readFrame(r io.Reader, into []byte) (kind byte, payload []byte, err error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := int(binary.BigEndian.Uint32(head[1:]))
	if n > longestFeed {
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes, at most %d are possible", errSense, n,
			longestFeed)
	}
	if n <= pieceBytes*2 {
		if cap(into) < n {
			into = make([]byte, n)
		}
		_, err = io.ReadFull(r, into[:n])
		return head[0], into[:n], err
	}
	payload, err = io.ReadAll(io.LimitReader(r, int64(n)))
	if err == nil && len(payload) < n {
		err = io.ErrUnexpectedEOF
	}
	return head[0], payload, err
}

// patient writes to a connection, and gives up when the other side takes nothing for too long.
type patient struct {
	net.Conn
	silence time.Duration
}

// Write implements io.Writer.
func (p patient) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		if err := p.SetWriteDeadline(time.Now().Add(p.silence)); err != nil {
			return n, err
		}
		k, err := p.Conn.Write(b[:min(len(b), pieceBytes)])
		n += k
		if err != nil {
			return n, err
		}
		b = b[k:]
	}
	return n, nil
}

// Read implements io.Reader.
func (p patient) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(p.silence)); err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}
