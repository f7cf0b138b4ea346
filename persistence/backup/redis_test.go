//go:build prove

package backup

import (
	"fmt"
	"testing"

	"exchange/persistence"
	"exchange/persistence/redis"
	"exchange/persistence/redistest"
)

func init() {
	others["redis"] = func(t *testing.T) kind {
		server, engines := redistest.Start(t), 0
		return func(s scope, keep persistence.Retention) persistence.Store {
			s.Helper()
			engines++ // each has keys of its own
			store, err := redis.Open(t.Context(), server.URL(), redis.Options{
				Engine: fmt.Sprint("engine-", engines), Logger: quiet, Retention: keep})
			return opened(s, store, err)
		}
	}
}
