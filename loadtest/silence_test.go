package loadtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// An exchange that answers nothing, or 503 alone, is waited for once, for a time that is told, and
// not again by each request. The end of the context ends the wait.
func TestAnExchangeThatIsGoneIsWaitedForOnce(t *testing.T) {
	const bound = time.Minute
	never := func(ctx *fasthttp.RequestCtx) { ctx.SetStatusCode(503) }
	interrupted := errors.New("Ctrl-C")
	for name, x := range map[string]struct {
		handler  fasthttp.RequestHandler // nil: there is none
		prepare  func(r *rest, cut func())
		from, to time.Duration
		says     bool
	}{
		"gone": {nil, func(*rest, func()) {}, bound, bound + time.Second, true},
		"503":  {never, func(*rest, func()) {}, bound, bound + time.Second, true},
		"interrupted": {nil, func(r *rest, _ func()) { r.silence.impatient() },
			time.Second, 2 * time.Second, true},
		"cut": {nil, func(_ *rest, cut func()) { time.AfterFunc(time.Second, cut) },
			time.Second, time.Second, true},
		"cut, it hangs": {func(ctx *fasthttp.RequestCtx) { time.Sleep(20 * time.Second) },
			func(_ *rest, cut func()) { time.AfterFunc(time.Second, cut) }, time.Second,
			time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := &Options{Addresses: []string{nowhere()}, Wait: bound}
				if x.handler != nil {
					o.Addresses[0] = serve(t, x.handler)
				}
				r := newRest(o)
				var said []string
				r.silence.say = func(text string) { said = append(said, text) }
				ctx, cut := context.WithCancelCause(context.Background())
				x.prepare(r, func() { cut(interrupted) })
				ask := func() (time.Duration, error) {
					began := time.Now()
					err := r.get(ctx, nil, "/", func([]byte) error { return nil })
					return time.Since(began), err
				}
				took, err := ask()
				if err == nil || took < x.from || took > x.to || ctx.Err() != nil &&
					!errors.Is(err, interrupted) {
					t.Errorf("it ends after %v: %v", took, err)
				}
				if len(said) > 1 || (len(said) > 0) != x.says || x.says &&
					!strings.HasPrefix(said[0], "waiting up to "+r.silence.bound.String()+
						" (--wait) for the exchange: ") {
					t.Errorf("it says %q", said)
				}
				if again, err := ask(); err == nil || again > time.Second {
					t.Errorf("the next request waits %v: %v", again, err)
				}
			})
		})
	}
}
