package loadtest

import (
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"hash"
)

// A secret is the secret of a key as two precomputed hash states.
type secret struct{ inner, outer []byte }

func newSecret(text string) secret {
	key := []byte(text)
	if len(key) > sha256.BlockSize {
		sum := sha256.Sum256(key)
		key = sum[:]
	}
	state := func(pad byte) []byte {
		var block [sha256.BlockSize]byte
		copy(block[:], key)
		for i := range block {
			block[i] ^= pad
		}
		h := sha256.New()
		h.Write(block[:])
		b, err := h.(encoding.BinaryAppender).AppendBinary(nil)
		if err != nil {
			panic("BUG: SHA-256 has no state: " + err.Error())
		}
		return b
	}
	return secret{state(0x36), state(0x5c)}
}

// A signer is the scratch memory of one goroutine that signs.
type signer struct {
	hash  hash.Hash
	state encoding.BinaryUnmarshaler // the same object
	sum   [sha256.Size]byte
}

func newSigner() *signer {
	h := sha256.New()
	return &signer{hash: h, state: h.(encoding.BinaryUnmarshaler)}
}

// sign appends the HMAC-SHA256 of key and form as hexadecimal digits.
func (s *signer) sign(dst []byte, by *secret, key, form []byte) []byte {
	s.restore(by.inner)
	s.hash.Write(key)
	s.hash.Write(form)
	sum := s.hash.Sum(s.sum[:0])
	s.restore(by.outer)
	s.hash.Write(sum)
	return hex.AppendEncode(dst, s.hash.Sum(s.sum[:0]))
}

func (s *signer) restore(state []byte) {
	if err := s.state.UnmarshalBinary(state); err != nil {
		panic("BUG: a state of SHA-256 is not one: " + err.Error())
	}
}
