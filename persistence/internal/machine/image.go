package machine

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"exchange/persistence"
)

const imageVersion = 3

// Encode returns the state as bytes.
func (s *State) Encode() []byte {
	b := binary.BigEndian.AppendUint32([]byte{imageVersion}, s.epoch)
	b = text(text(flag(b, s.lost), string(s.token)), s.owner)
	for _, v := range []uint64{uint64(persistence.Milliseconds(s.rhythm.Check)),
		uint64(persistence.Milliseconds(s.rhythm.Stale)), s.beats, s.accepted, s.last, s.digest,
		s.trimmed, s.floor, s.chain, uint64(len(s.reads))} {
		b = u64(b, v)
	}
	for _, key := range slices.Sorted(maps.Keys(s.reads)) {
		b = u64(text(b, key), s.reads[key])
	}
	return s.encodeMembers(b)
}

// DecodeState reads what State.Encode has written.
func DecodeState(b []byte) (*State, error) {
	d := reader{b: b}
	if v := d.byte(); !d.failed && v != imageVersion {
		return nil, fmt.Errorf("%w: a state is of version %d and this program reads version %d",
			persistence.ErrCorrupt, v, imageVersion)
	}
	s := &State{epoch: binary.BigEndian.Uint32(d.take(4))}
	s.lost, s.token, s.owner = d.flag(), persistence.Token(d.text()), d.text()
	s.rhythm.Check, s.rhythm.Stale = d.ms(), d.ms()
	var n uint64
	for _, v := range []*uint64{&s.beats, &s.accepted, &s.last, &s.digest, &s.trimmed, &s.floor,
		&s.chain, &n} {
		*v = d.u64()
	}
	if n > 0 {
		s.reads = map[string]uint64{}
	}
	for ; n > 0 && !d.failed; n-- {
		key := d.text()
		s.reads[key] = d.u64()
	}
	s.decodeMembers(&d)
	if d.failed || len(d.b) > 0 {
		return nil, fmt.Errorf("%w: a state of %d bytes cannot be read", persistence.ErrCorrupt,
			len(b))
	}
	return s, nil
}
