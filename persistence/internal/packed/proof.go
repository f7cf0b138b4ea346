package packed

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"exchange/persistence"
)

// A proof is the last frame of a stream. It holds a line of text, the SHA-256 of all bytes before
// the frame, and the id of the server's key. Then comes the HMAC under that key over these three.
const (
	proofLine = "exchange proof\n"
	macSize   = sha256.Size
	proofSize = frameHead + len(proofLine) + sha256.Size + 8 + macSize

	frameHead = 8
	sumAt     = frameHead + len(proofLine)
	idAt      = sumAt + sha256.Size
	macAt     = idAt + 8
)

var proofHead = skipped(make([]byte, proofSize-frameHead))[:frameHead]

var errNoProof = errors.New("it does not end with the proof of its origin")

// Prove makes the last frame of a stream whose other bytes have that sum.
func Prove(sum []byte, by persistence.Authority) ([]byte, error) {
	proof := append(append(make([]byte, 0, proofSize), proofHead...), proofLine...)
	proof = binary.BigEndian.AppendUint64(append(proof, sum...), by.ID())
	mac := by.MAC(by.ID(), proof[frameHead:])
	if len(mac) != macSize {
		return nil, fmt.Errorf("BUG: an HMAC of %d bytes", len(mac))
	}
	return append(proof, mac...), nil
}

// proven checks the proof of a stream that was read to its end, and returns its HMAC. A nil by does
// not check the HMAC.
func (b *below) proven(by persistence.Authority) (mac []byte, err error) {
	proof := b.tail
	if len(proof) < proofSize || !bytes.HasPrefix(proof, proofHead) ||
		string(proof[frameHead:sumAt]) != proofLine {
		return nil, errNoProof
	}
	if !hmac.Equal(b.sum.Sum(nil), proof[sumAt:idAt]) {
		return nil, errSum
	}
	if by == nil {
		return proof[macAt:], nil
	}
	id := binary.BigEndian.Uint64(proof[idAt:])
	want := by.MAC(id, proof[frameHead:macAt])
	if want == nil {
		return nil, fmt.Errorf("%w: %016x", persistence.ErrNoKey, id)
	}
	if !hmac.Equal(want, proof[macAt:]) {
		return nil, persistence.ErrForged
	}
	return proof[macAt:], nil
}

// Authenticate reads a whole file, unpacks nothing, and returns nil if the proof is right.
func Authenticate(r io.Reader, by persistence.Authority) error {
	b := newBelow(r)
	if _, err := io.Copy(io.Discard, b); err != nil {
		return fmt.Errorf("it cannot be read: %w", err)
	}
	_, err := b.proven(by)
	return err
}

// Named returns the unchecked proof of a file of that size: the HMAC, and the id of its key.
func Named(f io.ReaderAt, size int64) (mac []byte, id uint64, err error) {
	if size < int64(proofSize) {
		return nil, 0, errNoProof
	}
	proof := make([]byte, proofSize)
	if _, err = f.ReadAt(proof, size-int64(proofSize)); err != nil {
		return nil, 0, fmt.Errorf("it cannot be read: %w", err)
	}
	if !bytes.HasPrefix(proof, proofHead) || string(proof[frameHead:sumAt]) != proofLine {
		return nil, 0, errNoProof
	}
	return proof[macAt:], binary.BigEndian.Uint64(proof[idAt:]), nil
}
