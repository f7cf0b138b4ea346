//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package seal

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestTwoCommandsDoNotChangeTheFileAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "exchange.key")
	must[any](t)(Load("", file, true))
	unlock := must[func()](t)(lock(file))
	if _, err := Rotate(file); !errors.Is(err, errBusy) {
		t.Errorf("a rotation: %v", err)
	}
	if _, err := Retire(file); !errors.Is(err, errBusy) {
		t.Errorf("a retirement: %v", err)
	}
	unlock()
	before := must[*os.File](t)(os.Open(file)) // by a command that waits for its turn
	defer before.Close()
	if s, err := Rotate(file); err != nil || len(s.IDs()) != 2 {
		t.Errorf("afterwards: %v, %v", s, err)
	}
	if same, err := still(before, file); err != nil || same {
		t.Errorf("the file of before is taken for the new one: %v", err)
	}
}

// belongsTo returns the owner of a file.
func belongsTo(t *testing.T, name string) owner {
	t.Helper()
	return must[owner](t)(ownerOf(os.Stat(name)))
}

// A file changed by an administrator still belongs to the user of the exchange, or it is not
// changed.
func TestTheFileKeepsItsOwner(t *testing.T) {
	file := filepath.Join(t.TempDir(), "exchange.key")
	must[any](t)(Load("", file, true))
	want := belongsTo(t, file)
	refused := errors.New("refused")
	given := owner{}
	chown = func(f *os.File, uid, gid int) error {
		given = owner{uint32(uid), uint32(gid)}
		return refused
	}
	t.Cleanup(func() { chown = (*os.File).Chown })

	other := filepath.Join(t.TempDir(), "other.key")
	succeeds(t, os.WriteFile(other, nil, 0o600))
	if err := write(other, "x", file, os.Rename); err != nil || given != (owner{}) {
		t.Errorf("one of the same owner: %v, given to %v", err, given)
	}
	// A system device has another owner, or, for root, a file given to another user.
	elsewhere := "/dev/null"
	if want == belongsTo(t, elsewhere) {
		succeeds(t, os.Chown(file, 12345, 23456))
		elsewhere, want = file, owner{12345, 23456}
	} else {
		want = belongsTo(t, elsewhere)
	}
	if err := write(other, "y", elsewhere, os.Rename); !errors.Is(err, refused) || given != want {
		t.Errorf("%v, given to %v, not %v", err, given, want)
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "x" {
		t.Errorf("it was changed all the same: %q, %v", text, err)
	}
	if left, err := os.ReadDir(filepath.Dir(other)); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	if syscall.Geteuid() == 0 { // other users may not change a file's owner
		chown = (*os.File).Chown
		rotationKeepsOwner(t, file)
	}
}

// rotationKeepsOwner gives the file of a key to another user, rotates and retires.
func rotationKeepsOwner(t *testing.T, file string) {
	t.Helper()
	succeeds(t, os.Chown(file, 12345, 23456))
	must[any](t)(Rotate(file))
	if o := belongsTo(t, file); o != (owner{12345, 23456}) {
		t.Errorf("after a rotation it belongs to %v", o)
	}
	retired, err := Retire(file)
	if err != nil || len(retired) != 1 {
		t.Fatal(retired, err)
	}
	for _, name := range append(retired, file) {
		if o := belongsTo(t, name); o != (owner{12345, 23456}) {
			t.Errorf("after a retirement %s belongs to %v", name, o)
		}
	}
}
