//go:build prove

package archive

import (
	"fmt"
	"testing"

	"exchange/persistence"
	"exchange/persistence/redis"
	"exchange/persistence/redistest"
)

func init() {
	stores["redis"] = func(t *testing.T) func(scope) persistence.Store {
		server, n := redistest.Start(t), 0
		return func(s scope) persistence.Store {
			n++
			store, err := redis.Open(t.Context(), server.URL(),
				redis.Options{Engine: fmt.Sprint("engine-", n), Logger: quiet})
			return opened(s, store, err)
		}
	}
}
