//go:build prove

package pebble

import (
	"bufio"
	"bytes"
	"context"
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

// TestMain runs as another process when a test asks for one: it opens a folder, says so, and holds
// it until its input ends.
func TestMain(m *testing.M) {
	dir := os.Getenv("PEBBLE_TEST_HOLD")
	if dir == "" {
		os.Exit(m.Run())
	}
	s, err := Open(dir, Options{Logger: quiet})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("open")
	if os.Getenv("PEBBLE_TEST_APPEND") != "" {
		appendForever(s)
	}
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0) // not closed: the kernel must free the folder
}

// appendForever appends and projects batch after batch, and says each one that was acknowledged.
func appendForever(s *Store) {
	ctx := context.Background()
	tok, seq, err := s.Acquire(ctx, persistence.Claim{Owner: "child"})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for {
		watermark, err := s.Watermark(ctx)
		if err == nil {
			w := &persistence.Writes{Nonces: []persistence.Nonce{{Key: "k", Nonce: seq}}}
			if watermark < seq {
				err = s.Apply(ctx, tok, watermark, seq, w)
			}
		}
		if err == nil {
			err = s.Append(ctx, tok, seq, seq+1, bytes.Repeat([]byte{byte(seq)}, 200))
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		seq++
		fmt.Println(seq)
	}
}

// child starts this test program as another process on dir and returns its first line of output.
func child(t *testing.T, dir string, env ...string) (*exec.Cmd, *bufio.Scanner, io.Closer) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "PEBBLE_TEST_HOLD="+dir), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the other process said nothing")
	}
	return cmd, lines, in
}

func TestASecondProcessIsToldTheHolderOfTheFolder(t *testing.T) {
	dir := t.TempDir() + "/data"
	cmd, lines, _ := child(t, dir)
	if lines.Text() != "open" {
		t.Fatal(lines.Text())
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

// A process is killed while it appends: every batch it has said is there, in a whole chain.
func TestKilledProcessLosesNothingAcknowledged(t *testing.T) {
	dir := t.TempDir() + "/data"
	for round := range 5 {
		cmd, lines, _ := child(t, dir, "PEBBLE_TEST_APPEND=1")
		acknowledged := "0"
		for range 50 + 37*round {
			if !lines.Scan() {
				t.Fatalf("the other process ended: %s", acknowledged)
			}
			acknowledged = lines.Text()
		}
		cmd.Process.Kill()
		for lines.Scan() { // what it had said before it died
			acknowledged = lines.Text()
		}
		cmd.Wait()
		var want uint64
		if _, err := fmt.Sscan(acknowledged, &want); err != nil {
			t.Fatalf("%q: %v", acknowledged, err)
		}
		s, _, last := mustOpen(t, dir, Options{})
		if last < want || last > want+1 {
			t.Fatalf("round %d: the journal ends at %d, %d were acknowledged", round, last, want)
		}
		var chain uint64
		if err := s.Read(t.Context(), 0, func(_, next uint64, _ []byte) error {
			chain = next
			return nil
		}); err != nil || chain != last {
			t.Fatalf("round %d: the chain ends at %d (%v)", round, chain, err)
		}
		if watermark, err := s.Watermark(t.Context()); err != nil || watermark > last {
			t.Fatalf("round %d: the watermark is %d, the journal ends at %d (%v)", round, watermark,
				last, err)
		}
		s.Close()
	}
}
