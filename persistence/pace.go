package persistence

import "context"

type paceKey struct{}

// WithPace lets pause hold up a long call. A query of the History with that context calls pause
// after about every thousand rows that it examines, filtered out or not. SaveSnapshot calls it
// after each chunk of the image, and Trim after each part of the journal. An error of pause ends
// the call.
func WithPace(ctx context.Context, pause func() error) context.Context {
	return context.WithValue(ctx, paceKey{}, pause)
}

// Pace is for stores. It calls the function of WithPace, and returns its error, or that of an ended
// ctx.
func Pace(ctx context.Context) error {
	if pause, ok := ctx.Value(paceKey{}).(func() error); ok {
		if err := pause(); err != nil {
			return err
		}
	}
	return ctx.Err()
}
