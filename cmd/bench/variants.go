package main

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// A variant is a kind of requests that runs in turns with others on one exchange.
type variant struct {
	title      string
	yardstick  int // its place in the list; its own: it has none
	leastRatio float64
	// the forms of orders that are signed before the clock starts; nil: there are none
	form func(i int) string
	// next makes a user's next request; orders are those of the forms
	next func(u *user, nonce uint64, orders [][]byte) []byte
}

// variants measures each of them, with the same connections and accounts.
type variants struct {
	server
	list        []variant
	rates, cpus []*row
	prepare     func(*server) error // nil: nothing is to be done
	// all requests are granted; otherwise some may be refused, as cancels that come too late are
	granted bool
	orders  []map[*user][][]byte // by variant
}

func newVariants(title string, o options, start func(*server, string) error,
	list ...variant) *variants {
	s := &variants{server: server{title: title, options: o, start: start}, list: list}
	for i, v := range list {
		s.rates = append(s.rates, &row{subject: v.title, unit: "requests/s", group: groupRate})
		s.cpus = append(s.cpus, &row{subject: "CPU: " + v.title, unit: "us/request",
			group: groupCPU})
		if v.yardstick != i {
			s.rates[i].yardstick, s.cpus[i].yardstick = s.rates[v.yardstick], s.cpus[v.yardstick]
			s.rates[i].aim = aim{leastRatio: v.leastRatio}
		}
	}
	return s
}

func (s *variants) rows() []*row { return append(append([]*row{}, s.rates...), s.cpus...) }

func (s *variants) begin(_ context.Context, dir string) error {
	if err := s.start(&s.server, dir); err != nil {
		return err
	}
	if s.prepare != nil {
		if err := s.prepare(&s.server); err != nil {
			return err
		}
	}
	s.orders = make([]map[*user][][]byte, len(s.list))
	for i, v := range s.list {
		s.orders[i] = map[*user][][]byte{}
		for _, c := range s.clients.conns {
			for j := range templates {
				if v.form != nil {
					s.orders[i][c.user] = append(s.orders[i][c.user], c.user.order(v.form(j)))
				}
			}
		}
	}
	for i := range s.list {
		if _, err := s.run(i, s.options.length/2); err != nil {
			return err
		}
	}
	return nil
}

// run sends requests of one variant.
func (s *variants) run(i int, length time.Duration) (result, error) {
	for _, c := range s.clients.conns {
		orders := s.orders[i][c.user]
		c.other = func(u *user, nonce uint64) []byte { return s.list[i].next(u, nonce, orders) }
	}
	r, err := s.clients.run(length)
	if err == nil && s.granted && r.refused > 0 {
		err = fmt.Errorf("%s: %d of %d requests were refused", s.list[i].title, r.refused,
			r.requests)
	}
	return r, err
}

// pieces is how many times a variant runs in a measurement.
const pieces = 8

// measure runs a piece of each variant in their order, then one of each in the opposite order, and
// so on, so that a change meanwhile changes all.
func (s *variants) measure(context.Context) error {
	n := len(s.list)
	requests, took, used := make([]int, n), make([]time.Duration, n), make([]time.Duration, n)
	for turn := range pieces * n {
		i := turn % (2 * n)
		i = min(i, 2*n-1-i)
		before, err := cpuOf(s.pids)
		if err != nil {
			return err
		}
		r, err := s.run(i, s.options.length/pieces)
		if err != nil {
			return err
		}
		after, err := cpuOf(s.pids)
		if err != nil {
			return err
		}
		requests[i] += r.requests
		took[i] += r.took
		used[i] += after - before
	}
	for i, n := range requests {
		s.rates[i].values = append(s.rates[i].values, float64(n)/took[i].Seconds())
		s.cpus[i].values = append(s.cpus[i].values, used[i].Seconds()*1e6/float64(n))
	}
	return nil
}

// newIDs compares orders with client order ids with the same orders without. All are signed when
// they are sent, because each id is new.
func newIDs(o options, store, settings string, start func(*server, string) error) *variants {
	sign := func(named bool) func(u *user, nonce uint64, _ [][]byte) []byte {
		return func(u *user, nonce uint64, _ [][]byte) []byte {
			if u.cancels() {
				return u.cancel(nonce)
			}
			u.next++
			form := u.forms[u.next%len(u.forms)]
			text := form[0]
			if named {
				text += "&client_order_id=" + clientOrderID(u.key, nonce)
			}
			return u.stamp(u.order(text+form[1]), nonce)
		}
	}
	s := newVariants("client order ids, "+store, o, start,
		variant{title: store + ": orders without client order ids", next: sign(false)},
		variant{title: store + ": orders with client order ids", next: sign(true),
			leastRatio: 0.95})
	s.settings = settings
	return s
}

// clientOrderID returns an id of 36 characters, as clients make them, which the user has not used.
func clientOrderID(key string, nonce uint64) string {
	n := strconv.FormatUint(nonce*0x9e3779b97f4a7c15, 16)
	n = "0000000000000000"[len(n):] + n
	return n[:8] + "-" + n[8:12] + "-" + n[12:] + "-0000-" + (key + "000000000000")[:12]
}

// newTaking compares kinds of orders that are filled at once: by one large order, which lasts.
func newTaking(o options, start func(*server, string) error) *variants {
	kind := func(title, instructions string) variant {
		return variant{title: "Pebble: " + title, leastRatio: 0.9, form: func(i int) string {
			return fmt.Sprintf("amount=0.0%d%s&pair="+tradedPair+"&type=buy", 1+i%9, instructions)
		}, next: (*user).place}
	}
	s := newVariants("orders that take", o, start,
		kind("plain orders that take", "&price=50000"),
		kind("market orders", "&order_type=market"),
		kind("ioc orders", "&price=50000&time_in_force=ioc"),
		kind("fok orders", "&price=50000&time_in_force=fok"))
	s.granted = true
	s.prepare = func(s *server) error {
		makers, err := s.more("maker", 1, 1)
		if err != nil {
			return err
		}
		defer makers.Close()
		return makers.place(0, "amount=900000&pair="+tradedPair+"&price=50000&type=sell")
	}
	return s
}

// newResting compares kinds of orders that rest, and changes of them: every other request is a
// cancel, or all are changes.
func newResting(o options, start func(*server, string) error) *variants {
	form := func(instructions string) func(i int) string {
		return func(i int) string {
			return fmt.Sprintf("amount=0.0%d&pair="+tradedPair+"%s&price=1000.%02d&type=buy",
				1+i%9, instructions, i)
		}
	}
	turns := func(u *user, nonce uint64, orders [][]byte) []byte {
		if u.turn%2 == 0 && len(u.open) > 0 {
			return u.cancel(nonce)
		}
		return u.place(nonce, orders)
	}
	s := newVariants("orders that rest", o, start,
		variant{title: "Pebble: plain orders that rest, and cancels", form: form(""), next: turns},
		variant{title: "Pebble: post-only orders, and cancels", form: form("&post_only=1"),
			next: turns, leastRatio: 0.9},
		variant{title: "Pebble: changes of orders", form: form(""), leastRatio: 0.9,
			next: func(u *user, nonce uint64, orders [][]byte) []byte {
				if len(u.open) == 0 {
					return u.place(nonce, orders)
				}
				// never the price that it has
				return u.signed("/api/v1/order-amend/", fmt.Sprintf("order=%d&price=1001.%02d",
					u.open[0], u.turn%100), nonce)
			}})
	s.granted = true
	return s
}
