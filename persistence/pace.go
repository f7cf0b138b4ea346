package persistence

import "context"

type paceKey struct{}

// WithPace lets goOn hold up a long call. A query of the History with that context calls goOn after
// each thousand rows or so that it examines, whether they pass its filters or not. SaveSnapshot
// calls it after each chunk of the image, and Trim after each part of the journal. An error of goOn
// ends the call.
func WithPace(ctx context.Context, goOn func() error) context.Context {
	return context.WithValue(ctx, paceKey{}, goOn)
}

// GoOn is for stores. It calls the function of WithPace, and returns its error, or that of an ended
// ctx.
func GoOn(ctx context.Context) error {
	if goOn, ok := ctx.Value(paceKey{}).(func() error); ok {
		if err := goOn(); err != nil {
			return err
		}
	}
	return ctx.Err()
}
