package actors

import (
	"context"
	"io"

	"exchange/persistence/backup"
)

// Backup takes an image of the committed state. write then writes a backup of the state and of the
// history up to it. It may take long, and holds no slot.
func (e *Engine) Backup(ctx context.Context) (write func(context.Context, io.Writer) error,
	err error) {
	image, err := e.Image(ctx)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, w io.Writer) error {
		return backup.Write(ctx, w, e.opts.Store, image, e.Authority(), func(int) {})
	}, nil
}
