package persistence

import "context"

type paceKey struct{}

// WithPace lets goOn decide when a long query goes on. A query of the History with that context
// calls goOn each time it has examined some thousand rows more, whether they passed its filters or
// not. An error of goOn ends the query.
func WithPace(ctx context.Context, goOn func() error) context.Context {
	return context.WithValue(ctx, paceKey{}, goOn)
}

// GoOn is for stores. It returns the answer of WithPace's function, or the error of an ended ctx.
func GoOn(ctx context.Context) error {
	if goOn, ok := ctx.Value(paceKey{}).(func() error); ok {
		if err := goOn(); err != nil {
			return err
		}
	}
	return ctx.Err()
}
