//go:build linux

package crash

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// clockProgram is the exchange with a wall clock that signals move: SIGUSR1 an hour forward, SIGUSR2 an hour back. Its code is the
// product's; the standard library's time.Now and one file beside main are laid over it (go build -overlay), and the file has the
// build tag clockjump. The monotonic clock stays as it is, as when an administrator sets a machine's clock.
func clockProgram(dir string) (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	const reads = "\tsec, nsec, mono := runtimeNow()\n"
	jumping := strings.Replace(string(source), "func Now() Time {\n"+reads, "func Now() Time {\n"+reads+"\tsec += JumpedSeconds.Load()\n", 1)
	jumping = strings.Replace(jumping, "import (\n", "import (\n\t\"sync/atomic\"\n", 1) + "\n// JumpedSeconds moves the wall clock.\nvar JumpedSeconds atomic.Int64\n"
	if !strings.Contains(jumping, "sec += JumpedSeconds") {
		return "", os.ErrInvalid // this Go's time.Now is another one
	}
	mainFolder, err := filepath.Abs("..")
	if err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		original: filepath.Join(dir, "time.go"), filepath.Join(mainFolder, "clockjump.go"): filepath.Join(dir, "clockjump.go")}})
	if err != nil {
		return "", err
	}
	for name, text := range map[string]string{"time.go": jumping, "clockjump.go": clockFile, "overlay.json": string(overlay)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	program := filepath.Join(dir, "exchange")
	cmd := exec.Command("go", "build", "-tags", "clockjump", "-overlay", filepath.Join(dir, "overlay.json"), "-pgo=off", "-o", program, "exchange/cmd/exchange")
	cmd.Stderr = os.Stderr
	return program, cmd.Run()
}

const clockFile = `//go:build clockjump

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

func init() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		for s := range signals {
			if s == syscall.SIGUSR1 {
				time.JumpedSeconds.Add(3600)
			} else {
				time.JumpedSeconds.Add(-3600)
			}
		}
	}()
}
`

func withClock(c *chaos) {
	onPebble(c)
	program, err := clockProgram(c.t.TempDir())
	if err != nil {
		c.t.Fatal(err)
	}
	c.s.Use(program)
}

// jump moves the clock there and back, also over a restart, after which the clock is behind what is stored.
func (c *chaos) jump() {
	l := &load{c: c, done: make(chan struct{})}
	c.s.Signal(syscall.SIGUSR1)
	l.accepts(10)
	if c.random.IntN(2) == 0 {
		c.killExchange() // the next one has the right clock, and records of the future
	} else {
		c.s.Signal(syscall.SIGUSR2)
		c.s.Signal(syscall.SIGUSR2) // and as far behind
	}
	l.accepts(10)
}
