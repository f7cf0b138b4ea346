package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"exchange/gateway/sign"
	"exchange/loadtest/generator"
	"exchange/prove/memnet"
)

// network connects clients and servers in memory.
var network memnet.Network

// The tests have their connections in memory, and most of them a time of their own.
func TestMain(m *testing.M) {
	newGenerator = func(c generator.Client, o generator.Options) (*generator.Generator, error) {
		o.Dial = func(int) (net.Conn, error) { return network.DialTimeout("tcp", o.Address, 0) }
		return generator.NewPortable(c, o), nil
	}
	http.DefaultClient.Transport = &http.Transport{DialContext: network.Dial,
		DisableKeepAlives: true}
	os.Exit(m.Run())
}

// served returns a server that answers orders by the handler, and clients of users to it.
func served(t *testing.T, connections, users int, handler http.HandlerFunc) *clients {
	t.Helper()
	l := network.Listen("")
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(20 * time.Microsecond) // a closed loop would take no time at all
		handler(w, r)
	})}
	go s.Serve(l) //nolint:errcheck // it ends with the test
	t.Cleanup(func() {
		s.Close()
		time.Sleep(time.Minute) // until all goroutines have ended
	})
	var list []*user
	for i := range users {
		list = append(list, &user{key: fmt.Sprintf("%032d", i), secret: sign.New([]byte("secret"))})
	}
	cl, err := dial(l.Addr().String(), connections,
		list, func(i int) string { return fmt.Sprintf("PAIR%d_USDT", i%2) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// rests answers that an order rests.
func rests(w http.ResponseWriter, id int) {
	answered(w, http.StatusCreated, fmt.Sprintf(`{"oid":%d,"amount":0.5}`, id))
}

func answered(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

// The server takes the first request for as long as requests are due. A latency from
// the sending would be long for one request only, though all of them waited.
func TestLatencyInAnOpenLoopCountsFromWhenARequestWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perSecond, length = 2000, 100 * time.Millisecond
		var over <-chan time.Time
		cl := served(t, 1, 1, func(w http.ResponseWriter, _ *http.Request) {
			if over == nil {
				over = time.After(length)
				<-over
			}
			rests(w, 1)
		})
		h := newLatencies()
		r, err := cl.runOpen(perSecond, length, h)
		if err != nil {
			t.Fatal(err)
		}
		const due = 200
		if r.requests != due || h.TotalCount() != due {
			t.Errorf("%d requests, %d latencies", r.requests, h.TotalCount())
		}
		// Request k was answered at the end or later, so it waited for at least length -
		// k/perSecond.
		if mean := h.Mean(); mean < float64(length.Microseconds())/2*0.99 {
			t.Errorf("requests waited for %.0f us", mean)
		}
	})
}

func TestUsersOfAConnectionTakeTurnsAndCancelTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // of the variables below
		owners, cancels, id := map[string]string{}, 0, 0
		seen := map[string]bool{}
		cl := served(t, 1, 3, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if err := r.ParseForm(); err != nil {
				t.Error(err)
			}
			key := r.Header.Get("X-KEY")
			seen[key+" "+r.Form.Get("pair")] = true
			if strings.HasSuffix(r.URL.Path, "cancel/") {
				cancels++
				if order := r.Form.Get("order"); owners[order] != key {
					t.Errorf("%s cancels order %s of %q", key, order, owners[order])
				}
				answered(w, http.StatusOK, "{}")
				return
			}
			id++
			owners[fmt.Sprint(id)] = key
			rests(w, id)
		})
		const requests = 300
		for range requests {
			exchangeOne(t, cl)
		}
		mu.Lock()
		defer mu.Unlock()
		// The second and the third user begin within their ten requests, so the third has not yet
		// placed four orders when it may cancel four.
		if cancels != requests*4/10-1 || id != requests-cancels {
			t.Errorf("%d orders, %d cancels", id, cancels)
		}
		for i := range 3 {
			if want := fmt.Sprintf("%032d PAIR%d_USDT", i, i%2); !seen[want] {
				t.Errorf("%v: not %s", seen, want)
			}
		}
	})
}

func exchangeOne(t *testing.T, cl *clients) {
	t.Helper()
	if r, err := cl.once(0, cl.conns[0].request()); err != nil || r.requests != 1 {
		t.Fatal(r, err)
	}
}

// Orders at the market are filled at once, so only deep orders can replace the cancelled ones.
func TestADeepBookIsFilledToTheOrderAndThenKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var id, deep atomic.Int64
		cl := served(t, 2, 2, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, "cancel/"):
				answered(w, http.StatusOK, "{}")
			case r.FormValue("amount") == "0.001":
				deep.Add(1)
				rests(w, int(id.Add(1)))
			default:
				answered(w, http.StatusCreated, `{"oid":1,"amount":0}`)
			}
		})
		if err := deepen(cl, 19); err != nil {
			t.Fatal(err)
		}
		if n := deep.Load(); n != 20 {
			t.Errorf("%d deep orders are for 19 on two connections", n)
		}
		for range 100 {
			exchangeOne(t, cl)
			if n := len(cl.conns[0].user.open); n < 10-4 || n > 10 {
				t.Fatalf("%d orders are kept of 10", n)
			}
		}
		if n := deep.Load(); n < 20+30 {
			t.Errorf("%d deep orders: cancelled ones were not replaced", n)
		}
	})
}
