package loadtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Verification is the result of the comparison at the end.
type Verification struct {
	// acknowledged orders found as expected
	Orders     uint64 `json:"orders"`
	Cancels    uint64 `json:"cancels"`     // acknowledged cancels
	Trades     uint64 `json:"trades"`      // accounts whose wallets fit their trades
	Accounts   uint64 `json:"accounts"`    // accounts with the wallets that their trades make
	UnknownIn  uint64 `json:"unknown_in"`  // orders without an outcome that are in
	UnknownOut uint64 `json:"unknown_out"` // and that are not
	Updates    uint64 `json:"updates"`     // events of the stream
	Books      uint64 `json:"books"`       // local books equal to the REST books
	// with several addresses
	Across    uint64   `json:"across"`      // of the orders, those read elsewhere than sent to
	Witnessed uint64   `json:"witnessed"`   // orders read elsewhere while the load ran
	Alike     uint64   `json:"books_alike"` // pairs with equal public books at all addresses
	NotRead   []string `json:"not_read"`    // addresses that no longer answer

	Audit       string   `json:"audit"`        // "", "clean" or "differs"
	NotChecked  []string `json:"not_checked"`  // and why
	Differences []string `json:"differences"`  // some of the differences
	Found       uint64   `json:"found"`        // number of differences
	Incomplete  string   `json:"incomplete"`   // why the verification did not finish
	Took        float64  `json:"took_seconds"` // the verification
}

// A verifier compares the server's state with the acknowledged outcomes.
type verifier struct {
	ctx    context.Context
	rest   *rest
	field  *field
	run    string // prefix of client ids
	byName map[string]*pair
	pause  time.Duration // before a mismatch is checked again

	mu         sync.Mutex
	alive      []int    // addresses that answer
	read       []uint64 // number of accounts read, by address
	result     Verification
	skipCounts map[string]int
}

// newVerifier returns a verifier that reads at the addresses with these numbers.
func newVerifier(ctx context.Context, r *rest, f *field, run string, alive []int) *verifier {
	v := &verifier{ctx: ctx, rest: r, field: f, run: run, byName: map[string]*pair{},
		skipCounts: map[string]int{}, pause: 300 * time.Millisecond, alive: alive,
		read: make([]uint64, len(r.apis))}
	v.result.NotChecked, v.result.Differences = []string{}, []string{}
	v.result.NotRead = []string{}
	for _, p := range f.pairs {
		v.byName[p.name] = p
	}
	return v
}

// mostDifferences bounds the differences listed one by one.
const mostDifferences = 100

func (v *verifier) flag(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.result.Found++
	if len(v.result.Differences) < mostDifferences {
		v.result.Differences = append(v.result.Differences, fmt.Sprintf(format, args...))
	}
}

func (v *verifier) skip(why string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.skipCounts[why]; !ok && len(v.skipCounts) >= maxKinds {
		why = "others"
	}
	v.skipCounts[why]++
}

// verify compares everything. The result includes the error that ended the verification early.
func (v *verifier) verify(s *subscribers, say func(string, ...any)) *Verification {
	began := time.Now()
	var n atomic.Int64
	err := atOnce(v.ctx, len(v.field.accounts), workers, func(ctx context.Context, i int) error {
		say("verifying account %d of %d", n.Add(1), len(v.field.accounts))
		return v.account(ctx, v.field.accounts[i])
	})
	if err == nil {
		err = v.compareBooks()
	}
	if err == nil && s != nil {
		say("verifying the event stream")
		err = v.stream(s)
	}
	for i, api := range v.rest.apis {
		if !slices.Contains(v.alive, i) {
			v.result.NotRead = append(v.result.NotRead, api.Addr)
		}
	}
	if err != nil {
		v.result.Incomplete = err.Error()
	}
	for _, why := range sortedKinds(kindCounts(v.skipCounts)) {
		v.result.NotChecked = append(v.result.NotChecked,
			fmt.Sprintf("%d times: %s", why.Count, why.Kind))
	}
	v.result.Took = time.Since(began).Seconds()
	return &v.result
}

func kindCounts(m map[string]int) map[string]uint64 {
	all := map[string]uint64{}
	for k, n := range m {
		all[k] = uint64(n)
	}
	return all
}

// An audited is the last line of an audit.
type audited struct {
	End   *struct{ Differences []string }
	Error string
}

// An audit ends early when the leader changes, so it is retried.
const (
	auditTries = 5
	auditPause = time.Second
)

// audit lets the server compare its own books.
func (v *verifier) audit() {
	a, err := v.askAudit()
	for try := 1; err != nil && try < auditTries && a.Error != ""; try++ {
		select {
		case <-v.ctx.Done():
		case <-time.After(auditPause):
		}
		a, err = v.askAudit()
	}
	if err != nil {
		v.result.Audit, v.result.Incomplete = "", "the audit: "+err.Error()
		return
	}
	v.result.Audit = "clean"
	for _, d := range a.End.Differences {
		v.result.Audit = "differs"
		v.flag("the audit says: %s", d)
	}
}

// askAudit requests one audit. The line is returned, too, if it reports why the audit did not
// finish.
func (v *verifier) askAudit() (a audited, err error) {
	asking, answered := context.WithCancel(v.ctx)
	defer answered()
	go v.rest.listen(asking)
	var line lastLine
	if err = v.rest.operate(v.ctx, "audit", map[string]string{}, &line, true); err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err == nil && (a.End == nil || a.Error != "") {
		err = fmt.Errorf("it ends with %.300s", line)
	}
	return a, err
}
