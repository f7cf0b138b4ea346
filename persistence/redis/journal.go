package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
	"exchange/persistence/internal/head"
)

const (
	// pageBytes is about how much of the journal one command reads.
	pageBytes = 1 << 20
	// pageBatches bounds it for small batches.
	pageBatches = 1000
)

// Acquire makes the caller the owner.
func (s *Store) Acquire(ctx context.Context, c persistence.Claim) (persistence.Token, uint64,
	error) {
	id, err := codec.CheckClaim(c)
	if err != nil {
		return "", 0, err
	}
	answer, err := acquireScript.Run(ctx, s.journal, []string{s.head()}, claimed(&c, id)...).Slice()
	if err != nil {
		return "", 0, s.fault("acquire", err)
	}
	var texts [3]string
	code, ok := int64(0), len(answer) == 1+len(texts)
	for i := 0; ok && i < len(texts); i++ {
		texts[i], ok = answer[1+i].(string)
	}
	if ok {
		code, ok = answer[0].(int64)
	}
	if !ok {
		return "", 0, s.fault("acquire", fmt.Errorf("the script answered %v", answer))
	}
	end, err := s.parseMark(texts[1], texts[2])
	switch {
	case code == codeHeld:
		return "", 0, codec.Held(texts[0])
	case code == codeVersion:
		return "", 0, s.otherVersion(texts[0])
	case code == codeCut:
		return "", 0, s.fault("acquire", persistence.Cut(texts[0]))
	case err != nil:
		return "", 0, err
	case code == codeShort:
		return "", 0, s.fault("acquire", persistence.Shortened(c.After.End, persistence.Mark(end)))
	case code != codeDone:
		return "", 0, s.fault("acquire", fmt.Errorf("the script answered %v", answer))
	}
	tok := persistence.Token(texts[0])
	return tok, end.Seq, s.adopt(ctx, tok, end)
}

// claimed returns the arguments of a claim.
func claimed(c *persistence.Claim, id string) []any {
	insists := ""
	if c.Insist {
		insists = nowMs()
	}
	args := []any{c.Owner, id, heartbeatText(c.Heartbeat), version, insists}
	if c.After != nil {
		seq, digest := texts(head.Mark(c.After.End))
		args = append(args, string(c.After.Token), c.After.Count, seq, digest)
	}
	return args
}

// nowMs returns the time that numbers an acceptance.
func nowMs() string { return strconv.FormatInt(time.Now().UnixMilli(), 10) }

// heartbeatText returns the stored form of a heartbeat: "<check> <stale>", in milliseconds.
func heartbeatText(r persistence.Heartbeat) string {
	return fmt.Sprintf("%d %d", persistence.Milliseconds(r.Check),
		persistence.Milliseconds(r.Stale))
}

// slowest is above all configurable heartbeats.
const slowest = 24 * time.Hour

// parseHeartbeat reads a stored heartbeat. An unreadable one is zero, so only the reading process's
// counts.
func parseHeartbeat(text string) (r persistence.Heartbeat) {
	const most = int64(slowest / time.Millisecond)
	var check, stale int64
	if n, err := fmt.Sscanf(text, "%d %d", &check, &stale); n != 2 || err != nil ||
		min(check, stale) < 0 || max(check, stale) > most {
		return r
	}
	return persistence.Heartbeat{Check: time.Duration(check) * time.Millisecond,
		Stale: time.Duration(stale) * time.Millisecond}
}

// adopt records the end of a new owner's journal. The owner answers reads from that journal, so the
// journal must not be shorter later.
func (s *Store) adopt(ctx context.Context, tok persistence.Token, end head.Mark) error {
	if !s.fill {
		if err := s.atLeast(end); err != nil {
			return err
		}
	}
	if !s.fill && !s.acknowledged.Missing() { // the first append makes a missing one
		if err := s.acknowledged.Advance(end); err != nil {
			return err
		}
	}
	s.own.Store(&ownClaim{token: tok, end: end})
	if s.accept {
		return nil
	}
	// From here on no other process writes. Its whole content must be in the append-only file.
	return s.checkDurability(ctx, s.journal)
}

// ownClaim is the newest claim of this process, with the last observed end of its journal. It is
// replaced as a whole.
type ownClaim struct {
	token persistence.Token
	end   head.Mark
}

// advanceEnd records the end of an owner's journal.
func (s *Store) advanceEnd(tok persistence.Token, end head.Mark) {
	for now := s.own.Load(); now.token == tok && end.Seq > now.end.Seq; now = s.own.Load() {
		if s.own.CompareAndSwap(now, &ownClaim{tok, end}) {
			return
		}
	}
}

// lastEnd returns the least end of an owner's journal, as arguments of a script.
func (s *Store) lastEnd(tok persistence.Token) (seq, digest string) {
	if now := s.own.Load(); now.token == tok {
		return texts(now.end)
	}
	return "0", ""
}

// texts returns a mark as arguments of a script.
func texts(m head.Mark) (seq, digest string) {
	if m.Digest != 0 {
		digest = hex(m.Digest)
	}
	return dec(m.Seq), digest
}

// Begin makes the journal of an empty store end at seq.
func (s *Store) Begin(ctx context.Context, tok persistence.Token, seq uint64) error {
	if err := codec.CheckBegin(seq); err != nil {
		return err
	}
	code, text, err := s.run(ctx, s.journal, beginScript, "begin the journal",
		[]string{s.head(), s.stream(), s.watermark()},
		string(tok), dec(seq), nowMs())
	if err != nil {
		return err
	}
	switch code {
	case codeDone, codeThere:
		s.advanceEnd(tok, head.Mark{Seq: seq})
		return nil
	case codeNotEmpty:
		return codec.NotEmpty(text)
	}
	return s.fault("begin the journal", fmt.Errorf("the script answered %d %s", code, text))
}

// Beat returns the engine's newest beat.
func (s *Store) Beat(ctx context.Context) (persistence.Beat, error) {
	m, err := fields(s.history.HMGet(ctx, s.head(), "epoch", "owner", "beat", "rhythm", "seq",
		"dig", "lost", "accepted", "origin"))
	if err != nil {
		return persistence.Beat{}, s.fault("read the owner", err)
	}
	end, err := s.parseMark(m[4], m[5])
	accepted, _ := strconv.ParseUint(m[7], 10, 64) // unreadable: none
	return persistence.Beat{Token: persistence.Token(m[0]), Owner: m[1], Count: m[2],
		Heartbeat: parseHeartbeat(m[3]),
		End:       persistence.Mark(end), Lost: m[6], Accepted: accepted,
		Origin: m[8]}, err
}

// Check returns nil while tok owns the engine. It leaves the owner's beat. If the beat was left but
// Redis is not durable enough, the error is ErrConfirmed, too: the owner is still alive.
func (s *Store) Check(ctx context.Context, tok persistence.Token) error {
	if tok == "" {
		return s.fault("check the owner", persistence.ErrFenced)
	}
	if s.canProve(tok) && s.isDue() { // then the probe leaves the beat
		from := time.Since(s.born)
		a := s.sendProbe(ctx, s.journal, tok)
		err := s.readBeat(tok, a.beat)
		if definite(err) {
			return err
		}
		if err = checkOutcome(err, s.evaluate(a)); err == nil {
			s.scheduleCheck(from)
		}
		return err
	}
	err := s.readBeat(tok, beatScript.Run(ctx, s.journal, []string{s.head()}, s.beatArgs(tok)...))
	if refused := redis.Error(nil); err != nil && (definite(err) || !errors.As(err, &refused)) {
		return err
	}
	return checkOutcome(err, s.fit(ctx))
}

// checkOutcome combines the outcomes of a beat and of the check beside it. If Redis refuses the
// beat, the check has the reason.
func checkOutcome(beat, check error) error {
	switch {
	case check == nil:
		return beat
	case beat == nil && (errors.Is(check, persistence.ErrNotDurable) ||
		errors.Is(check, persistence.ErrNotInEffect)):
		return fmt.Errorf("%w, and %w", persistence.ErrConfirmed, check)
	}
	return check
}

// beatArgs returns the arguments of another beat.
func (s *Store) beatArgs(tok persistence.Token) []any {
	seq, digest := s.lastEnd(tok)
	return []any{string(tok), dec(s.beatCount.Add(1)), seq, digest}
}

// readBeat reads the answer to a beat.
func (s *Store) readBeat(tok persistence.Token, answer *redis.Cmd) error {
	code, text, err := s.code("check the owner", answer)
	if err != nil || code == codeDone {
		return err
	}
	if code != codeGap {
		return s.fault("check the owner", fmt.Errorf("the script answered %d %s", code, text))
	}
	stored, err := s.number("the journal's end", text)
	if err != nil {
		return err
	}
	return codec.Gap(stored, s.own.Load().end.Seq)
}

// definite reports whether an error ends an owner.
func definite(err error) bool {
	return errors.Is(err, persistence.ErrFenced) || errors.Is(err, persistence.ErrGap) ||
		errors.Is(err, persistence.ErrCorrupt)
}

// Release gives the engine back.
func (s *Store) Release(ctx context.Context, tok persistence.Token) error {
	if tok == "" {
		return s.fault("release the engine", persistence.ErrFenced)
	}
	_, _, err := s.run(ctx, s.journal, releaseScript, "release the engine", []string{s.head()},
		string(tok), string(persistence.Released(persistence.NewID())))
	return err
}

// fields returns the values of an HMGET; "" for those that do not exist.
func fields(cmd *redis.SliceCmd) ([]string, error) {
	values, err := cmd.Result()
	if err != nil {
		return nil, err
	}
	out := make([]string, len(values))
	for i, v := range values {
		out[i], _ = v.(string)
	}
	return out, nil
}

// hex returns the text of a batch's digest.
func hex(digest uint64) string { return fmt.Sprintf("%016x", digest) }

// Append makes a batch durable: Redis answers only after its file is on disk.
func (s *Store) Append(ctx context.Context, tok persistence.Token, prev, next uint64,
	batch []byte) error {
	if err := codec.CheckBatch(prev, next, batch); err != nil {
		return err
	}
	if err := s.fit(ctx); err != nil {
		return s.fault("append", err)
	}
	digest := codec.Digest(batch)
	seq, sum := s.lastEnd(tok)
	code, text, err := s.run(ctx, s.journal, appendScript, "append", []string{s.head(), s.stream()},
		string(tok), dec(prev), dec(next), hex(digest), batch, seq, sum)
	if err != nil {
		return err
	}
	switch code {
	case codeDone, codeThere:
		s.advanceEnd(tok, head.Mark{Seq: next, Digest: digest})
		// an error leaves the outcome unknown: the next try finds the append
		return s.acknowledged.Advance(head.Mark{Seq: next, Digest: digest})
	case codeGap:
		stored, err := s.number("the journal's end", text)
		if err != nil {
			return err
		}
		return codec.Gap(stored, prev)
	}
	return s.fault("append", fmt.Errorf("the script answered %d %s", code, text))
}

// Read calls fn for each batch that ends above after. The end is fixed before it starts, so that
// appends meanwhile do not matter.
func (s *Store) Read(ctx context.Context, after uint64, fn func(prev, next uint64,
	batch []byte) error) error {
	m, err := fields(s.history.HMGet(ctx, s.head(), "seq"))
	if err != nil {
		return s.fault("read the journal's end", err)
	}
	chain := codec.Chain{After: after}
	if m[0] != "" {
		if chain.End, err = s.number("the journal's end", m[0]); err != nil {
			return err
		}
	}
	if empty, err := chain.Empty(); empty || err != nil {
		return err
	}
	end := dec(chain.End) + "-0"
	count, from := int64(16), after+1
	for from <= chain.End {
		page, err := s.history.XRangeN(ctx, s.stream(), dec(from)+"-0", end, count).Result()
		if err != nil {
			return s.fault("read the journal", err)
		}
		if len(page) == 0 {
			break
		}
		size := 0
		for _, entry := range page {
			prev, next, sum, batch, err := s.entry(entry.ID, entry.Values)
			if err != nil {
				return err
			}
			if err := chain.Next(prev, next, sum, batch); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if err := fn(prev, next, batch); err != nil {
				return err
			}
			size += len(batch)
			from = next + 1
		}
		count = min(max(pageBytes*int64(len(page))/int64(max(size, 1)), 1), pageBatches)
	}
	if err := chain.Done(); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// entry reads one entry of the journal's stream.
func (s *Store) entry(id string, values map[string]any) (prev, next, sum uint64, batch []byte,
	err error) {
	last, minor, _ := strings.Cut(id, "-")
	p, ok1 := values["p"].(string)
	d, ok2 := values["d"].(string)
	b, ok3 := values["b"].(string)
	next, err1 := strconv.ParseUint(last, 10, 64)
	prev, err2 := strconv.ParseUint(p, 10, 64)
	sum, err3 := strconv.ParseUint(d, 16, 64)
	if !ok1 || !ok2 || !ok3 || minor != "0" || err1 != nil || err2 != nil || err3 != nil {
		return 0, 0, 0, nil, fmt.Errorf("%s: %w: entry %s of %s is not one of a journal", s.name,
			persistence.ErrCorrupt, id, s.stream())
	}
	return prev, next, sum, []byte(b), nil
}

// trimEntries is the usual number of the journal's entries that one call trims: half a millisecond
// of Redis's time.
const trimEntries = 500

// Trim forgets batches that end at or below upTo. It then has Redis rewrite its file, if that has
// grown: the oldest image is removed by then, and no upload is under way.
func (s *Store) Trim(ctx context.Context, tok persistence.Token, upTo uint64) error {
	for more := true; more; {
		code, _, err := s.run(ctx, s.projections, trimScript, "trim the journal",
			[]string{s.head(), s.stream()},
			string(tok), dec(min(upTo, codec.MaxID)+1), s.trimEntries)
		if err != nil {
			return err
		}
		if err := persistence.Pace(ctx); err != nil {
			return err
		}
		more = code == codeMore
	}
	s.rewrite(ctx)
	return nil
}
