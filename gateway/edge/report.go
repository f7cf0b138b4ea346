package edge

import (
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/gateway/api"
)

// Answers that are server failures (Failure.Ours) carry an X-Request-Id. The log has that id with
// the request and the cause. Neither queries, bodies nor headers are logged, because they contain
// keys, signatures and codes. Load, maintenance and the like are no failures: they are counted and
// not logged.

// A failureLog bounds the logged failures. When the store stalls, thousands of requests a second
// fail for one reason, and logging them all would be the next stall.
type failureLog struct {
	mu     sync.Mutex
	second int64 // of the gateway's clock
	logged int   // within that second
	left   int   // failures suppressed since the last logged one
}

// failuresPerSecond is the maximum of logged failures a second.
const failuresPerSecond = 20

// next reports whether to log a failure now, and how many were suppressed since the last logged
// one.
func (l *failureLog) next(now int64) (ok bool, left int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if second := now / int64(time.Second); second != l.second {
		l.second, l.logged = second, 0
	}
	if l.logged == failuresPerSecond {
		l.left++
		return false, 0
	}
	l.logged++
	left, l.left = l.left, 0
	return true, left
}

// reports logs answers that are server failures, with request ids.
type reports struct {
	log                 *slog.Logger
	now                 func() int64
	errors, unavailable failureLog // for status 500, and for all others
}

// report sets the request id of an answer, and logs it with the attributes more.
func (s *reports) report(ctx *fasthttp.RequestCtx, route string, status int, took int64,
	more ...any) (id string) {
	id, attributes := identifyAnswer(ctx, route, status, took)
	s.write(status, attributes, more)
	return id
}

// reportProbe logs, at debug level, that a probe found this process not ready: load balancers probe
// each second.
func (s *reports) reportProbe(ctx *fasthttp.RequestCtx, route string, f *api.Failure, took int64,
	cause error) {
	_, attributes := identifyAnswer(ctx, route, f.Status, took)
	s.log.Debug("answered a probe: this process does not serve",
		append(attributes, "failure", f.Name, "error", cause)...)
}

// identifyAnswer sets the request id of an answer, and returns the common attributes for the log.
func identifyAnswer(ctx *fasthttp.RequestCtx, route string, status int, took int64) (id string,
	attributes []any) {
	id = requestID()
	ctx.Response.Header.Set("X-Request-Id", id)
	return id, []any{"request", id, "method", string(ctx.Method()), "route", route, "path",
		string(ctx.Path()), "status", status, "took", time.Duration(took)}
}

// reportStream logs a server failure of an event of the stream, or of a forwarded request.
func (s *reports) reportStream(event string, f *api.Failure, cause error) {
	s.write(f.Status, []any{"event", event, "status", f.Status, "failure", f.Name},
		[]any{"error", cause})
}

// write logs a failure with its attributes, and those of more that are not empty, unless too many
// were logged in this second.
func (s *reports) write(status int, attributes, more []any) {
	l := &s.unavailable
	if status == fasthttp.StatusInternalServerError {
		l = &s.errors // a stalled store must not hide a fault of the program
	}
	ok, left := l.next(s.now())
	if !ok {
		return
	}
	for i := 0; i+1 < len(more); i += 2 {
		if more[i+1] != nil && more[i+1] != "" {
			attributes = append(attributes, more[i], more[i+1])
		}
	}
	if left > 0 {
		attributes = append(attributes, slog.Int("not_logged_before", left))
	}
	s.log.Error("a request failed", attributes...)
}

func requestID() string {
	var b [12]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
