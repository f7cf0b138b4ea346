// Package hangup receives SIGHUP as early as a program can: some milliseconds after its start.
// Until a Go program asks for that signal, it ends the process. The packages of this program take
// some 40 ms to initialize, in which a supervisor may ask for a reload already. So this one imports
// the standard library alone: the runtime then initializes it before nearly all others.
package hangup

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// Asked receives the signals that ask `exchange serve` to reload. Those that arrive while one is
// pending count as that one. In a terminal none arrive: there the signal means that the terminal
// was closed, and ends the process.
var Asked = asked(os.Args, os.Stdin)

func asked(args []string, input *os.File) <-chan os.Signal {
	ch := make(chan os.Signal, 1)
	if slices.Contains(args, "serve") && !terminal(input) {
		signal.Notify(ch, syscall.SIGHUP)
	}
	return ch
}

// terminal reports whether a file is a character device other than the null device.
func terminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
