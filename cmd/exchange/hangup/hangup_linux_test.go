package hangup

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// Closing the terminal of an exchange ends it, and a hangup ends other commands. In all other cases
// it asks for a reload.
func TestAHangupAsksForAReloadWhereThereIsNoTerminal(t *testing.T) {
	open := func(name string, mode int) *os.File {
		f, err := os.OpenFile(name, mode, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	guard := make(chan os.Signal, 1) // or the signal would end the test
	signal.Notify(guard, syscall.SIGHUP)
	defer signal.Stop(guard)
	terminal, null := open("/dev/ptmx", os.O_RDWR), open(os.DevNull, os.O_RDONLY)
	serve := []string{"exchange", "--json", "serve", "--demo"}
	never := []<-chan os.Signal{asked(serve, terminal), asked([]string{"exchange", "audit"}, null)}
	always := []<-chan os.Signal{asked(serve, null), asked(serve, r)}
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	<-guard
	for _, ch := range always {
		<-ch
	}
	for i, ch := range never {
		if len(ch) != 0 {
			t.Errorf("%d receives a hangup", i)
		}
	}
}
