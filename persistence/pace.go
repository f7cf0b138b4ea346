package persistence

import "context"

type paceKey struct{}

// WithPace lets goOn decide when a long query goes on: a query of the History that was given the
// context calls it each time it has examined some thousand rows more, whether they passed its
// filters or not. Its error ends the query.
func WithPace(ctx context.Context, goOn func() error) context.Context {
	return context.WithValue(ctx, paceKey{}, goOn)
}

// GoOn is for stores: what WithPace says, or that ctx has ended.
func GoOn(ctx context.Context) error {
	if goOn, ok := ctx.Value(paceKey{}).(func() error); ok {
		if err := goOn(); err != nil {
			return err
		}
	}
	return ctx.Err()
}
