package main

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// Closing the terminal of an exchange ends it. In all other cases a hangup asks for a renewal.
func TestAHangupIsTakenWhereThereIsNoTerminal(t *testing.T) {
	terminals := must(os.OpenFile("/dev/ptmx", os.O_RDWR, 0))
	defer terminals.Close()
	empty := must(os.Open(os.DevNull))
	defer empty.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for f, want := range map[*os.File]bool{terminals: true, empty: false, r: false} {
		if got := terminal(f); got != want {
			t.Errorf("%s is a terminal: %v", f.Name(), got)
		}
	}
	guard := make(chan os.Signal, 2) // or the signal would end the test
	signal.Notify(guard, syscall.SIGHUP)
	defer signal.Stop(guard)
	inTerminal, stop := hangups(terminals)
	defer stop()
	elsewhere, ignore := hangups(empty)
	defer ignore()
	worked(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	<-guard
	<-elsewhere
	if len(inTerminal) != 0 {
		t.Error("a hangup is taken in a terminal")
	}
}
