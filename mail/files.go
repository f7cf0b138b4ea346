package mail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	netmail "net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
)

// Files writes mails as files instead of sending them: in a demo nothing leaves the machine. Any
// goroutine may use it.
type Files struct{ dir string }

// NewFiles returns a Files for the folder dir, which the first Send creates with mode 0700 if it is
// missing.
func NewFiles(dir string) *Files { return &Files{dir} }

var filesFrom = &netmail.Address{Name: "Demo Exchange", Address: "exchange@localhost"}

// Send writes m as <ID>.eml, with mode 0600, which mail programs can open. It writes the file
// atomically, and replaces an earlier one of the same message.
func (f *Files) Send(ctx context.Context, m Message) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	data, err := m.encode(filesFrom)
	if err != nil {
		return err
	}
	if err := f.write(m.ID+suffix, data); err != nil {
		return fmt.Errorf("mail %q cannot be written: %w", m.ID, err)
	}
	return nil
}

// A Kept is a mail written by Send, and when.
type Kept struct {
	Message
	Time time.Time
}

// Newest returns up to most of the newest mails, newest first.
func (f *Files) Newest(most int) ([]Kept, error) {
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nothing was sent yet
	} else if err != nil {
		return nil, err
	}
	var list []Kept
	for _, e := range entries {
		id, is := strings.CutSuffix(e.Name(), suffix)
		info, err := e.Info()
		if is && err == nil { // else it was just renamed
			list = append(list, Kept{Message{ID: id}, info.ModTime()})
		}
	}
	slices.SortFunc(list, func(a, b Kept) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.ID, a.ID))
	})
	list = list[:min(most, len(list))]
	for i := range list {
		if err := f.read(&list[i].Message); err != nil {
			return nil, fmt.Errorf("mail %q cannot be read: %w", list[i].ID, err)
		}
	}
	return list, nil
}

// read fills in a message with an ID from its file.
func (f *Files) read(m *Message) error {
	file, err := os.Open(filepath.Join(f.dir, m.ID+suffix))
	if err != nil {
		return err
	}
	defer file.Close()
	all, err := gomail.EMLToMsgFromReader(io.LimitReader(file, 8*maxText))
	if err != nil {
		return err
	}
	if to := all.GetTo(); len(to) == 1 {
		m.To = to[0].Address
	}
	subject := strings.Join(all.GetGenHeader(gomail.HeaderSubject), " ")
	if m.Subject, err = new(mime.WordDecoder).DecodeHeader(subject); err != nil {
		return err
	}
	for _, part := range all.GetParts() {
		text, err := part.GetContent()
		if err != nil {
			return err
		}
		m.Text += strings.ReplaceAll(string(text), "\r\n", "\n")
	}
	return nil
}

// suffix ends the name of each mail's file.
const suffix = ".eml"

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
