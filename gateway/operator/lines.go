package operator

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"exchange/actors/committed"
)

// A lineWriter writes the JSON lines of a long answer. The last line is {"end": ...} or
// {"error": "..."}; without it the answer is incomplete.
type lineWriter struct {
	w    *bufio.Writer
	json *json.Encoder
}

// write writes a line. It returns false once the client has disconnected; the caller may stop then.
func (o *lineWriter) write(line any) bool { return o.json.Encode(line) == nil }

// flush sends the buffered lines.
func (o *lineWriter) flush() { o.w.Flush() } //nolint:errcheck // the next write reports it

// An errorLine ends an incomplete answer.
type errorLine struct {
	Error string `json:"error"`
	// stored data are inconsistent: a retry does not help
	Damaged bool `json:"damaged,omitempty"`
}

// An endLine ends a complete answer.
type endLine struct {
	End any `json:"end"`
}

// stream sends the lines that produce writes. An error after the first line becomes the last line.
func (c *call) stream(produce func(context.Context, *lineWriter) (end any, err error)) {
	c.ctx.SetContentType("application/x-ndjson")
	log, path := c.engine.Log(), string(c.ctx.Path())
	c.ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		ctx, cancel := context.WithTimeout(context.Background(), StreamTimeout)
		defer cancel()
		o := &lineWriter{w, json.NewEncoder(w)}
		o.json.SetEscapeHTML(false)
		end, err := guarded(log, path, func() (any, error) { return produce(ctx, o) })
		if err != nil {
			o.write(errorLine{err.Error(),
				committed.Damaged(err) || errors.Is(err, errHistory)})
		} else {
			o.write(endLine{end})
		}
		o.flush()
	})
}

// guarded calls produce and turns its panic into an error. A streamed answer has a goroutine of its
// own, where a panic would end the process.
func guarded(log *slog.Logger, path string, produce func() (any, error)) (end any, err error) {
	defer func() {
		if p := recover(); p != nil {
			id := random(12)
			log.Error("an operator's request panicked", "request", id, "path", path, "reason", p,
				"stack", string(debug.Stack()))
			err = fmt.Errorf("internal error, request id %s", id)
		}
	}()
	return produce()
}

// StreamTimeout bounds a long answer.
const StreamTimeout = time.Hour

// errStreamed is the error of a handler whose answer is already being sent.
var errStreamed = errors.New("streamed")
