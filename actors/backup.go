package actors

import (
	"context"
	"io"

	"exchange/actors/committed"
	"exchange/persistence/backup"
)

// Backup takes an image of the committed state. write writes a backup of the state and of the
// history up to it. It may take long, and holds no slot.
func (e *Engine) Backup() (write func(context.Context, io.Writer) error, err error) {
	q := new(committed.WholeState)
	if err := e.Ask(q, nil, 0); err != nil {
		return nil, err
	}
	return func(ctx context.Context, w io.Writer) error {
		return backup.Write(ctx, w, e.opts.Store, q.Image, e.Authority(), func(int) {})
	}, nil
}
