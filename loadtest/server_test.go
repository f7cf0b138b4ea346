package loadtest

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"
)

func TestTheLoadsCostOnTheServerIsReported(t *testing.T) {
	w := &watcher{status: status{Version: "0.1.0", Commit: "v0.1.0-7"}}
	w.status.Store.Name = "pebble:/data/store"
	samples := []Sample{
		{At: -0.1, start: 5, CPU: 10, Placed: 1000, appends: tally{1, 100},
			batches: tally{500, 100}},
		{At: 1, start: 5, CPU: 12, Placed: 11_000, appends: tally{2, 1100},
			batches: tally{10_500, 1100}},
		// It is another process, so its counters restarted.
		{At: 2, start: 7, CPU: 13, Placed: 10_000, appends: tally{2, 1000},
			batches: tally{9000, 1000}},
	}
	s := w.server(samples)
	if s.Orders != 20_000 || s.CPU != 15*1e6/20_000 || s.Appends != 2000 || s.Append != 1.5 ||
		s.Batch != 9.5 || s.Restarts != 1 || s.Told != 2 || s.Silent != "" || s.Node != "" {
		t.Errorf("%+v", s)
	}
	const said = `server: exchange 0.1.0 (v0.1.0-7), pebble
server: 750.0 us of CPU an order, of 20,000 orders with all that came beside them
server: 2,000 appends to the store, in the mean 1.50 ms and 9.5 records
server: restarts of its process meanwhile: 1`
	if got := strings.Join(s.lines(), "\n"); got != said {
		t.Errorf("%s", got)
	}
	w.status.Cluster = &struct{ Node, Leader string }{"a", "b"}
	w.unsampled = errors.New("/metrics was not answered")
	s = w.server(samples[:2])
	if got := strings.Join(s.lines(), "\n"); !strings.Contains(got, "node a answered and node b") ||
		!strings.HasSuffix(got, "no complete report at the end; metrics until 1.0 s of the "+
			"load: /metrics was not answered") {
		t.Errorf("%s", got)
	}
	// A server without metrics has no numbers, and is still named.
	w = &watcher{unsampled: errors.New("x"), unknown: errors.New("y")}
	if s = w.server(nil); s.Silent != "y" || s.CPU != 0 || len(s.lines()) != 1 {
		t.Errorf("%+v", s)
	}
}

func TestAServerThatIsDownAtTheEndIsNamed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		status := `{"version":"0.1.0","commit":"","store":{"name":"redis://a:6379/0"},"cluster":null}`
		var gone atomic.Bool
		x := &smallExchange{open: map[string]bool{}}
		address := serve(t, func(ctx *fasthttp.RequestCtx) {
			switch path := string(ctx.Path()); {
			case gone.Load():
				ctx.SetStatusCode(500)
				ctx.SetBodyString("gone")
			case path == "/operator/v1/status":
				fmt.Fprint(ctx, status)
			default:
				x.answer(ctx)
			}
		})
		o := good()
		o.Addresses, o.Operator = []string{address}, address
		r := newRest(&o)
		w := watch(t.Context(), r)
		w.stop()
		w.group.Wait() // no scrape is in flight while the server changes
		gone.Store(true)
		w.end(t.Context())
		s := w.server(w.samples)
		if s.Version != "0.1.0" || s.Store != "redis" ||
			!strings.Contains(s.Silent, "/operator/v1/status was answered with 500 gone") {
			t.Errorf("%+v", s)
		}
	})
}
