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

// settings that durability needs; maxmemory-policy because evicting a key loses data, too.
var settings = []struct{ name, value string }{
	{"appendonly", "yes"},
	{"appendfsync", "always"},
	{"no-appendfsync-on-rewrite", "no"},
	{"maxmemory-policy", "noeviction"},
}

// pipeliner is a client, or one connection of it.
type pipeliner interface {
	Pipelined(ctx context.Context, fn func(redis.Pipeliner) error) ([]redis.Cmder, error)
}

// A baseline is the state of Redis under which its append-only file was proven to be in effect.
// While it stays the same, the file stays in effect, and a rewrite of it is an ordinary one.
type baseline struct {
	run         string // the process
	replication string // changes with each full synchronisation and each promotion
	sets        int64  // calls of CONFIG SET; on Redis 6, of every CONFIG
	own         int64  // of these, the calls of the probe itself, counted after its query
	resets      int64  // calls of CONFIG RESETSTAT, which resets the counts
	commands    int64  // in all; a decrease means a reset, too
}

// matches reports whether nothing since an earlier probe could have switched the append-only file
// off.
func (g baseline) matches(now baseline) bool {
	return g.run == now.run && g.replication == now.replication && g.sets == now.sets &&
		g.resets == now.resets && g.commands <= now.commands
}

// A probe is the answers to one check of Redis, all in one round trip.
type probe struct {
	// The order of the queries matters: the next probe sees every change after this one's first
	// query.
	commands, server, stats, replication *redis.StringCmd
	settings                             []*redis.MapStringStringCmd
	persistence                          *redis.StringCmd
	beat                                 *redis.Cmd // the owner's; nil if there is no proof
	// WAITAOF after the beat; nil if Redis lacks it, or this process owns nothing
	proof *redis.Cmd
}

// proofWait bounds WAITAOF. With appendfsync always it answers as soon as the write before it. At
// its timeout it still counts the synced data.
const proofWait = 200 * time.Millisecond

// canProve reports whether WAITAOF can prove a probe with that token. WAITAOF confirms only the
// writes of its own connection, and only the owner of the engine writes there.
func (s *Store) canProve(tok persistence.Token) bool {
	return s.hasWaitAOF && !s.accept && tok != ""
}

func (s *Store) sendProbe(ctx context.Context, c pipeliner, tok persistence.Token) *probe {
	a := &probe{settings: make([]*redis.MapStringStringCmd, len(settings))}
	c.Pipelined(ctx, func(p redis.Pipeliner) error { //nolint:errcheck // each answer has its own
		a.commands, a.server, a.stats = p.Info(ctx, "commandstats"), p.Info(ctx, "server"),
			p.Info(ctx, "stats")
		a.replication = p.Info(ctx, "replication")
		for i, want := range settings {
			a.settings[i] = p.ConfigGet(ctx, want.name)
		}
		a.persistence = p.Info(ctx, "persistence")
		if s.canProve(tok) {
			a.beat = p.Eval(ctx, endsLua+beatLua, []string{s.head()}, s.beatArgs(tok)...)
			a.proof = p.Do(ctx, "WAITAOF", 1, 0, proofWait.Milliseconds())
		}
		return nil
	})
	return a
}

// durability lists the wrong settings of Redis, each with its value and the right one. If all are
// right, the error is set if the append-only file is not in effect (yet).
func (s *Store) durability(a *probe) ([]string, error) {
	if info, err := s.section("persistence", a.persistence); err == nil {
		s.rewriting.Store(info["aof_rewrite_in_progress"] == "1")
	}
	wrong, err := s.settingsWrong(a)
	if err != nil || len(wrong) > 0 {
		return wrong, err
	}
	return nil, s.inEffect(a)
}

// Rewriting reports whether Redis rewrote its append-only file at the newest probe.
func (s *Store) Rewriting() bool { return s.rewriting.Load() }

// settingsWrong lists the faults of Redis's role and settings.
func (s *Store) settingsWrong(a *probe) (wrong []string, err error) {
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

// unverifiable returns the answer where CONFIG is forbidden, as at managed services.
func (s *Store) unverifiable(a *probe, wrong []string) ([]string, error) {
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
// acknowledges writes that are in no file until a first rewrite has ended. Nothing distinguishes
// such a rewrite from an ordinary one. So the file is in effect for certain when WAITAOF confirms
// it, or while there is neither a rewrite nor a failed one. It stays in effect while its baseline
// matches.
func (s *Store) inEffect(a *probe) error {
	now, err := s.readBaseline(a)
	if err != nil {
		return err
	}
	info, err := s.section("persistence", a.persistence)
	if err != nil {
		return err
	}
	proven, conclusive, err := a.waited()
	if err != nil {
		return s.fault("WAITAOF", err)
	}
	why := ""
	switch {
	case info["aof_enabled"] != "1":
		why = "it is switched off"
	case info["aof_last_write_status"] != "ok":
		why = "the last write to it has failed"
	case conclusive && !proven:
		why = "WAITAOF does not confirm it"
	case conclusive:
	case s.proven.Load().matches(now):
	case info["aof_rewrite_in_progress"] != "0" || info["aof_rewrite_scheduled"] != "0":
		why = "a rewrite of it has not ended, and may be the first since it was " +
			"switched on"
	case info["aof_last_bgrewrite_status"] != "ok":
		why = "its last rewrite has failed, and may be the first since it was switched on; " +
			"Redis's log says why, and BGREWRITEAOF tries again"
	}
	if why != "" {
		return &notInEffect{fmt.Sprintf("%s: its append-only file is not in effect: %s", s.name,
			why)}
	}
	now.sets += now.own // the next probe finds this count if only this one called CONFIG
	s.proven.Store(&now)
	return nil
}

// waited returns WAITAOF's answer. conclusive is false if the answer is inconclusive, and INFO must
// decide. An error means that Redis did not answer the last query.
func (a *probe) waited() (proven, conclusive bool, err error) {
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
		return false, false, nil // nothing was written that it could confirm
	}
	if err != nil || len(synced) != 2 {
		return false, false, nil
	}
	return synced[0] >= 1, true, nil
}

// readBaseline reads the state for later comparison.
func (s *Store) readBaseline(a *probe) (g baseline, err error) {
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
		n, _ := strconv.ParseInt(text, 10, 64) // a command that was never called is missing
		return n
	}
	g.run, g.replication = sections["server"]["run_id"], sections["replication"]["master_replid"]
	g.commands, err = strconv.ParseInt(sections["stats"]["total_commands_processed"], 10, 64)
	if err != nil || g.run == "" || g.replication == "" {
		return g,
			fmt.Errorf(
				"%s: INFO lacks run_id, master_replid or total_commands_processed, so "+
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

// notDurable is ErrNotDurable with its reasons. It wraps nothing: the client library removes the
// outermost text of an error of a new connection.
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

// connected refuses a new connection for appends if Redis is no longer durable. It may have been
// restarted with other settings, or another Redis may have its address now.
func (s *Store) connected(ctx context.Context, c *redis.Conn) error {
	if s.accept {
		return nil
	}
	return s.checkDurability(ctx, c)
}

// fit checks Redis again every s.recheck. While Redis is not durable, each call checks.
func (s *Store) fit(ctx context.Context) error {
	if s.accept || !s.isDue() {
		return nil
	}
	from := time.Since(s.born)
	if err := s.checkDurability(ctx, s.journal); err != nil {
		return err
	}
	s.scheduleCheck(from)
	return nil
}

// isDue reports whether another check is due.
func (s *Store) isDue() bool { return int64(time.Since(s.born)) >= s.due.Load() }

// scheduleCheck sets the time of the next check. It counts from before the query: the answer covers
// no later changes, however late it is read.
func (s *Store) scheduleCheck(from time.Duration) { s.due.Store(int64(from + s.recheck)) }

// checkDurability returns an error if Redis may lose acknowledged writes, or does not answer.
func (s *Store) checkDurability(ctx context.Context, c pipeliner) error {
	return s.evaluate(s.sendProbe(ctx, c, s.own.Load().token))
}

// evaluate returns an error if, by a probe, Redis may lose acknowledged writes or did not answer.
func (s *Store) evaluate(a *probe) error {
	wrong, err := s.durability(a)
	if len(wrong) > 0 {
		err = s.refusal(wrong)
	}
	if err != nil {
		s.due.Store(0) // the next call checks again: an older connection may still accept appends
	}
	return err
}
