//go:build prove

package pebble

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"exchange/persistence"
)

func init() { oneOf = 1 }

// TestMain also runs as a test's other process: it opens a folder, prints "open", and holds it
// until its input ends.
func TestMain(m *testing.M) {
	dir := os.Getenv("PEBBLE_TEST_HOLD")
	if dir == "" {
		os.Exit(m.Run())
	}
	if _, err := Open(dir, Options{Logger: quiet}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("open")
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0) // not closed: the kernel must free the folder
}

// child starts this test program as another process on dir and returns its first line of output.
func child(t *testing.T, dir string) (cmd *exec.Cmd, line string) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PEBBLE_TEST_HOLD="+dir)
	out, err := cmd.StdoutPipe()
	succeeds(t, err)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	succeeds(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the other process printed nothing")
	}
	return cmd, lines.Text()
}

func TestSecondProcessNamesFolderHolder(t *testing.T) {
	dir := t.TempDir() + "/data"
	cmd, line := child(t, dir)
	if line != "open" {
		t.Fatal(line)
	}
	_, err := Open(dir, Options{Logger: quiet})
	if !errors.Is(err, persistence.ErrLocked) {
		t.Fatalf("error is %v, want ErrLocked", err)
	}
	if want := fmt.Sprintf("process %d on ", cmd.Process.Pid); !strings.Contains(err.Error(),
		want) {
		t.Fatalf("%q does not say %q", err, want)
	}
	cmd.Process.Kill()
	cmd.Wait()
	mustOpen(t, dir, Options{}) // the kernel has freed it
}
