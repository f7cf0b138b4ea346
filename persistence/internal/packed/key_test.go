package packed

import "exchange/persistence/internal/packed/packedtest"

type keyring = packedtest.Keyring

var testKey = packedtest.Key

// proven returns a compressed stream with the proof after it.
func proven(t interface{ Fatal(args ...any) }, stream []byte, by keyring) []byte {
	return packedtest.Proven(t, stream, by, Prove)
}
