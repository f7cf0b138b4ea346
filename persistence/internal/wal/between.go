package wal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

var errEnough = errors.New("the rest is not needed")

// Between calls fn for each batch that overlaps (after, upTo], in order. A Cut at upTo or above may
// run at the same time. ErrCorrupt: the chain of batches is broken, or does not cover the range.
func (l *Log) Between(after, upTo uint64, fn func(prev, next uint64, batch []byte) error) (
	err error) {
	if after >= upTo {
		return nil
	}
	segments, end := l.hold(after, upTo)
	defer func() { err = errors.Join(err, l.release(segments)) }()
	reached := after
	chain := codec.Chain{After: after}
	for _, s := range segments {
		used := s.size
		if s.number == end.number {
			used = min(end.used, used)
		}
		err := l.readSegment(context.Background(), s, used, after, &chain,
			func(prev, next uint64, batch []byte) error {
				if prev >= upTo {
					return errEnough
				}
				reached = next
				return fn(prev, next, batch)
			})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
		if reached >= upTo {
			return nil
		}
	}
	return fmt.Errorf("%w: the log has the batches up to %d, and should have them up to %d",
		persistence.ErrCorrupt, reached, upTo)
}

// lastUsed is the end of the log: its segment, and the offset there.
type lastUsed struct {
	number uint64
	used   int64
}

// hold returns the segments that may overlap (after, upTo]. The caller releases them.
func (l *Log) hold(after, upTo uint64) ([]*segment, lastUsed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from, to := 0, 0
	for i, s := range l.segments {
		if s.first <= after {
			from = i
		}
		if s.first < upTo {
			to = i + 1
		}
	}
	var end lastUsed
	if n := len(l.segments); n > 0 {
		end = lastUsed{l.segments[n-1].number, l.end.used}
	}
	held := slices.Clone(l.segments[from:max(from, to)])
	for _, s := range held {
		s.refs++
	}
	return held, end
}
