package persistence

import "time"

// An Ownership is one claim of a host to a store that others can reach.
type Ownership struct {
	ID string `json:"id,omitempty"` // of the claim; "": there was none
	// WaitMs is how long admission must wait after the claim, because the claim took the store from
	// an owner that may have lived. 0: no wait, or admission has opened since.
	WaitMs int64 `json:"wait_ms,omitempty"`
}

// Wait returns WaitMs.
func (t Ownership) Wait() time.Duration { return time.Duration(t.WaitMs) * time.Millisecond }

// Milliseconds returns a duration in whole milliseconds, rounded up.
func Milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// Ownerships are the newest claims of a host. If the newest one failed, the one before counts.
type Ownerships struct {
	Newest, Before Ownership
	// Seen is the end that a start of this host saw the journal have before the journal was found
	// to be shorter. The zero Mark: none has.
	Seen Mark
	// Accepted is the Beat.Accepted of that read.
	Accepted uint64
}

// Of finds the ownership that a token belongs to.
func (k *Ownerships) Of(tok Token) (t Ownership, own bool) {
	for _, t := range []Ownership{k.Newest, k.Before} {
		if t.ID != "" && t.ID == tok.ID() {
			return t, true
		}
	}
	return Ownership{}, false
}
