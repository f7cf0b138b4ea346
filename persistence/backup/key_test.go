package backup

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"slices"

	"exchange/persistence/internal/packed"
)

// A keyring has one key for each id, and writes with the first one.
type keyring []uint64

func (k keyring) ID() uint64 { return k[0] }

func (k keyring) MAC(id uint64, message []byte) []byte {
	if !slices.Contains(k, id) {
		return nil
	}
	mac := hmac.New(sha256.New, fmt.Append(nil, "the key ", id))
	mac.Write(message)
	return mac.Sum(nil)
}

var testKey = keyring{1}

// proven is a compressed stream with the proof behind it.
func proven(t interface{ Fatal(args ...any) }, stream []byte, by keyring) []byte {
	sum := sha256.Sum256(stream)
	proof, err := packed.Prove(sum[:], by)
	if err != nil {
		t.Fatal(err)
	}
	return append(stream, proof...)
}
