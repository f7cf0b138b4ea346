package machine

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"exchange/core/wire"
	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

const imageVersion = 5

// Encode returns the state as bytes. The version, the applied format and the members come first, in
// a form that never changes: a program that cannot read the rest still votes.
func (s *State) Encode() []byte {
	b := s.encodeMembers([]byte{imageVersion, s.Format()})
	b = binary.BigEndian.AppendUint32(b, s.epoch)
	b = text(text(flag(b, s.lost), string(s.token)), s.owner)
	for _, v := range []uint64{uint64(persistence.Milliseconds(s.heartbeat.Check)),
		uint64(persistence.Milliseconds(s.heartbeat.Stale)), s.beats, s.accepted, s.last, s.digest,
		s.trimmed, s.floor, s.chain, uint64(len(s.reads))} {
		b = u64(b, v)
	}
	for _, key := range slices.Sorted(maps.Keys(s.reads)) {
		b = u64(text(b, key), s.reads[key])
	}
	for _, t := range [][]byte{s.market, s.termMarket} {
		if b = binary.BigEndian.AppendUint32(b, uint32(len(t))); len(t) > 0 {
			b = append(u64(b, codec.Digest(t)), t...)
		}
	}
	return b
}

// DecodeState reads the bytes of State.Encode. For a newer version with a format that this program
// does not read, it reads only the format and the members.
func DecodeState(b []byte) (*State, error) {
	d := reader{wire.Read(b)}
	v := d.Byte()
	s := &State{format: d.Byte()}
	s.decodeMembers(&d)
	switch {
	case d.Bad():
	case v == imageVersion:
		if err := checkOldest(s.format, Newest); err != nil {
			return nil, fmt.Errorf("the state at the log's beginning: %w", err)
		}
	case v > imageVersion && s.format > Newest:
		return s, nil
	default:
		return nil, fmt.Errorf("the state at the log's beginning: %w",
			persistence.OtherVersion(uint64(v), imageVersion))
	}
	s.epoch = d.Fixed32()
	s.lost, s.token, s.owner = d.Flag(), persistence.Token(d.text()), d.text()
	s.heartbeat.Check, s.heartbeat.Stale = d.ms(), d.ms()
	var n uint64
	for _, v := range []*uint64{&s.beats, &s.accepted, &s.last, &s.digest, &s.trimmed, &s.floor,
		&s.chain, &n} {
		*v = d.Fixed64()
	}
	if n > 0 {
		s.reads = map[string]uint64{}
	}
	for ; n > 0 && !d.Bad(); n-- {
		key := d.text()
		s.reads[key] = d.Fixed64()
	}
	for _, t := range []*[]byte{&s.market, &s.termMarket} {
		n := d.Fixed32()
		if d.Check(n <= MaxMarket); n > 0 && !d.Bad() {
			digest := d.Fixed64()
			*t = slices.Clone(d.Take(int(n)))
			d.Check(codec.Digest(*t) == digest)
		}
	}
	if !d.End() {
		return nil, fmt.Errorf("%w: a state of %d bytes cannot be read", persistence.ErrCorrupt,
			len(b))
	}
	return s, nil
}
