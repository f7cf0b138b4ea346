package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"exchange/persistence"
)

// settings that durability needs, and why; maxmemory-policy because evicting a key loses data too.
var settings = []struct{ name, value string }{
	{"appendonly", "yes"},
	{"appendfsync", "always"},
	{"no-appendfsync-on-rewrite", "no"},
	{"maxmemory-policy", "noeviction"},
}

// asked is a client, or one connection of it.
type asked interface {
	Pipelined(ctx context.Context, fn func(redis.Pipeliner) error) ([]redis.Cmder, error)
}

// durability lists what is wrong with Redis, each with its value and the one to set. It asks for all of it at once.
func (s *Store) durability(ctx context.Context, c asked) ([]string, error) {
	var replication *redis.StringCmd
	values := make([]*redis.MapStringStringCmd, len(settings))
	c.Pipelined(ctx, func(p redis.Pipeliner) error { //nolint:errcheck // each answer has its own
		replication = p.Info(ctx, "replication")
		for i, want := range settings {
			values[i] = p.ConfigGet(ctx, want.name)
		}
		return nil
	})
	var wrong []string
	info, err := s.section("replication", replication)
	if err != nil {
		return nil, err
	}
	if role := info["role"]; role != "master" {
		wrong = append(wrong, fmt.Sprintf("its role is %q and must be \"master\": connect to the primary", role))
	}
	for i, want := range settings {
		got, err := values[i].Result()
		if err != nil {
			var answer redis.Error
			if !errors.As(err, &answer) || redis.HasErrorPrefix(err, "BUSY") || redis.HasErrorPrefix(err, "LOADING") {
				return nil, fmt.Errorf("%s: CONFIG GET %s: %w", s.name, want.name, err)
			}
			return s.unverifiable(ctx, c, wrong)
		}
		if got[want.name] != want.value {
			wrong = append(wrong, fmt.Sprintf("%s is %q and must be %q", want.name, got[want.name], want.value))
		}
	}
	return wrong, nil
}

// unverifiable is the answer where CONFIG is forbidden, as managed services do.
func (s *Store) unverifiable(ctx context.Context, c asked, wrong []string) ([]string, error) {
	var answer *redis.StringCmd
	c.Pipelined(ctx, func(p redis.Pipeliner) error { //nolint:errcheck // the answer has it
		answer = p.Info(ctx, "persistence")
		return nil
	})
	info, err := s.section("persistence", answer)
	if err != nil {
		return nil, err
	}
	if info["aof_enabled"] != "1" {
		wrong = append(wrong, "appendonly is \"no\" and must be \"yes\"")
	}
	return append(wrong, "CONFIG GET is not allowed there, so appendfsync, no-appendfsync-on-rewrite and maxmemory-policy are unknown and must be \"always\", \"no\" and \"noeviction\""), nil
}

// notDurable is ErrNotDurable with its reasons. It wraps nothing: the client library takes off the outermost text of an error that a new
// connection meets.
type notDurable struct{ text string }

func (e *notDurable) Error() string        { return e.text }
func (e *notDurable) Is(target error) bool { return target == persistence.ErrNotDurable }

// refusal is the error for what is wrong.
func (s *Store) refusal(wrong []string) error {
	return &notDurable{fmt.Sprintf("%v: %s: %s; set these in redis.conf and restart Redis, or start with --accept-redis-durability to accept that acknowledged orders may be lost",
		persistence.ErrNotDurable, s.name, strings.Join(wrong, "; "))}
}

// connected refuses a new connection for appends if Redis is not what it was at the start: it may have been started again with other
// settings, or another one may have its address now.
func (s *Store) connected(ctx context.Context, c *redis.Conn) error {
	if s.accept {
		return nil
	}
	return s.look(ctx, c)
}

// fit looks again now and then whether Redis is what it was at the start, and each time while it is not.
func (s *Store) fit(ctx context.Context) error {
	if s.accept || int64(time.Since(s.born)) < s.due.Load() {
		return nil
	}
	if err := s.look(ctx, s.journal); err != nil {
		return err
	}
	s.due.Store(int64(time.Since(s.born) + s.recheck))
	return nil
}

// look is an error if Redis may lose what it acknowledges, or cannot be asked.
func (s *Store) look(ctx context.Context, c asked) error {
	wrong, err := s.durability(ctx, c)
	if err != nil {
		return err
	}
	if len(wrong) > 0 {
		s.due.Store(0) // another connection may be older
		return s.refusal(wrong)
	}
	return nil
}
