package persistence

import "errors"

// An Authority proves that a backup or a part of an archive was written by an exchange with the
// server's secret key.
type Authority interface {
	// ID names the key that new files are authenticated with.
	ID() uint64
	// MAC is the HMAC-SHA256 of a message under the key with that id, nil if there is no such key.
	MAC(id uint64, message []byte) []byte
}

// A HistoryID is the id of an exchange's history.
type HistoryID = [16]byte

var (
	// ErrNoKey: a file was authenticated under a key that is not at hand. The file may be good.
	ErrNoKey = errors.New("authenticated under a secret key that is not at hand")
	// ErrForged: a file's authentication is wrong. It was changed, or not written under the key.
	ErrForged = errors.New(
		"its authentication is wrong: it was changed, or not written under the secret key that " +
			"it names")
)
