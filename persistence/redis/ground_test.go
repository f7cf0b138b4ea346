package redis

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Redis 6 counts every CONFIG as one, those of a probe, too. Only the calls of others change the
// baseline.
func TestOwnProbesDoNotChangeBaseline(t *testing.T) {
	s, rewriting := &Store{}, false
	s.proven.Store(&baseline{})
	check := func(calls int) error {
		info := func(text string) *redis.StringCmd { return redis.NewStringResult(text, nil) }
		state := "aof_enabled:1\naof_last_write_status:ok\naof_last_bgrewrite_status:ok\n" +
			"aof_rewrite_scheduled:0\naof_rewrite_in_progress:0"
		if rewriting {
			state = strings.TrimSuffix(state, "0") + "1"
		}
		return s.inEffect(&probe{commands: info(
			fmt.Sprintf("cmdstat_config:calls=%d,usec=1", calls)), server: info("run_id:a"),
			stats: info("total_commands_processed:9"), replication: info("master_replid:b"),
			settings: make([]*redis.MapStringStringCmd, 4), persistence: info(state)})
	}
	for _, x := range []struct {
		calls     int
		rewriting bool
		want      bool
	}{{10, false, true}, {14, true, true}, {18, true, true}, {23, true, false}, {27, false, true},
		{31, true, true}} {
		if rewriting = x.rewriting; (check(x.calls) == nil) != x.want {
			t.Errorf("%+v: %v", x, check(x.calls))
		}
	}
}
