package api_test

import (
	"strconv"
	"testing"
	"time"

	"exchange/actors"
	"exchange/core/event"
	"exchange/gateway/api"
	"exchange/prove/harness"
)

func TestAnAccountHasItsOwnLimitOfReadsInFlight(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		s := &harness.SlowHistory{}
		h := harness.New(t, func(o *actors.Options) {
			o.Limits.KeysPerAccount, o.Timing.Request = 1000, time.Minute
			s.Store = o.Store
			o.Store = s
		})
		const most = 64 // the default
		for _, name := range []string{"alice", "bob"} {
			h.Account(name)
			for i := range most + 1 {
				h.Key(name, name+"-"+strconv.Itoa(i), event.AllPermissions)
			}
		}
		paths := []string{"/api/v1/orders/own/", "/api/v1/exchanges/own/",
			"/api/v1/orders/own/?offset=3"}
		// the second proves that the first gave all its places back
		for round := uint64(1); round <= 2; round++ {
			release := s.Block()
			answers := make(chan harness.Answer, most)
			for i := range most {
				go func() {
					answers <- h.Do("GET", paths[i%len(paths)], "", "",
						harness.Signed("alice-"+strconv.Itoa(i), round, "")...)
				}()
			}
			harness.Eventually(t, "all of them ask the history", func() bool {
				now, _, _ := s.Queries()
				return now == most
			})
			for _, path := range []string{"/api/v1/wallets/", "/api/v1/orders/own/"} {
				harness.RefusedForNow(t, "a read more: "+path,
					h.Do("GET", path, "", "", harness.Signed("alice-64", round, "")...),
					api.AccountBusy)
			}
			h.Do("GET", "/api/v1/wallets/", "", "", harness.Signed("bob-0", round, "")...).Is(t,
				200, "a read of another account")
			release()
			for _, a := range harness.Receive(answers, most) {
				harness.Want(t, "a read within the limit", a, 200, "[]")
			}
			h.Do("GET", "/api/v1/wallets/", "", "", harness.Signed("alice-64", round, "")...).Is(t,
				200, "with the nonce that the refused one did not use")
		}
	})
}
