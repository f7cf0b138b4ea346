package loadtest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/valyala/fasthttp"
)

// Several addresses, such as the nodes of a cluster: the address of each connection, and the
// outages of an address.

// dialTimeout bounds dialing.
const dialTimeout = 5 * time.Second

// addressOf returns the number of a connection's address. Connections of one account go to
// different ones.
func (o *Options) addressOf(connection int) int {
	if o.Accounts%len(o.Addresses) == 0 {
		connection += connection / o.Accounts
	}
	return connection % len(o.Addresses)
}

// A availability records the outages of an address: from a request without an answer, or with a
// 5xx, until the next other answer. All senders share it.
type availability struct {
	isDown atomic.Bool

	mu    sync.Mutex // guards the fields below
	since time.Time  // start of the present outage
	down  time.Duration
	all   []outage // outages of at least shortestOutage
	more  int      // further ones that are not in all
}

type outage struct{ from, to time.Time }

// Bounds of the outages listed in a report.
const (
	shortestOutage = 100 * time.Millisecond
	mostOutages    = 100
)

func (r *availability) noteFailure() {
	if r.isDown.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isDown.Load() {
		r.since = time.Now()
		r.isDown.Store(true)
	}
}

func (r *availability) noteSuccess() {
	if !r.isDown.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isDown.Load() {
		r.isDown.Store(false)
		r.endLocked(time.Now())
	}
}

// end ends the present outage, with the load, and reports whether there was one.
func (r *availability) end(now time.Time) (open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if open = r.isDown.Load(); open {
		r.endLocked(now)
	}
	return open
}

// forget drops the outages until now from the report.
func (r *availability) forget() {
	r.end(time.Now())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down, r.all, r.more = 0, nil, 0
}

func (r *availability) endLocked(now time.Time) {
	took := now.Sub(r.since)
	r.down += took
	switch {
	case took < shortestOutage:
	case len(r.all) >= mostOutages:
		r.more++
	default:
		r.all = append(r.all, outage{r.since, now})
	}
}

// An AddressReport is one address's share.
type AddressReport struct {
	Address     string  `json:"address"`
	Connections int     `json:"connections"` // of the load
	Subscribers int     `json:"subscribers"`
	Requests    uint64  `json:"requests"`
	Rate        float64 `json:"rate"` // done, or too late
	Done        uint64  `json:"done"`
	Late        uint64  `json:"late_cancels"`
	Refused     uint64  `json:"refused"`
	Unknown     uint64  `json:"outcome_unknown"`
	P50         float64 `json:"p50_ms"`
	P99         float64 `json:"p99_ms"`
	// time with 5xx or no answer: in sum, and each outage of 100 ms or more
	Down        float64  `json:"not_served_seconds"`
	Outages     []Outage `json:"outages"`
	MoreOutages int      `json:"more_outages"` // not in the list
	// accounts verified here
	AccountsRead uint64 `json:"accounts_read"`
}

// An Outage is a period in which an address did not serve, in seconds since the load began.
type Outage struct {
	From  float64 `json:"from"`
	To    float64 `json:"to"`
	AtEnd bool    `json:"at_end"` // it lasted until the load ended
}

// addresses returns each address's share of the load, which ends now.
func (t *test) addresses(s *stats, took time.Duration) []AddressReport {
	all := make([]AddressReport, len(t.o.Addresses))
	now, began := time.Now(), t.base.Add(t.began)
	for i, address := range t.o.Addresses {
		a, from := &all[i], &s.byAddress[i]
		*a = AddressReport{Address: address, Requests: from.requests,
			Rate: float64(from.done) / max(took.Seconds(), 1e-6), Done: from.done,
			Late: from.late, Refused: from.refused, Unknown: from.unknown,
			P50:     milliseconds(from.latency.ValueAtQuantile(50)),
			P99:     milliseconds(from.latency.ValueAtQuantile(99)),
			Outages: []Outage{}}
		for _, l := range t.clients {
			for _, c := range l.sockets {
				if c.at == i {
					a.Connections++
				}
			}
		}
		r := t.availability[i]
		open := r.end(now)
		for _, x := range r.all {
			a.Outages = append(a.Outages, Outage{From: x.from.Sub(began).Seconds(),
				To: x.to.Sub(began).Seconds()})
		}
		if n := len(a.Outages); open && n > 0 {
			a.Outages[n-1].AtEnd = r.all[n-1].to.Equal(now)
		}
		a.Down, a.MoreOutages = r.down.Seconds(), r.more
	}
	return all
}

// answering returns the numbers of the addresses that answer, or of all if none does.
func (r *rest) answering(ctx context.Context) (alive []int) {
	n := len(r.apis)
	answers := make([]bool, n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			answers[i] = n == 1 || r.at(i).get(ctx, nil, "/api/v1/pairs/",
				func([]byte) error { return nil }) == nil
		})
	}
	wait.Wait()
	for i, ok := range answers {
		if ok {
			alive = append(alive, i)
		}
	}
	if len(alive) == 0 {
		for i := range n {
			alive = append(alive, i)
		}
	}
	return alive
}

// placesOf returns the addresses at which an account is read. Each of its orders is read at another
// address than it was sent to, if there is one.
func (v *verifier) placesOf(a *account) []int {
	used := map[int]bool{}
	for _, u := range a.users {
		used[u.at] = true
	}
	others := v.othersFirst(a.users[0].at)
	for _, at := range others {
		if !used[at] {
			return []int{at}
		}
	}
	return others[:min(2, len(others))]
}

// othersFirst returns the addresses that answer, starting after an address, with that one last.
func (v *verifier) othersFirst(at int) []int {
	v.mu.Lock()
	defer v.mu.Unlock()
	var before, others []int
	for _, x := range v.alive {
		if x > at {
			others = append(others, x)
		} else {
			before = append(before, x)
		}
	}
	return append(others, before...)
}

// dropAddress stops reading at an address that fails, and reports whether there are others.
func (v *verifier) dropAddress(at int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	others := slices.DeleteFunc(slices.Clone(v.alive), func(x int) bool { return x == at })
	if len(others) == 0 {
		return false
	}
	v.alive = others
	return true
}

// isAlive reports whether an address answers.
func (v *verifier) isAlive(at int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Contains(v.alive, at)
}

// where names the address of a read, if there are several.
func (v *verifier) where(at int) string {
	if len(v.rest.apis) == 1 {
		return ""
	}
	return " (read at " + v.rest.apis[at].Addr + ")"
}

// compareBooks compares each pair's public book at all addresses that answer. While others trade,
// it compares books of the same update.
func (v *verifier) compareBooks() error {
	alive := v.othersFirst(0)
	if len(alive) < 2 {
		return nil
	}
	for _, p := range v.field.pairs {
		same := true
		for _, at := range alive[1:] {
			ok, err := v.sameBook(p, alive[0], at)
			if err != nil {
				return err
			}
			same = same && ok
		}
		if same {
			v.result.Alike++
		}
	}
	return nil
}

// sameBook compares a pair's book at two addresses.
func (v *verifier) sameBook(p *pair, one, other int) (bool, error) {
	var books [2][]byte
	var updates [2]uint64
	for end := time.Now().Add(streamPatience); ; {
		for i, at := range [...]int{one, other} {
			err := v.rest.at(at).getWith(v.ctx, nil, bookOf(p),
				func(resp *fasthttp.Response) error {
					updates[i] = number(resp.Header.Peek("X-Update-Id"))
					books[i] = bytes.Clone(resp.Body())
					return nil
				})
			if err != nil {
				return false, err
			}
		}
		switch {
		case updates[0] == updates[1] && bytes.Equal(books[0], books[1]):
			return true, nil
		case updates[0] == updates[1] || time.Now().After(end):
			v.flag("the book of %s is at update %d %.300s%s, and at update %d %.300s%s", p.name,
				updates[0], books[0], v.where(one), updates[1], books[1], v.where(other))
			return false, nil
		case !pause(v.ctx, 5*time.Millisecond):
			return false, v.ctx.Err()
		}
	}
}

// writeAddresses writes a row for each of several addresses, with its outages.
func (r *Report) writeAddresses(b *strings.Builder) {
	if len(r.Addresses) < 2 {
		return
	}
	b.WriteByte('\n')
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "address\tconnections\trequests\trate/s\tdone\tlate\trefused\tunknown\tp50\t"+
		"p99\tdown s\t")
	for _, a := range r.Addresses {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.1f\t\n", a.Address,
			a.Connections, thousands(a.Requests), thousands(uint64(a.Rate+0.5)), thousands(a.Done),
			thousands(a.Late), thousands(a.Refused), thousands(a.Unknown), ms(a.P50), ms(a.P99),
			a.Down)
	}
	w.Flush()
	for _, text := range r.outages() {
		fmt.Fprintln(b, text)
	}
}

// outages lists the outages of each address.
func (r *Report) outages() (all []string) {
	for _, a := range r.Addresses {
		for _, x := range a.Outages {
			end := fmt.Sprintf("to %.1f s", x.To)
			if x.AtEnd {
				end = "to the end of the load"
			}
			all = append(all, fmt.Sprintf("%s did not serve for %.1f s: from %.1f s %s", a.Address,
				x.To-x.From, x.From, end))
		}
		if a.MoreOutages > 0 {
			all = append(all, fmt.Sprintf("%s did not serve %d times more", a.Address,
				a.MoreOutages))
		}
	}
	return all
}
