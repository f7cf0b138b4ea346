package loadtest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// A Server is the exchange's own report at the operator's listener, and the cost of the run: in a
// cluster of the listener's process.
type Server struct {
	Version string `json:"version"` // "": unknown
	Commit  string `json:"commit"`
	Store   string `json:"store"`  // its kind
	Node    string `json:"node"`   // answering node of a cluster; "": a single machine
	Leader  string `json:"leader"` // of the cluster
	Silent  string `json:"silent"` // why it did not answer at the end; "": it did
	// time of its last metrics, since the load began
	Told     float64 `json:"told_until_seconds"`
	Restarts int     `json:"restarts"` // of its process meanwhile
	Orders   float64 `json:"orders"`   // accepted meanwhile
	CPU      float64 `json:"cpu_per_order_us"`
	Appends  float64 `json:"appends"` // of batches to the store
	Append   float64 `json:"mean_append_ms"`
	Batch    float64 `json:"mean_batch_records"`
}

// A tally is a histogram of the metrics in short.
type tally struct{ sum, count float64 }

// since returns the increase after another one.
func (t tally) since(before tally) tally {
	return tally{t.sum - before.sum, t.count - before.count}
}

// mean returns 0 for an empty tally.
func (t tally) mean() float64 { return t.sum / max(t.count, 1) }

// A status is the part of the operator's status used in a report.
type status struct {
	Version string
	Commit  string
	Store   struct{ Name string }
	Cluster *struct{ Node, Leader string }
}

// statusPatience bounds the wait for the status: a server that is gone has none.
const statusPatience = 10 * time.Second

// status queries the server's status.
func (r *rest) status(ctx context.Context) (s status, err error) {
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	err = r.do(ctx, r.ops, func(req *fasthttp.Request) {
		req.SetRequestURI("/operator/v1/status")
		r.toOperator(req)
		req.Header.Set("X-Operator", "loadtest")
		req.SetTimeout(watchTimeout)
	}, false, func(resp *fasthttp.Response) error { return json.Unmarshal(resp.Body(), &s) })
	return s, err
}

// listen polls the server until ctx ends: while it answers, a long answer is no silence. After an
// interrupt a silence is short.
func (r *rest) listen(ctx context.Context) {
	for {
		_, _ = r.status(ctx) // an answer ends the silence
		if !pause(ctx, askAgain) {
			return
		}
	}
}

// server summarises the server's samples, which have their places in the load.
func (w *watcher) server(samples []Sample) *Server {
	s := &Server{Version: w.status.Version, Commit: w.status.Commit}
	s.Store, _, _ = strings.Cut(w.status.Store.Name, ":") // without its folder or address
	if c := w.status.Cluster; c != nil {
		s.Node, s.Leader = c.Node, c.Leader
	}
	if err := cmp.Or(w.unknown, w.unsampled); err != nil {
		s.Silent = strings.Join(strings.Fields(err.Error()), " ") // on one line
	}
	var appends, batches tally
	cpu := 0.0
	for i := range samples {
		now, before := &samples[i], &Sample{}
		switch {
		case i == 0:
			before = now
		case now.start == samples[i-1].start && now.CPU >= samples[i-1].CPU:
			before = &samples[i-1]
		default: // another process, whose counters began at 0
			s.Restarts++
		}
		appended, batched := now.appends.since(before.appends), now.batches.since(before.batches)
		appends = tally{appends.sum + appended.sum, appends.count + appended.count}
		batches = tally{batches.sum + batched.sum, batches.count + batched.count}
		cpu += now.CPU - before.CPU
		s.Orders += now.Placed - before.Placed
		s.Told = now.At
	}
	if s.Orders > 0 {
		s.CPU = cpu * 1e6 / s.Orders
	}
	s.Appends, s.Append, s.Batch = appends.count, appends.mean()*1000, batches.mean()
	return s
}

// lines formats it for people.
func (s *Server) lines() (all []string) {
	if s == nil {
		return nil
	}
	if s.Version != "" {
		text := "server: exchange " + clip(s.Version)
		if s.Commit != "" {
			text += " (" + clip(s.Commit) + ")"
		}
		text += ", " + clip(s.Store)
		if s.Node != "" {
			text += fmt.Sprintf(", a cluster of which node %s answered and node %s leads",
				clip(s.Node), clip(s.Leader))
		}
		all = append(all, text)
	}
	if s.Orders > 0 {
		all = append(all, fmt.Sprintf("server: %.1f us of CPU an order, of %s orders with all "+
			"that came beside them", s.CPU, thousands(uint64(s.Orders))))
	}
	if s.Appends > 0 {
		all = append(all, fmt.Sprintf("server: %s appends to the store, in the mean %s and %.1f "+
			"records", thousands(uint64(s.Appends)), ms(s.Append), s.Batch))
	}
	if s.Restarts > 0 {
		all = append(all, fmt.Sprintf("server: restarts of its process meanwhile: %d", s.Restarts))
	}
	if s.Silent != "" {
		all = append(all, fmt.Sprintf("server: no complete report at the end; metrics "+
			"until %.1f s of the load: %s", s.Told, s.Silent))
	}
	return all
}
