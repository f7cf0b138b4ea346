package loadtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// An exchange that answers nothing, or 503 alone, is waited for once, for the configured time, and
// not again by each request. The end of the context ends the wait.
func TestAnExchangeThatIsDownIsWaitedForOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const bound = time.Minute
		never := func(ctx *fasthttp.RequestCtx) { ctx.SetStatusCode(503) }
		hangs := func(*fasthttp.RequestCtx) { <-time.After(20 * time.Second) }
		for name, x := range map[string]struct {
			handler     fasthttp.RequestHandler // nil: there is none
			isImpatient bool
			cut         time.Duration // when the context ends; 0: never
			from, to    time.Duration
			says        bool
		}{
			"gone":          {nil, false, 0, bound, bound + time.Second, true},
			"503":           {never, false, 0, bound, bound + time.Second, true},
			"interrupted":   {nil, true, 0, time.Second, 2 * time.Second, true},
			"cut":           {nil, false, time.Second, time.Second, time.Second, true},
			"cut, it hangs": {hangs, false, time.Second, time.Second, time.Second, false},
		} {
			o := &Options{Addresses: []string{nowhere()}, Wait: bound}
			if x.handler != nil {
				o.Addresses[0] = serve(t, x.handler)
			}
			r := newRest(o)
			var said []string
			r.silence.say = func(text string) { said = append(said, text) }
			if x.isImpatient {
				r.silence.impatient()
			}
			ctx, cut := context.WithCancelCause(context.Background())
			interrupted := errors.New("Ctrl-C")
			if x.cut > 0 {
				go func() { <-time.After(x.cut); cut(interrupted) }()
			}
			ask := func() (time.Duration, error) {
				began := time.Now()
				err := r.get(ctx, nil, "/", func([]byte) error { return nil })
				return time.Since(began), err
			}
			took, err := ask()
			if err == nil || took < x.from || took > x.to || x.cut > 0 &&
				!errors.Is(err, interrupted) {
				t.Errorf("%s: it ends after %v: %v", name, took, err)
			}
			if len(said) > 1 || (len(said) > 0) != x.says || x.says &&
				!strings.HasPrefix(said[0], "waiting up to "+r.silence.bound.String()+
					" (--wait) for the exchange: ") {
				t.Errorf("%s: it says %q", name, said)
			}
			if again, err := ask(); err == nil || again > time.Second {
				t.Errorf("%s: the next request waits %v: %v", name, again, err)
			}
			cut(nil)
		}
	})
}

// An exchange that accepts requests and answers none is waited for like one that is down: for
// --wait, and not for the timeout of such an answer.
func TestAnExchangeThatStandsStillIsWaitedForOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const bound = 5 * time.Second
		ctx, keys := context.Background(), map[string]string{"key": "a"}
		for name, ask := range map[string]func(r *rest) error{
			"a page": func(r *rest) error { return r.get(ctx, nil, "/", nil) },
			"an operator's request": func(r *rest) error {
				return r.operate(ctx, "keys/revoke", keys, nil, true)
			},
			"one that is not sent again": func(r *rest) error {
				return r.operate(ctx, "keys", keys, nil, false)
			},
			"an audit": func(r *rest) error {
				v := newVerifier(ctx, r, &field{}, "lt0", nil)
				v.audit()
				return errors.New(v.result.Incomplete)
			},
			"a log-in": func(r *rest) error {
				_, err := dialOrders(ctx, r.o, r.o.Addresses[0], &user{})
				return errors.Join(err, r.get(ctx, nil, "/", nil))
			},
		} {
			resume := make(chan struct{})
			address := serve(t, func(*fasthttp.RequestCtx) { <-resume })
			t.Cleanup(func() { close(resume) })
			r := newRest(&Options{Addresses: []string{address}, Operator: address, Wait: bound})
			said := 0
			r.silence.say = func(string) { said++ }
			began := time.Now()
			err := ask(r)
			if took := time.Since(began); err == nil || took < bound || took > 2*bound+time.Second {
				t.Errorf("%s: it ends after %v: %v", name, took, err)
			}
			began = time.Now()
			err = r.operate(ctx, "keys/revoke", keys, nil, true)
			if took := time.Since(began); err == nil || took > time.Second || said != 1 {
				t.Errorf("%s: the next request waits %v, %d log lines: %v", name, took, said, err)
			}
		}
	})
}

// A long audit continues as long as the exchange answers.
func TestALongAuditIsNoSilence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		address := serve(t, func(ctx *fasthttp.RequestCtx) {
			if ctx.IsPost() {
				time.Sleep(30 * time.Minute)
				ctx.SetBodyString(`{"end":{"differences":[]}}`)
				return
			}
			ctx.SetBodyString("{}")
		})
		r := newRest(&Options{Addresses: []string{address}, Operator: address, Wait: time.Minute})
		v := newVerifier(t.Context(), r, &field{}, "lt0", nil)
		if v.audit(); v.result.Audit != "clean" {
			t.Error(v.result.Incomplete)
		}
	})
}
