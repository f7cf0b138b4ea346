package replicated

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"exchange/core/wire"
	"exchange/persistence/internal/raftlog"
)

// A frame is a message between nodes. Its transport proves the sender's name.
//
//	version | kind | newest format that the sender reads | id u64 | boot u64 |
//	length and text of the nonce | payload
type frame struct {
	kind      byte
	maxFormat uint8
	id        uint64        // of the sender
	start     raftlog.Start // of the sender
	payload   []byte
}

const (
	frameVersion = 6
	frameMessage = 1 // the payload is a message of raft
	// frameSeen asks the receiver whether its start, which is first in the payload, succeeds the
	// second: the newest start that the sender has recorded.
	frameSeen = 2
	// frameForming: the payload is a formingMessage; there is no id and no start.
	frameForming = 3
	// frameRemoved: the payload is an ID that is no longer a member's.
	frameRemoved = 4
	// frameOffer: the payload is an offer.
	frameOffer = 5
	// frameFollows: the sender's start succeeds the one in the payload.
	frameFollows = 6
	// frameClock asks for the receiver's clock, or answers. The payload is the digest of the market
	// part in the sender's file and the asking node's clock in microseconds. An answer adds its
	// sender's clock, the index of its last entry, and the leader's ID; 0: none.
	frameClock = 7
	// frameBehind: the payload is the index of the first entry in the leader's log.
	frameBehind = 8
	// frameUnfit: the sender could not own the engine, by its Unfit. There is no payload.
	frameUnfit = 9

	maxNonce = 64
)

var errFrame = errors.New("a frame that cannot be read")

func appendStart(b []byte, s raftlog.Start) []byte {
	b = binary.BigEndian.AppendUint64(b, s.Boot)
	return append(append(b, byte(len(s.Nonce))), s.Nonce...)
}

// readStart reads a start written by appendStart.
func readStart(p *wire.Reader) (s raftlog.Start) {
	s.Boot = p.Fixed64()
	n := p.Byte()
	p.Check(n <= maxNonce)
	s.Nonce = string(p.Take(int(n)))
	return s
}

// begin returns the bytes before the payload.
func (f *frame) begin() []byte {
	b := binary.BigEndian.AppendUint64([]byte{frameVersion, f.kind, f.maxFormat}, f.id)
	return appendStart(b, f.start)
}

// parseFrame reads a frame; its payload is part of b.
func parseFrame(b []byte) (f frame, err error) {
	if len(b) > 0 && b[0] != frameVersion {
		return f, fmt.Errorf("the link: %w", wire.Version(uint64(b[0]), frameVersion))
	}
	p := wire.Read(b)
	p.Take(1)
	f.kind, f.maxFormat, f.id = p.Byte(), p.Byte(), p.Fixed64()
	f.start, f.payload = readStart(&p), p.Rest()
	if p.Bad() {
		err = errFrame
	}
	return f, err
}

// names reports whether the payload is the given ID.
func (f *frame) names(id uint64) bool {
	return bytes.Equal(f.payload, binary.BigEndian.AppendUint64(nil, id))
}
