package redis

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// rewriteLeast is the usual size, in bytes, below which the append-only file stays as it is.
//
// Redis rewrites the file by itself when it has grown by auto-aof-rewrite-percentage, at any
// moment: also while an image is being uploaded, which is written twice then. So the exchange
// requests it when the file has doubled, after a snapshot. Redis's own rule, with a higher
// percentage, stays for an exchange whose snapshots fail.
const rewriteLeast = 128 << 20

// rewrite has Redis rewrite its append-only file in the background if that has grown enough. A
// failure is left to Redis's own rule.
func (s *Store) rewrite(ctx context.Context) {
	info, err := s.info(ctx, "persistence")
	if err != nil {
		return
	}
	size, _ := strconv.ParseInt(info["aof_current_size"], 10, 64) // 0 without a file
	base, _ := strconv.ParseInt(info["aof_base_size"], 10, 64)
	if size < max(s.rewriteLeast, 2*base) || info["aof_rewrite_in_progress"] != "0" {
		return
	}
	err = s.history.BgRewriteAOF(ctx).Err()
	switch {
	case err == nil:
		s.rewriting.Store(true) // the next probe shows when it has ended
		s.log.Info("Redis rewrites its append-only file", "store", s.name, "bytes", size,
			"after_the_last", base)
	case redis.HasErrorPrefix(err, "NOPERM") || redis.HasErrorPrefix(err, "ERR unknown command"):
		if !s.refused.Swap(true) {
			s.log.Warn(
				"this user may not make Redis rewrite its append-only file, so Redis chooses the "+
					"moment by auto-aof-rewrite-percentage", "store", s.name, "error", err)
		}
	}
}
