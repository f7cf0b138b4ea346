package mail

import (
	"context"
	"errors"
	"fmt"
	netmail "net/mail"
	"os"
	"path/filepath"
)

// Files writes mails as files instead of sending them: in a demo nothing leaves the machine. Any
// goroutine may use it.
type Files struct{ dir string }

// NewFiles is for the folder dir, which the first Send makes with mode 0700 if it is not there.
func NewFiles(dir string) *Files { return &Files{dir} }

var filesFrom = &netmail.Address{Name: "Demo Exchange", Address: "exchange@localhost"}

// Send writes m as <ID>.eml, with mode 0600, which mail programs can open. The file is there whole
// or not at all, and the same message again takes its place.
func (f *Files) Send(ctx context.Context, m Message) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	data, err := m.encode(filesFrom)
	if err != nil {
		return err
	}
	if err := f.write(m.ID+".eml", data); err != nil {
		return fmt.Errorf("mail %q cannot be written: %w", m.ID, err)
	}
	return nil
}

func (f *Files) write(name string, data []byte) error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	t, err := os.CreateTemp(f.dir, ".mail-*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = t.Write(data)
	if err = errors.Join(err, t.Close()); err == nil {
		err = os.Rename(t.Name(), filepath.Join(f.dir, name))
	}
	if err != nil {
		os.Remove(t.Name())
	}
	return err
}
