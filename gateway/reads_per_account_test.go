package gateway

import (
	"strconv"
	"testing"
	"time"

	"exchange/actors"
	"exchange/core/event"
	"exchange/gateway/api"
)

func TestAnAccountHasItsOwnLimitOfReadsInFlight(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &slowHistory{}
		h := newHarness(t, func(o *actors.Options) {
			o.Limits.KeysPerAccount, o.Timing.Request = 1000, time.Minute
			s.Store = o.Store
			o.Store = s
		})
		const most = 64 // the default
		for _, name := range []string{"alice", "bob"} {
			h.account(name)
			for i := range most + 1 {
				h.key(name, name+"-"+strconv.Itoa(i), event.AllPermissions)
			}
		}
		paths := []string{"/api/v1/orders/own/", "/api/v1/exchanges/own/",
			"/api/v1/orders/own/?offset=3"}
		// the second proves that the first gave all its places back
		for round := uint64(1); round <= 2; round++ {
			release := s.block()
			answers := make(chan answer, most)
			for i := range most {
				go func() {
					answers <- h.do("GET", paths[i%len(paths)], "", "",
						signed("alice-"+strconv.Itoa(i), round, "")...)
				}()
			}
			eventually(t, "all of them ask the history", func() bool {
				now, _, _ := s.queries()
				return now == most
			})
			for _, path := range []string{"/api/v1/wallets/", "/api/v1/orders/own/"} {
				refusedForNow(t, "a read more: "+path,
					h.do("GET", path, "", "", signed("alice-64", round, "")...), api.AccountBusy)
			}
			h.do("GET", "/api/v1/wallets/", "", "", signed("bob-0", round, "")...).is(t, 200,
				"a read of another account")
			release()
			for _, a := range receive(answers, most) {
				want(t, "a read within the limit", a, 200, "[]")
			}
			h.do("GET", "/api/v1/wallets/", "", "", signed("alice-64", round, "")...).is(t, 200,
				"with the nonce that the refused one did not use")
		}
	})
}
