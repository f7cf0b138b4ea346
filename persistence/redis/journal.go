package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"

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
func (s *Store) Acquire(ctx context.Context, c persistence.Claim) (persistence.Token, uint64, error) {
	id, err := codec.CheckClaim(c)
	if err != nil {
		return "", 0, err
	}
	args := []any{c.Owner, id}
	if c.After != nil {
		args = append(args, string(c.After.Token), c.After.Count)
	}
	answer, err := acquireScript.Run(ctx, s.journal, []string{s.head()}, args...).Slice()
	if err != nil {
		return "", 0, s.fault("acquire", err)
	}
	if len(answer) == 4 {
		token, ok := answer[1].(string)
		if code, _ := answer[0].(int64); code == codeHeld {
			return "", 0, codec.Held(token)
		}
		seq, ok2 := answer[2].(string)
		sum, ok3 := answer[3].(string)
		if ok && ok2 && ok3 {
			end, err := s.mark(seq, sum)
			if err == nil {
				err = s.owns(end)
			}
			if err == nil && !s.accept {
				err = s.look(ctx, s.journal) // from here on nobody else writes: what is there must be in the file
			}
			return persistence.Token(token), end.Seq, err
		}
	}
	return "", 0, s.fault("acquire", fmt.Errorf("the script answered %v", answer))
}

// owns notes where the journal of a new owner ends: reads are answered from what is there, so it must not be less later.
func (s *Store) owns(end head.Mark) error {
	if s.fill {
		return nil
	}
	if err := s.atLeast(end); err != nil {
		return err
	}
	if s.acknowledged.Missing() {
		return nil // the first append makes it
	}
	return s.acknowledged.Advance(end)
}

// Begin makes the journal of an empty store end at seq.
func (s *Store) Begin(ctx context.Context, tok persistence.Token, seq uint64) error {
	if err := codec.CheckBegin(seq); err != nil {
		return err
	}
	code, text, err := s.run(ctx, s.journal, beginScript, "begin the journal", []string{s.head(), s.stream(), s.watermark()},
		string(tok), dec(seq))
	if err != nil {
		return err
	}
	switch code {
	case codeDone, codeThere:
		return nil
	case codeNotEmpty:
		return codec.NotEmpty(text)
	}
	return s.fault("begin the journal", fmt.Errorf("the script answered %d %s", code, text))
}

// Beat is the engine's newest beat.
func (s *Store) Beat(ctx context.Context) (persistence.Beat, error) {
	m, err := fields(s.history.HMGet(ctx, s.head(), "epoch", "owner", "beat"))
	if err != nil {
		return persistence.Beat{}, s.fault("look for the owner", err)
	}
	return persistence.Beat{Token: persistence.Token(m[0]), Owner: m[1], Count: m[2]}, nil
}

// Check is nil while tok owns the engine. It is the owner's beat, and says so also where Redis is not
// durable enough: its owner lives all the same.
func (s *Store) Check(ctx context.Context, tok persistence.Token) error {
	if tok == "" {
		return s.fault("check the owner", persistence.ErrFenced)
	}
	_, _, err := s.run(ctx, s.journal, beatScript, "check the owner", []string{s.head()},
		string(tok), dec(s.beats.Add(1)))
	if err != nil {
		return err
	}
	return s.fit(ctx)
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

// fields are the values of an HMGET; "" for those that do not exist.
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

// hex is the text of a batch's digest.
func hex(digest uint64) string { return fmt.Sprintf("%016x", digest) }

// Append makes a batch durable: Redis answers only after its file is on disk.
func (s *Store) Append(ctx context.Context, tok persistence.Token, prev, next uint64, batch []byte) error {
	if err := codec.CheckBatch(prev, next, batch); err != nil {
		return err
	}
	if err := s.fit(ctx); err != nil {
		return s.fault("append", err)
	}
	digest := codec.Digest(batch)
	code, text, err := s.run(ctx, s.journal, appendScript, "append", []string{s.head(), s.stream()},
		string(tok), dec(prev), dec(next), hex(digest), batch)
	if err != nil {
		return err
	}
	switch code {
	case codeDone, codeThere:
		return s.acknowledged.Advance(head.Mark{Seq: next, Digest: digest}) // an error leaves the outcome unknown: the next try finds the append there
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
func (s *Store) Read(ctx context.Context, after uint64, fn func(prev, next uint64, batch []byte) error) error {
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
func (s *Store) entry(id string, values map[string]any) (prev, next, sum uint64, batch []byte, err error) {
	last, minor, _ := strings.Cut(id, "-")
	p, ok1 := values["p"].(string)
	d, ok2 := values["d"].(string)
	b, ok3 := values["b"].(string)
	next, err1 := strconv.ParseUint(last, 10, 64)
	prev, err2 := strconv.ParseUint(p, 10, 64)
	sum, err3 := strconv.ParseUint(d, 16, 64)
	if !ok1 || !ok2 || !ok3 || minor != "0" || err1 != nil || err2 != nil || err3 != nil {
		return 0, 0, 0, nil, fmt.Errorf("%s: %w: entry %s of %s is not one of a journal", s.name, persistence.ErrCorrupt, id, s.stream())
	}
	return prev, next, sum, []byte(b), nil
}

// Trim forgets batches that end at or below upTo.
func (s *Store) Trim(ctx context.Context, tok persistence.Token, upTo uint64) error {
	_, _, err := s.run(ctx, s.projections, trimScript, "trim the journal", []string{s.head(), s.stream()},
		string(tok), dec(min(upTo, codec.MaxID)+1))
	return err
}
