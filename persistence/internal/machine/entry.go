package machine

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"exchange/core/wire"
	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// A Kind is an entry's effect.
type Kind uint8

const (
	Append  Kind = iota + 1
	Acquire      // makes another owner
	Check        // confirms the owner
	Release      // ends an ownership at the owner's request
	Begin        // makes an empty journal begin at Next
	Trim         // drops the journal up to Next
	Reads        // records nonces of reads
	Add          // makes another node an awaited member, perhaps to replace a voter
	Join         // assigns an ID to an awaited node, or to a learner whose log is lost
	Promote      // makes a learner a voter, in place of the one that it replaces
	Remove       // removes a member
	Leave        // completes a joint change
	Survive      // keeps one voter alone, because the others' disks are lost
	Format       // allows entries and records of the format Next
	Market       // sets the market part of the configuration, which is its batch
	kinds
)

// An ID names a proposal. No two proposals have the same.
type ID struct {
	Node   uint64
	Boot   uint64 // the start of the node that made the proposal
	Number uint64 // counts the proposals of a start
}

// An Entry is one proposal in the log. Its kind determines which fields count.
type Entry struct {
	ID   ID
	Kind Kind
	// Format is that of the entry's bytes, and of the records in its batch; 0: the first.
	Format uint8

	Token persistence.Token // of all but an Acquire and changes of the membership

	// Of an Append. Next is also the sequence of a Begin or Trim, and the number of a Format. A
	// Market has its text in Batch; Next is 1 if the owner's term uses it, 0 if the next one will.
	Prev, Next, Digest uint64
	Batch              []byte

	Floor uint64 // of a Trim: index up to which every node has the log

	// Of an Acquire. Unique, also of a Release, is the random part of the next token.
	Unique    string
	Owner     string
	Heartbeat persistence.Heartbeat
	After     *persistence.Beat // that the claim has seen, without owner and heartbeat; nil: any
	Insist    bool
	NowMs     int64 // the proposer's clock, also of a Begin

	Nonces []persistence.Nonce // of Reads

	// Of a change of the membership. A Join has the start's nonce in Unique.
	Name, Address, Replaces string
}

// The form of an entry: format, kind, id, and then the fields of its kind in the order of Entry.
// Numbers are big-endian. A text has its length before it, as 16 bits. A batch is the rest.
const maxText = 1 << 10 // bytes of a text

// Formats of entries and of the records in their batches. A new kind, field or record needs a new
// format. It is written only after a Format entry: by then each member reads it.
const (
	First  = 11 // the format of a new cluster, and the oldest that is read
	Newest = persistence.NewestFormat
)

// MaxMarket bounds the market part of a configuration, in bytes.
const MaxMarket = 4 << 20

// IsMarket reports whether a text has a length that a market part may have.
func IsMarket(text []byte) bool { return len(text) > 0 && len(text) <= MaxMarket }

func u64(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }

func text(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

func flag(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// head returns the entry's bytes without its batch, which its digest represents.
func (e *Entry) head() []byte {
	b := make([]byte, 0, 128)
	b = append(b, max(e.Format, First), byte(e.Kind))
	b = u64(u64(u64(b, e.ID.Node), e.ID.Boot), e.ID.Number)
	if e.Kind != Acquire && !e.Kind.ChangesCluster() {
		b = text(b, string(e.Token))
	}
	switch e.Kind {
	case Append:
		b = u64(u64(u64(b, e.Prev), e.Next), e.Digest)
	case Acquire:
		b = e.claim(b)
	case Release:
		b = text(b, e.Unique)
	case Begin:
		b = u64(u64(b, e.Next), uint64(e.NowMs))
	case Format:
		b = u64(b, e.Next)
	case Market:
		b = u64(u64(b, e.Next), e.Digest)
	case Trim:
		b = u64(u64(b, e.Next), e.Floor)
	case Reads:
		b = binary.BigEndian.AppendUint32(b, uint32(len(e.Nonces)))
		for _, n := range e.Nonces {
			b = u64(text(b, n.Key), n.Nonce)
		}
	case Add, Join, Promote, Remove, Leave, Survive:
		b = text(text(text(text(b, e.Name), e.Address), e.Replaces), e.Unique)
	}
	return b
}

// claim adds the fields of an acquire.
func (e *Entry) claim(b []byte) []byte {
	b = text(text(b, e.Unique), e.Owner)
	b = u64(b, uint64(persistence.Milliseconds(e.Heartbeat.Check)))
	b = u64(b, uint64(persistence.Milliseconds(e.Heartbeat.Stale)))
	b = u64(flag(b, e.Insist), uint64(e.NowMs))
	b = flag(b, e.After != nil)
	if e.After != nil {
		b = text(text(b, string(e.After.Token)), e.After.Count)
		b = u64(u64(u64(b, e.After.End.Seq), e.After.End.Digest), e.After.Accepted)
	}
	return b
}

// Fits returns ErrInvalid for an entry with a text too long to be encoded.
func (e *Entry) Fits() error {
	texts := []string{string(e.Token), e.Unique, e.Owner, e.Name, e.Address, e.Replaces}
	if e.After != nil {
		texts = append(texts, string(e.After.Token), e.After.Count)
	}
	for _, n := range e.Nonces {
		texts = append(texts, n.Key)
	}
	for _, t := range texts {
		if len(t) > maxText {
			return fmt.Errorf("%w: a text of %d bytes: at most %d are possible",
				persistence.ErrInvalid, len(t), maxText)
		}
	}
	return nil
}

// Encode returns the entry as bytes.
func (e *Entry) Encode() []byte { return append(e.head(), e.Batch...) }

// Decode reads an entry of a format up to the newest one that the caller reads. Its batch is part
// of b. ErrFormat: the entry is of a newer format. ErrVersion: it is of an older one. ErrCorrupt: b
// is no entry.
func Decode(b []byte, newest uint8) (*Entry, error) {
	d := reader{wire.Read(b)}
	e := &Entry{Format: d.Byte()}
	if e.Format > newest {
		return nil, fmt.Errorf("%w: an entry is of format %d, and this program reads formats up "+
			"to %d", persistence.ErrFormat, e.Format, newest)
	}
	if err := checkOldest(e.Format, newest); err != nil && !d.Bad() {
		return nil, fmt.Errorf("an entry: %w", err)
	}
	e.Kind = Kind(d.Byte())
	e.ID = ID{d.Fixed64(), d.Fixed64(), d.Fixed64()}
	if e.Kind != Acquire && !e.Kind.ChangesCluster() {
		e.Token = persistence.Token(d.text())
	}
	switch e.Kind {
	case Append:
		e.Prev, e.Next, e.Digest = d.Fixed64(), d.Fixed64(), d.Fixed64()
		e.Batch = d.Rest()
		d.Check(codec.CheckBatch(e.Prev, e.Next, e.Batch) == nil)
	case Acquire:
		d.claim(e)
	case Release:
		e.Unique = d.text()
	case Begin:
		e.Next, e.NowMs = d.Fixed64(), int64(d.Fixed64())
		d.Check(codec.CheckBegin(e.Next) == nil)
	case Market:
		e.Next, e.Digest = d.Fixed64(), d.Fixed64()
		e.Batch = d.Rest()
		d.Check(e.Next <= 1 && IsMarket(e.Batch) && codec.Digest(e.Batch) == e.Digest)
	case Format:
		e.Next = d.Fixed64()
		d.Check(e.Next <= math.MaxUint8)
	case Trim:
		e.Next, e.Floor = d.Fixed64(), d.Fixed64()
	case Reads:
		d.nonces(e)
	case Add, Join, Promote, Remove, Leave, Survive:
		e.Name, e.Address, e.Replaces, e.Unique = d.text(), d.text(), d.text(), d.text()
	case Check:
	default:
		d.Check(false)
	}
	if !d.End() {
		return nil, fmt.Errorf("%w: an entry of kind %d and %d bytes cannot be read",
			persistence.ErrCorrupt, e.Kind, len(b))
	}
	return e, nil
}

// checkOldest returns ErrVersion for a format older than the oldest that this program reads.
func checkOldest(format, newest uint8) error {
	if format >= First {
		return nil
	}
	return persistence.Unreadable(&wire.OtherVersion{Of: "format", Found: uint64(format),
		Oldest: First, Newest: uint64(newest)})
}

// A reader decodes texts and numbers.
type reader struct{ wire.Reader }

func (d *reader) text() string {
	n := d.Fixed16()
	d.Check(n <= maxText)
	return string(d.Take(int(n)))
}

// ms reads a duration in milliseconds.
func (d *reader) ms() time.Duration {
	v := d.Fixed64()
	d.Check(v <= maxMs)
	return time.Duration(v) * time.Millisecond
}

const maxMs = 1 << 40

func (d *reader) claim(e *Entry) {
	e.Unique, e.Owner = d.text(), d.text()
	e.Heartbeat.Check, e.Heartbeat.Stale = d.ms(), d.ms()
	e.Insist, e.NowMs = d.Flag(), int64(d.Fixed64())
	if d.Flag() {
		e.After = &persistence.Beat{Token: persistence.Token(d.text()), Count: d.text()}
		e.After.End = persistence.Mark{Seq: d.Fixed64(), Digest: d.Fixed64()}
		e.After.Accepted = d.Fixed64()
	}
	d.Check(codec.IsUnique(e.Unique))
}

func (d *reader) nonces(e *Entry) {
	n := d.Fixed32()
	d.Check(n <= persistence.MaxRows)
	for ; n > 0 && !d.Bad(); n-- {
		e.Nonces = append(e.Nonces, persistence.Nonce{Key: d.text(), Nonce: d.Fixed64()})
	}
}
