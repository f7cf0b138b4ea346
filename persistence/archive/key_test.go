package archive

import (
	"exchange/persistence/internal/packed"
	"exchange/persistence/internal/packed/packedtest"
)

type keyring = packedtest.Keyring

var testKey = packedtest.Key

var testHistory = [16]byte{1, 2, 3}

// proven returns a compressed stream with the proof after it.
func proven(t interface{ Fatal(args ...any) }, stream []byte, by keyring) []byte {
	return packedtest.Proven(t, stream, by, packed.Prove)
}
