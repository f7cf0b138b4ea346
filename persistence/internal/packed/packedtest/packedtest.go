// Package packedtest helps to test files that are kept apart from a store: backups and parts of an
// archive. The tests of package packed itself use it, so it does not import packed.
package packedtest

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"

	"exchange/persistence"
)

// A Keyring has one key for each id, and writes with the first one.
type Keyring []uint64

// Key is the keyring of tests that need one key.
var Key = Keyring{1}

// ID names the key that new files are authenticated with.
func (k Keyring) ID() uint64 { return k[0] }

// MAC returns the HMAC of a message under the key with that id, nil if there is no such key.
func (k Keyring) MAC(id uint64, message []byte) []byte {
	if !slices.Contains(k, id) {
		return nil
	}
	mac := hmac.New(sha256.New, fmt.Append(nil, "the key ", id))
	mac.Write(message)
	return mac.Sum(nil)
}

// Proven returns a compressed stream with the proof after it; prove is packed.Prove.
func Proven(t interface{ Fatal(args ...any) }, stream []byte, by Keyring,
	prove func(sum []byte, by persistence.Authority) ([]byte, error)) []byte {
	sum := sha256.Sum256(stream)
	proof, err := prove(sum[:], by)
	if err != nil {
		t.Fatal(err)
	}
	return append(stream, proof...)
}

// Allocated returns how many bytes of memory f allocates in all, freed or not.
func Allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
