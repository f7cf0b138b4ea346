//go:build prove

package actors

import (
	"testing"

	"exchange/persistence"
	"exchange/persistence/pebble"
	"exchange/persistence/redis"
	"exchange/persistence/redistest"
)

func init() {
	stores["pebble"] = func(t testing.TB) place {
		dir := t.TempDir()
		return func() persistence.Store { return openPebble(t, dir) }
	}
	storeOpeners["pebble"] = func(t *testing.T) storeOpener {
		dir := t.TempDir()
		return func(keep persistence.Retention) persistence.Store {
			return must[persistence.Store](t)(
				pebble.Open(dir, pebble.Options{Logger: testOptions(nil).Log, Retention: keep}))
		}
	}
	storeOpeners["redis"] = func(t *testing.T) storeOpener {
		server := redistest.Start(t)
		return func(keep persistence.Retention) persistence.Store {
			return must[persistence.Store](t)(
				redis.Open(t.Context(), server.URL(),
					redis.Options{Logger: testOptions(nil).Log, Retention: keep}))
		}
	}
}
