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

// A ground is the state of Redis on which the proof of its append-only file rests. While it stays
// the same, the file stays in effect, and a rewrite of it is an ordinary one.
type ground struct {
	run         string // the process
	replication string // changes with each full synchronisation and each promotion
	sets        int64  // calls of CONFIG SET; on Redis 6, of every CONFIG
	own         int64  // of these, the calls of the look itself, counted after its question
	resets      int64  // calls of CONFIG RESETSTAT, which begins the counts anew
	commands    int64  // in all: fewer than before tell of a reset, too
}

// holds reports whether nothing has happened since an earlier look that could have switched the
// append-only file off.
func (g ground) holds(now ground) bool {
	return g.run == now.run && g.replication == now.replication && g.sets == now.sets &&
		g.resets == now.resets && g.commands <= now.commands
}

// A sight is the answer to one look at Redis, all in one round trip.
type sight struct {
	// The order of the questions matters: the next look sees every change that comes after the
	// first question of this one.
	commands, server, stats, replication *redis.StringCmd
	settings                             []*redis.MapStringStringCmd
	persistence                          *redis.StringCmd
	beat                                 *redis.Cmd // the owner's; nil where there is no proof
	// WAITAOF behind the beat; nil where Redis lacks it, or this process owns nothing
	proof *redis.Cmd
}

// proofWait bounds WAITAOF. With appendfsync always it answers as soon as the write before it does.
// When its time is up it still counts the synced data.
const proofWait = 200 * time.Millisecond

// proves reports whether a look with that token can be proved by WAITAOF. WAITAOF confirms only the
// writes of its own connection, and only the owner of the engine writes there.
func (s *Store) proves(tok persistence.Token) bool { return s.waits && !s.accept && tok != "" }

func (s *Store) ask(ctx context.Context, c asked, tok persistence.Token) *sight {
	a := &sight{settings: make([]*redis.MapStringStringCmd, len(settings))}
	c.Pipelined(ctx, func(p redis.Pipeliner) error { //nolint:errcheck // each answer has its own
		a.commands, a.server, a.stats = p.Info(ctx, "commandstats"), p.Info(ctx, "server"),
			p.Info(ctx, "stats")
		a.replication = p.Info(ctx, "replication")
		for i, want := range settings {
			a.settings[i] = p.ConfigGet(ctx, want.name)
		}
		a.persistence = p.Info(ctx, "persistence")
		if s.proves(tok) {
			a.beat = p.Eval(ctx, endsLua+beatLua, []string{s.head()}, s.beatArgs(tok)...)
			a.proof = p.Do(ctx, "WAITAOF", 1, 0, proofWait.Milliseconds())
		}
		return nil
	})
	return a
}

// durability lists the wrong settings of Redis, each with its value and the right one. If all are
// right, the error tells whether the append-only file is not in effect (yet).
func (s *Store) durability(a *sight) ([]string, error) {
	if info, err := s.section("persistence", a.persistence); err == nil {
		s.rewriting.Store(info["aof_rewrite_in_progress"] == "1")
	}
	wrong, err := s.settingsWrong(a)
	if err != nil || len(wrong) > 0 {
		return wrong, err
	}
	return nil, s.inEffect(a)
}

// Rewriting reports whether Redis rewrote its append-only file at the newest look.
func (s *Store) Rewriting() bool { return s.rewriting.Load() }

// settingsWrong lists the faults of Redis's role and settings.
func (s *Store) settingsWrong(a *sight) (wrong []string, err error) {
	info, err := s.section("replication", a.replication)
	if err != nil {
		return nil, err
	}
	if role := info["role"]; role != "master" {
		wrong = append(wrong, fmt.Sprintf(
			"its role is %q and must be \"master\": connect to the primary", role))
	}
	for i, want := range settings {
		got, err := a.settings[i].Result()
		if err != nil {
			var answer redis.Error
			if !errors.As(err, &answer) || redis.HasErrorPrefix(err, "BUSY") ||
				redis.HasErrorPrefix(err, "LOADING") {
				return nil, fmt.Errorf("%s: CONFIG GET %s: %w", s.name, want.name, err)
			}
			return s.unverifiable(a, wrong)
		}
		if got[want.name] != want.value {
			wrong = append(wrong, fmt.Sprintf("%s is %q and must be %q", want.name, got[want.name],
				want.value))
		}
	}
	return wrong, nil
}

// unverifiable returns the answer where CONFIG is forbidden, as managed services do.
func (s *Store) unverifiable(a *sight, wrong []string) ([]string, error) {
	info, err := s.section("persistence", a.persistence)
	if err != nil {
		return nil, err
	}
	if info["aof_enabled"] != "1" {
		wrong = append(wrong, "appendonly is \"no\" and must be \"yes\"")
	}
	return append(wrong,
		"CONFIG GET is not allowed there, so appendfsync, no-appendfsync-on-rewrite and "+
			"maxmemory-policy are unknown and must be \"always\", \"no\" and \"noeviction\""), nil
}

// inEffect returns nil if acknowledged writes are in Redis's append-only file. `appendonly yes`
// does not prove that. After it was switched on, and after a full synchronisation, Redis
// acknowledges writes that are in no file until a first rewrite has come to its end. Nothing tells
// such a rewrite from an ordinary one. So the file is in effect for certain when WAITAOF says so,
// or while there is neither a rewrite nor a failed one. It stays in effect while its ground holds.
func (s *Store) inEffect(a *sight) error {
	now, err := s.ground(a)
	if err != nil {
		return err
	}
	info, err := s.section("persistence", a.persistence)
	if err != nil {
		return err
	}
	proven, known, err := a.waited()
	if err != nil {
		return s.fault("WAITAOF", err)
	}
	why := ""
	switch {
	case info["aof_enabled"] != "1":
		why = "it is switched off"
	case info["aof_last_write_status"] != "ok":
		why = "the last write to it has failed"
	case known && !proven:
		why = "WAITAOF does not confirm it"
	case known:
	case s.proven.Load().holds(now):
	case info["aof_rewrite_in_progress"] != "0" || info["aof_rewrite_scheduled"] != "0":
		why = "a rewrite of it has not come to its end, and may be the first since it was " +
			"switched on"
	case info["aof_last_bgrewrite_status"] != "ok":
		why = "its last rewrite has failed, and may be the first since it was switched on; " +
			"Redis's log says why, and BGREWRITEAOF tries again"
	}
	if why != "" {
		return &notInEffect{fmt.Sprintf("%s: its append-only file is not in effect: %s", s.name,
			why)}
	}
	now.sets += now.own // the next look finds so many if only this one called CONFIG
	s.proven.Store(&now)
	return nil
}

// waited returns WAITAOF's answer. known is false where the answer says nothing, and INFO must
// decide. An error means that Redis did not answer the last question.
func (a *sight) waited() (proven, known bool, err error) {
	if a.proof == nil {
		return false, false, nil
	}
	var refused redis.Error
	if err := a.proof.Err(); err != nil && !errors.As(err, &refused) {
		return false, false, err
	}
	synced, err := a.proof.Int64Slice()
	if answer, failed := a.beat.Slice(); failed != nil || len(answer) == 0 ||
		answer[0] != int64(codeDone) {
		return false, false, nil // it would confirm that nothing was written
	}
	if err != nil || len(synced) != 2 {
		return false, false, nil
	}
	return synced[0] >= 1, true, nil
}

// ground reads the state on which the proof rests.
func (s *Store) ground(a *sight) (g ground, err error) {
	sections := make(map[string]map[string]string, 4)
	for name, answer := range map[string]*redis.StringCmd{"commandstats": a.commands,
		"server": a.server, "stats": a.stats, "replication": a.replication} {
		if sections[name], err = s.section(name, answer); err != nil {
			return g, err
		}
	}
	calls := func(command string) int64 {
		text, _, _ := strings.Cut(strings.TrimPrefix(sections["commandstats"]["cmdstat_"+command],
			"calls="), ",")
		n, _ := strconv.ParseInt(text, 10, 64) // a command that was never called is not there
		return n
	}
	g.run, g.replication = sections["server"]["run_id"], sections["replication"]["master_replid"]
	g.commands, err = strconv.ParseInt(sections["stats"]["total_commands_processed"], 10, 64)
	if err != nil || g.run == "" || g.replication == "" {
		return g,
			fmt.Errorf(
				"%s: INFO does not tell run_id, master_replid and total_commands_processed, so "+
					"it may be another Redis than before", s.name)
	}
	g.sets, g.resets = calls("config|set"), calls("config|resetstat")
	if all := calls("config"); all > 0 { // Redis 6 counts all of CONFIG as one
		g.sets, g.own = all, int64(len(a.settings))
	}
	return g, nil
}

// notInEffect is ErrNotInEffect with its reason. It wraps nothing, as notDurable does.
type notInEffect struct{ text string }

func (e *notInEffect) Error() string        { return e.text }
func (e *notInEffect) Is(target error) bool { return target == persistence.ErrNotInEffect }

// notDurable is ErrNotDurable with its reasons. It wraps nothing: the client library takes off the
// outermost text of an error that a new connection meets.
type notDurable struct{ text string }

func (e *notDurable) Error() string        { return e.text }
func (e *notDurable) Is(target error) bool { return target == persistence.ErrNotDurable }

// refusal returns the error for wrong settings.
func (s *Store) refusal(wrong []string) error {
	return &notDurable{fmt.Sprintf(
		"%v: %s: %s; set these in redis.conf and restart Redis, or start with "+
			"--accept-redis-durability to accept that acknowledged orders may be lost",
		persistence.ErrNotDurable, s.name, strings.Join(wrong, "; "))}
}

// connected refuses a new connection for appends if Redis is not fit any more. It may have been
// restarted with other settings, or another Redis may have its address now.
func (s *Store) connected(ctx context.Context, c *redis.Conn) error {
	if s.accept {
		return nil
	}
	return s.look(ctx, c)
}

// fit looks at Redis again every s.recheck. While Redis is not fit, each call looks.
func (s *Store) fit(ctx context.Context) error {
	if s.accept || !s.isDue() {
		return nil
	}
	from := time.Since(s.born)
	if err := s.look(ctx, s.journal); err != nil {
		return err
	}
	s.looked(from)
	return nil
}

// isDue reports whether it is time for another look.
func (s *Store) isDue() bool { return int64(time.Since(s.born)) >= s.due.Load() }

// looked puts the next look off. The time counts from before the question: however late the answer
// is read, it does not have later changes.
func (s *Store) looked(from time.Duration) { s.due.Store(int64(from + s.recheck)) }

// look returns an error if Redis may lose acknowledged writes, or cannot be asked.
func (s *Store) look(ctx context.Context, c asked) error {
	return s.judge(s.ask(ctx, c, s.own.Load().token))
}

// judge returns an error if Redis may lose acknowledged writes according to a look, or did not
// answer it.
func (s *Store) judge(a *sight) error {
	wrong, err := s.durability(a)
	if len(wrong) > 0 {
		err = s.refusal(wrong)
	}
	if err != nil {
		s.due.Store(0) // the next call looks again: an older connection may still take appends
	}
	return err
}
