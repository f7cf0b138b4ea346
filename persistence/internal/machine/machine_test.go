package machine

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// unique is the random part of the nth claim.
func unique(n int) string { return fmt.Sprintf("%032x", n) }

func claim(n int) *Entry {
	return &Entry{Kind: Acquire, Unique: unique(n), Owner: fmt.Sprint("owner ", n)}
}

func token(epoch, n int) persistence.Token {
	return persistence.Token(fmt.Sprintf("%d:%s", epoch, unique(n)))
}

func batch(tok persistence.Token, prev, next, digest uint64) *Entry {
	return &Entry{Kind: Append, Token: tok, Prev: prev, Next: next, Digest: digest,
		Batch: []byte{1}}
}

// Each line is applied to one state, one after the other.
func TestEntryOutcomes(t *testing.T) {
	first, second := token(1, 1), token(2, 2)
	seen := persistence.Beat{Token: first, Count: "1", End: persistence.Mark{Seq: 5, Digest: 55}}
	stale, future := seen, seen
	stale.Count = ""
	future.End = persistence.Mark{Seq: 6, Digest: 66}
	lost := persistence.Beat{Token: persistence.Released(unique(9)), Count: "9",
		End: persistence.Mark{Seq: 9}}
	after := func(n int, b persistence.Beat, insist bool) *Entry {
		e := claim(n)
		e.After, e.Insist, e.NowMs = &b, insist, 1000
		return e
	}
	s := &State{}
	for _, c := range []struct {
		what string
		e    *Entry
		want Outcome
		seq  uint64
	}{
		{"nothing without an owner", batch("", 0, 1, 11), Fenced, 0},
		{"a claim", claim(1), Done, 0},
		{"an append", batch(first, 0, 2, 22), Done, 2},
		{"the same again", batch(first, 0, 2, 22), Already, 2},
		{"other bytes there", batch(first, 0, 2, 23), gap, 2},
		{"one that does not follow on", batch(first, 3, 4, 44), gap, 2},
		{"one without the token", batch("1:x", 2, 3, 33), Fenced, 2},
		{"one that follows on", batch(first, 2, 5, 55), Done, 5},
		{"a delayed copy", batch(first, 0, 2, 22), gap, 5},
		{"a check", &Entry{Kind: Check, Token: first}, Done, 5},
		{"a check of another", &Entry{Kind: Check, Token: second}, Fenced, 5},
		{"a begin in a journal", &Entry{Kind: Begin, Token: first, Next: 9}, notEmpty, 5},
		{"a begin where it ends", &Entry{Kind: Begin, Token: first, Next: 5}, notEmpty, 5},
		{"a claim of one that missed a beat", after(2, stale, false), held, 5},
		{"a claim of one that has seen more", after(2, future, false), short, 5},
		{"a claim in time", after(2, seen, false), Done, 5},
		{"a second one", after(3, seen, false), held, 5},
		{"a second one that insists", after(3, seen, true), held, 5},
		{"the first owner", batch(first, 5, 6, 66), Fenced, 5},
		{"the first owner's own", batch(first, 2, 5, 55), Fenced, 5},
		{"the second owner", batch(second, 5, 6, 66), Done, 6},
		{"a trim", &Entry{Kind: Trim, Token: second, Next: 100, Floor: 7}, Done, 6},
		{"a lower trim", &Entry{Kind: Trim, Token: second, Next: 3, Floor: 2}, Done, 6},
		{"a trim of the first owner", &Entry{Kind: Trim, Token: first, Next: 6}, Fenced, 6},
		{"the engine is given back", &Entry{Kind: Release, Token: second, Unique: unique(9)}, Done,
			6},
		{"again", &Entry{Kind: Release, Token: second, Unique: unique(9)}, Fenced, 6},
		{"an append after that", batch(second, 6, 7, 77), Fenced, 6},
		{"an append under the released token", batch(persistence.Released(unique(9)), 6, 7, 77),
			Fenced, 6},
		{"a claim of one that has seen more, and accepts the loss", after(3, lost, true), Done, 6},
	} {
		if got := s.Apply(c.e); got.Outcome != c.want || got.Seq != c.seq {
			t.Errorf("%s: outcome %d at %d, want %d at %d", c.what, got.Outcome, got.Seq, c.want,
				c.seq)
		}
	}
	if b := s.Beat(); s.Trimmed() != 6 || s.Floor() != 7 || b.Token != token(3, 3) ||
		b.Accepted != 1000 {
		t.Errorf("trimmed %d, floor %d, %+v", s.Trimmed(), s.Floor(), b)
	}
}

func TestReadNoncesOnlyGrow(t *testing.T) {
	s := &State{}
	tok := s.Apply(claim(1)).Token
	s.Apply(&Entry{Kind: Reads, Token: tok,
		Nonces: []persistence.Nonce{{Key: "a", Nonce: 5}, {Key: "b", Nonce: 1}}})
	s.Apply(&Entry{Kind: Reads, Token: tok, Nonces: []persistence.Nonce{{Key: "a", Nonce: 3}}})
	s.Apply(&Entry{Kind: Reads, Token: "1:x", Nonces: []persistence.Nonce{{Key: "b", Nonce: 9}}})
	got := map[string]uint64{}
	s.Reads(func(key string, nonce uint64) { got[key] = nonce })
	if want := map[string]uint64{"a": 5, "b": 1}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A model does owners and appends in the obvious way.
type model struct {
	owners  []persistence.Token // the last one owns the engine; "" after it was given back
	batches []Entry
}

func (m *model) owner() persistence.Token {
	if len(m.owners) == 0 {
		return ""
	}
	return m.owners[len(m.owners)-1]
}

func (m *model) end() uint64 {
	if len(m.batches) == 0 {
		return 0
	}
	return m.batches[len(m.batches)-1].Next
}

func (m *model) apply(e *Entry) Outcome {
	switch {
	case e.Kind == Acquire:
		m.owners = append(m.owners, token(len(m.owners)+1, int(e.Unique[31]-'0')))
		return Done
	case m.owner() == "" || e.Token != m.owner(): // also once it is a text of Released
		return Fenced
	case e.Kind == Release:
		// epochs continue; none of the alphabet's tokens is this text
		m.owners[len(m.owners)-1] = persistence.Released(e.Unique)
		return Done
	}
	if n := len(m.batches); n > 0 && m.batches[n-1].Next == e.Next &&
		m.batches[n-1].Digest == e.Digest {
		return Already
	}
	if m.end() != e.Prev {
		return gap
	}
	m.batches = append(m.batches, *e)
	return Done
}

// Every sequence of six entries of an alphabet matches the model.
func TestAllShortLogsMatchModel(t *testing.T) {
	alphabet := []*Entry{
		claim(1), claim(2), {Kind: Release, Token: token(1, 1), Unique: unique(7)},
		batch(token(1, 1), 0, 1, 11), batch(token(1, 1), 1, 2, 22), batch(token(2, 2), 1, 2, 23),
		batch(token(2, 1), 0, 1, 12),
	}
	const length = 6
	logs := 0
	var walk func(s *State, m model, depth int)
	walk = func(s *State, m model, depth int) {
		if depth == length {
			logs++
			return
		}
		for i, e := range alphabet {
			next, want := s.Clone(), model{append([]persistence.Token(nil), m.owners...),
				append([]Entry(nil), m.batches...)}
			if got, want := next.Apply(e).Outcome, want.apply(e); got != want {
				t.Fatalf("entry %d at depth %d: outcome %d, want %d", i, depth, got, want)
			}
			if next.Beat().End.Seq != want.end() {
				t.Fatalf("entry %d at depth %d: it ends at %d, want %d", i, depth,
					next.Beat().End.Seq, want.end())
			}
			walk(next, want, depth+1)
		}
	}
	walk(&State{}, model{}, 0)
	t.Logf("%d logs", logs)
}

// anEntry draws an entry that often fits.
func anEntry(t *rapid.T, s *State) *Entry {
	tok := s.Beat().Token
	if rapid.IntRange(0, 5).Draw(t, "of another") == 0 {
		tok = token(rapid.IntRange(0, 4).Draw(t, "epoch"), 1)
	}
	end := s.Beat().End.Seq
	near := func(what string) uint64 {
		return max(end+uint64(rapid.IntRange(0, 4).Draw(t, what)), 2) - 2
	}
	e := &Entry{Kind: Kind(rapid.IntRange(1, int(kinds)-1).Draw(t, "kind")), Token: tok,
		ID:     ID{Node: 1, Boot: 2, Number: rapid.Uint64().Draw(t, "number")},
		Format: First}
	switch e.Kind {
	case Append:
		e.Prev = end
		if rapid.IntRange(0, 3).Draw(t, "elsewhere") == 0 {
			e.Prev = near("prev")
		}
		e.Next = e.Prev + uint64(rapid.IntRange(1, 2).Draw(t, "records"))
		e.Batch = rapid.SliceOfN(rapid.Byte(), 1, 3).Draw(t, "batch")
		e.Digest = uint64(e.Batch[0]) % 3
	case Acquire:
		e.Token, e.Unique, e.Owner = "", unique(rapid.IntRange(1, 5).Draw(t, "claim")), "an owner"
		e.Heartbeat = persistence.Heartbeat{Check: time.Second, Stale: 3 * time.Second}
		e.Insist, e.NowMs = rapid.Bool().Draw(t, "insists"), int64(near("now"))
		if rapid.Bool().Draw(t, "names a beat") {
			b := s.Beat()
			e.After = &persistence.Beat{Token: b.Token, Count: b.Count, Accepted: b.Accepted,
				End: persistence.Mark{Seq: near("end"), Digest: b.End.Digest}}
		}
	case Release:
		e.Unique = unique(8)
	case Begin:
		e.Next, e.NowMs = near("begin"), 7
	case Trim:
		e.Next, e.Floor = near("trim"), near("floor")
	case Market:
		e.Batch = rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "market")
		e.Digest = codec.Digest(e.Batch)
	case Format:
		e.Token, e.Next = "", uint64(rapid.IntRange(0, 5).Draw(t, "format"))
	case Add, Join, Promote, Remove, Leave, Survive:
		e.Token = ""
		e.Name = rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "node")
		switch e.Kind {
		case Add:
			e.Replaces = rapid.SampledFrom([]string{"", "a", "d"}).Draw(t, "replaces")
		case Join:
			e.Unique = rapid.SampledFrom([]string{"x", "y"}).Draw(t, "start")
		}
	case Reads:
		e.Nonces = []persistence.Nonce{{Key: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"),
			Nonce: near("nonce")}}
	}
	return e
}

// A log gives the same answers however often it is applied, from its beginning or from the state
// after any of its entries, also when the state was stored. A refused entry stays refused.
func TestReappliedLogGivesSameAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Formed([]string{"a", "b", "c"})
		var log [][]byte
		var answers []Answer
		var states [][]byte
		for range rapid.IntRange(1, 60).Draw(t, "entries") {
			states = append(states, s.Encode())
			e := anEntry(t, s)
			b := e.Encode()
			got, err := Decode(b, Newest)
			if err != nil || !reflect.DeepEqual(got, e) {
				t.Fatalf("%+v is read as %+v: %v", e, got, err)
			}
			log, answers = append(log, b), append(answers, s.Apply(e))
		}
		states = append(states, s.Encode())
		from := rapid.IntRange(0, len(log)).Draw(t, "from")
		again, err := DecodeState(states[from])
		if err != nil {
			t.Fatal(err)
		}
		for i := from; i < len(log); i++ {
			e, err := Decode(log[i], Newest)
			if err != nil {
				t.Fatal(err)
			}
			if a := again.Apply(e); a != answers[i] {
				t.Fatalf("entry %d is answered %+v, and was %+v", i, a, answers[i])
			}
			if !bytes.Equal(again.Encode(), states[i+1]) {
				t.Fatalf("after entry %d the state differs", i)
			}
		}
		if again.Chain() != s.Chain() {
			t.Fatal("the chains differ")
		}
	})
}

// Each outcome maps to the error that every store returns for it.
func TestOutcomeMapsToStoreError(t *testing.T) {
	for _, c := range []struct {
		outcome Outcome
		want    error
	}{{Done, nil}, {Already, nil}, {Fenced, persistence.ErrFenced}, {gap, persistence.ErrGap},
		{held, persistence.ErrHeld}, {short, persistence.ErrCorrupt},
		{notEmpty, persistence.ErrInvalid}} {
		err := Answer{Outcome: c.outcome, owner: "an owner"}.Err(
			&Entry{After: &persistence.Beat{}})
		if !errors.Is(err, c.want) {
			t.Errorf("outcome %d is %v", c.outcome, err)
		}
	}
	if err := (Answer{}).Err(nil); err == nil || persistence.Definite(err) {
		t.Errorf("no outcome is %v", err)
	}
}

func TestTooLongTextIsRefused(t *testing.T) {
	long := strings.Repeat("x", maxText+1)
	for _, e := range []*Entry{{Token: persistence.Token(long)}, {Owner: long}, {Unique: long},
		{After: &persistence.Beat{Count: long}}, {Nonces: []persistence.Nonce{{Key: long}}}} {
		if err := e.Fits(); !errors.Is(err, persistence.ErrInvalid) {
			t.Errorf("%v", err)
		}
	}
}

// Each line is applied to one state, one after the other.
func TestMembershipChangeOutcomes(t *testing.T) {
	s := Formed([]string{"a", "b", "c"})
	for _, c := range []struct {
		e    Entry
		want Outcome
		now  string
	}{
		{Entry{Kind: Promote, Name: "d"}, unknownMember, "a1 b1 c1"},
		{Entry{Kind: Join, Name: "d", Unique: "x"}, unknownMember, "a1 b1 c1"},
		{Entry{Kind: Join, Name: "c", Unique: "x"}, unknownMember, "a1 b1 c1"},
		{Entry{Kind: Add, Name: "a"}, alreadyMember, "a1 b1 c1"},
		{Entry{Kind: Add, Name: "d", Address: "h:1"}, Done, "a1 b1 c1 d3"},
		{Entry{Kind: Add, Name: "d"}, alreadyMember, "a1 b1 c1 d3"},
		{Entry{Kind: Promote, Name: "d"}, notJoined, "a1 b1 c1 d3"},
		{Entry{Kind: Join, Name: "d", Unique: "x"}, Done, "a1 b1 c1 d2#4"},
		{Entry{Kind: Join, Name: "d", Unique: "x"}, Already, "a1 b1 c1 d2#4"},
		{Entry{Kind: Join, Name: "d", Unique: "y"}, Done, "a1 b1 c1 d2#5"},
		{Entry{Kind: Promote, Name: "d"}, Done, "a1 b1 c1 d1#5"},
		{Entry{Kind: Promote, Name: "d"}, alreadyMember, "a1 b1 c1 d1#5"},
		{Entry{Kind: Join, Name: "d", Unique: "z"}, unknownMember, "a1 b1 c1 d1#5"},
		{Entry{Kind: Add, Name: "e", Replaces: "x"}, unknownMember, "a1 b1 c1 d1#5"},
		{Entry{Kind: Add, Name: "e", Replaces: "b"}, Done, "a1 b1 c1 d1#5 e3"},
		{Entry{Kind: Remove, Name: "a"}, changing, "a1 b1 c1 d1#5 e3"},
		{Entry{Kind: Add, Name: "f"}, changing, "a1 b1 c1 d1#5 e3"},
		{Entry{Kind: Join, Name: "e", Unique: "w"}, Done, "a1 b1 c1 d1#5 e2#6"},
		{Entry{Kind: Promote, Name: "e"}, Done, "a1 b4 c1 d1#5 e1#6"},
		{Entry{Kind: Remove, Name: "a"}, changing, "a1 b4 c1 d1#5 e1#6"},
		{Entry{Kind: Join, Name: "e", Unique: "v"}, changing, "a1 b4 c1 d1#5 e1#6"},
		{Entry{Kind: Leave}, Done, "a1 c1 d1#5 e1#6"},
		{Entry{Kind: Add, Name: "c", Replaces: "c"}, Done, "a1 c1 d1#5 e1#6 c3"},
		{Entry{Kind: Remove, Name: "c"}, Done, "a1 c1 d1#5 e1#6"},
		{Entry{Kind: Remove, Name: "c"}, Done, "a1 d1#5 e1#6"},
		{Entry{Kind: Remove, Name: "c"}, unknownMember, "a1 d1#5 e1#6"},
		{Entry{Kind: Remove, Name: "a"}, Done, "d1#5 e1#6"},
		{Entry{Kind: Remove, Name: "d"}, Done, "e1#6"},
		{Entry{Kind: Remove, Name: "e"}, lastVoter, "e1#6"},
	} {
		a := s.Apply(&c.e)
		var now []string
		for _, m := range s.Members() {
			text := fmt.Sprint(m.Name, m.Role)
			if m.ID > 3 {
				text += fmt.Sprint("#", m.ID)
			}
			now = append(now, text)
		}
		if got := strings.Join(now, " "); a.Outcome != c.want || got != c.now {
			t.Errorf("%+v: outcome %d, want %d; %s", c.e, a.Outcome, c.want, got)
		}
		if err := a.Err(&c.e); (err == nil) != (a.Outcome == Done || a.Outcome == Already) ||
			err != nil && !persistence.Definite(err) {
			t.Errorf("%+v: %v", c.e, err)
		}
	}
	for n := 0; len(s.Members()) < maxMembers; n++ {
		s.Apply(&Entry{Kind: Add, Name: fmt.Sprint("n", n)})
	}
	if a := s.Apply(&Entry{Kind: Add, Name: "one more"}); a.Outcome != tooMany {
		t.Errorf("%+v", a)
	}
}

// A voter that survives is alone, also if another one was being replaced. IDs that the others may
// have given meanwhile are never given again, and the journal may lack its end until an append.
func TestOneVoterSurvives(t *testing.T) {
	s := Formed([]string{"a", "b", "c"})
	for _, e := range []*Entry{{Kind: Add, Name: "d", Replaces: "b"},
		{Kind: Join, Name: "d", Unique: "x"}, {Kind: Promote, Name: "d"}, claim(1)} {
		if a := s.Apply(e); a.Outcome != Done {
			t.Fatalf("%+v: %+v", e, a)
		}
	}
	for _, name := range []string{"b", "x"} {
		if a := s.Apply(&Entry{Kind: Survive, Name: name}); a.Outcome != unknownMember || s.Lost() {
			t.Errorf("%s: %+v", name, a)
		}
	}
	for range 2 {
		a := s.Apply(&Entry{Kind: Survive, Name: "c"})
		m := s.Members()
		if a.Outcome != Done || len(m) != 1 || m[0].ID != 3 || s.Joint() || !s.Lost() {
			t.Fatalf("%+v, %+v", a, m)
		}
	}
	s.Apply(&Entry{Kind: Add, Name: "b"})
	s.Apply(&Entry{Kind: Join, Name: "b", Unique: "y"})
	if id := s.Members()[1].ID; id != 2*epochIDs+1 {
		t.Errorf("the ID %d is given", id)
	}
	if s.Apply(batch(token(1, 1), 0, 1, 11)); s.Lost() {
		t.Error("Lost is still set after an append")
	}
}

// A format that was applied stays, in the image, too. An entry of a format newer than the program's
// is distinguished from a damaged one.
func TestFormatOnlyGrows(t *testing.T) {
	s := Formed([]string{"a", "b", "c"})
	for _, c := range []struct {
		to   uint64
		want Outcome
		now  uint8
	}{{First, Already, First}, {First + 2, Done, First + 2}, {First + 1, Already, First + 2},
		{First + 2, Already, First + 2}} {
		e := &Entry{Kind: Format, Next: c.to}
		if tried, _ := s.Try(e); tried.Outcome != c.want {
			t.Errorf("to %d: tried, outcome %d, want %d", c.to, tried.Outcome, c.want)
		}
		if a := s.Apply(e); a.Outcome != c.want || s.Format() != c.now {
			t.Errorf("to %d: outcome %d, format %d, want %d and %d", c.to, a.Outcome, s.Format(),
				c.want, c.now)
		}
	}
	again, err := DecodeState(s.Encode())
	if err != nil || again.Format() != First+2 || again.Clone().Format() != First+2 {
		t.Fatalf("%+v, %v", again, err)
	}
	newer := (&Entry{Kind: Check, Format: First + 1}).Encode()
	if _, err := Decode(newer, First); !errors.Is(err, persistence.ErrFormat) {
		t.Errorf("an entry of a newer format: %v", err)
	}
	if e, err := Decode(newer, First+1); err != nil || e.Format != First+1 {
		t.Errorf("%+v, %v", e, err)
	}
	newer[0] = First - 1
	if _, err := Decode(newer, First); !errors.Is(err, persistence.ErrCorrupt) {
		t.Errorf("an entry of no format: %v", err)
	}
}

// The owner alone agrees on a market part. The newest term's part is kept beside it, and both are
// in the image. An entry with a damaged or too long text is refused.
func TestOwnerAgreesOnMarket(t *testing.T) {
	s := Formed([]string{"a"})
	market := func(tok persistence.Token, text string) *Entry {
		return &Entry{Kind: Market, Token: tok, Digest: codec.Digest([]byte(text)),
			Batch: []byte(text)}
	}
	s.Apply(claim(1))
	current := market(token(1, 1), "first")
	current.Next = 1
	s.Apply(market(token(1, 1), "of no term"))
	s.Apply(current)
	s.Apply(claim(2))
	if a := s.Apply(market(token(1, 1), "of one that owns no more")); a.Outcome != Fenced {
		t.Errorf("%+v", a)
	}
	if a := s.Apply(market(token(2, 2), "second")); a.Outcome != Done {
		t.Errorf("%+v", a)
	}
	again, err := DecodeState(s.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if next, current := again.Market(); string(next) != "second" || string(current) != "first" {
		t.Errorf("%s, and %s is current", next, current)
	}
	image := again.Encode()
	image[bytes.LastIndex(image, []byte("second"))]++
	if _, err := DecodeState(image); !errors.Is(err, persistence.ErrCorrupt) {
		t.Errorf("an image with a damaged text: %v", err)
	}
	lent := market(token(2, 2), "third")
	s.Apply(lent)
	copy(lent.Batch, "other") // its reader has the next entry there
	if next, _ := s.Market(); string(next) != "third" {
		t.Errorf("the market part is %s", next)
	}
	good := market(token(2, 2), strings.Repeat("x", MaxMarket)).Encode()
	if _, err := Decode(good, Newest); err != nil {
		t.Error(err)
	}
	damaged := bytes.Clone(good)
	damaged[len(damaged)-7]++
	for what, b := range map[string][]byte{"a damaged text": damaged,
		"a text that is too long": market(token(2, 2), strings.Repeat("x", MaxMarket+1)).Encode(),
		"no text":                 market(token(2, 2), "").Encode()} {
		if _, err := Decode(b, Newest); !errors.Is(err, persistence.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Of a newer program's state only the members are read.
func TestMembersOfNewerStateAreRead(t *testing.T) {
	s := Formed([]string{"a", "b", "c"})
	s.Apply(&Entry{Kind: Format, Next: Newest + 1})
	b := append(s.Encode(), "unknown fields"...)
	if _, err := DecodeState(b); !errors.Is(err, persistence.ErrCorrupt) {
		t.Errorf("bytes after a state: %v", err)
	}
	b[0] = imageVersion + 1
	got, err := DecodeState(b)
	if err != nil || got.Format() != Newest+1 || !reflect.DeepEqual(got.Members(), s.Members()) {
		t.Errorf("%+v, %v", got, err)
	}
	b[1] = Newest
	if _, err := DecodeState(b); !errors.Is(err, persistence.ErrCorrupt) {
		t.Errorf("a newer state of a format that is read: %v", err)
	}
}

// FuzzDecode: a decoded entry encodes as the same bytes, and can be applied.
func FuzzDecode(f *testing.F) {
	tok := token(1, 1)
	after := claim(2)
	after.After, after.Insist = &persistence.Beat{Token: tok, Count: "3"}, true
	for _, e := range []*Entry{claim(1), after, batch(tok, 0, 1, 2), {Kind: Check, Token: tok},
		{Kind: Release, Token: tok, Unique: unique(3)}, {Kind: Begin, Token: tok, Next: 5},
		{Kind: Trim, Token: tok, Next: 5, Floor: 6}, {Kind: Format, Next: 3},
		{Kind: Market, Token: tok, Digest: codec.Digest([]byte("m")), Batch: []byte("m")},
		{Kind: Reads, Token: tok, Nonces: []persistence.Nonce{{Key: "key", Nonce: 7}}}} {
		f.Add(e.Encode())
	}
	f.Add(append([]byte{Newest + 1}, claim(1).Encode()[1:]...))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := Decode(b, Newest)
		if err != nil {
			want := persistence.ErrCorrupt
			if len(b) > 0 && b[0] > Newest {
				want = persistence.ErrFormat
			}
			if !errors.Is(err, want) {
				t.Fatalf("%x: %v, want %v", b, err, want)
			}
			return
		}
		if !bytes.Equal(e.Encode(), b) {
			t.Fatalf("%x is read as %+v", b, e)
		}
		s := &State{}
		s.Apply(claim(1))
		s.Apply(e)
		again, err := DecodeState(s.Encode())
		if err != nil || again.Chain() != s.Chain() {
			t.Fatal(err)
		}
	})
}
