package operate

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"time"

	"exchange/cmd/exchange/cli"
)

// Shared parts of the operator's commands. Most commands are verbs, in verbs.go.

// ask makes a request that changes nothing.
func (p *Commands) ask(ctx context.Context, path string, out reflect.Type) (json.RawMessage,
	error) {
	c, err := p.client()
	if err != nil {
		return nil, err
	}
	return c.call(ctx, path, nil, out)
}

// change makes a request that changes something, once. If the outcome is unknown, the error
// contains the advice how to find out.
func (p *Commands) change(ctx context.Context, path string, in any, out reflect.Type,
	advice string) (json.RawMessage, error) {
	c, err := p.client()
	if err != nil {
		return nil, err
	}
	raw, err := c.call(ctx, path, in, out)
	return raw, adviseIfUnknown(err, advice)
}

// repeatIt is the advice after an idempotent change.
const repeatIt = "run the same command again until it answers"

// pauses are the waits between the tries of a repeatable request.
var pauses = []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second}

// changeUntilKnown makes a request that the server carries out once, even if it arrives again, and
// repeats it some times while its outcome is unknown. It returns the number of repeats.
func (p *Commands) changeUntilKnown(ctx context.Context, path string, in any,
	out reflect.Type, advice string) (raw json.RawMessage, repeats int, err error) {
	c, err := p.client()
	if err != nil {
		return nil, 0, err
	}
	maybeDone := false // an earlier try may have been executed
	for {
		raw, err = c.call(ctx, path, in, out)
		var u unknownError
		if errors.As(err, &u) {
			maybeDone = true
		} else if !maybeDone || cli.ExitCode(err) != cli.ExitUnavailable {
			return raw, repeats, err
		}
		if repeats == len(pauses) || !wait(ctx, pauses[repeats]) {
			return nil, repeats, adviseIfUnknown(unknown("%w", err), advice)
		}
		repeats++
	}
}

func adviseIfUnknown(err error, advice string) error {
	var u unknownError
	if errors.As(err, &u) {
		return unknown("%s; whether it was done is unknown: %s",
			strings.TrimSuffix(err.Error(), "."), advice)
	}
	return err
}

// wait returns false if ctx ends before d has passed.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// maxList bounds a list, in rows: the server's own bound.
const maxList = 100_000

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// answerIf prints an answer, unless there is an error.
func (p *Commands) answerIf(err error, x *invocation, raw json.RawMessage) error {
	if err != nil {
		return err
	}
	return p.answer(x, raw, 0)
}
