//go:build prove && linux

package processes

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"exchange/prove/exchangetest"
)

// clockProgram returns the exchange with a wall clock that signals move: SIGUSR1 an hour forward,
// SIGUSR2 an hour back. Its code is the product's, except for an overlay (go build -overlay) of the
// standard library's time.Now and one file beside main, with the build tag clockjump. The monotonic
// clock is unaffected, as when an administrator sets a machine's clock.
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
	jumping := strings.Replace(string(source), "func Now() Time {\n"+reads,
		"func Now() Time {\n"+reads+"\tsec += JumpedSeconds.Load()\n", 1)
	jumping = strings.Replace(jumping, "import (\n", "import (\n\t\"sync/atomic\"\n",
		1) + "\n// JumpedSeconds moves the wall clock.\nvar JumpedSeconds atomic.Int64\n"
	if !strings.Contains(jumping, "sec += JumpedSeconds") {
		return "", os.ErrInvalid // this Go's time.Now is another one
	}
	mainFolder, err := filepath.Abs("../../cmd/exchange")
	if err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		original: filepath.Join(dir, "time.go"),
		filepath.Join(mainFolder, "clockjump.go"): filepath.Join(dir, "clockjump.go")}})
	if err != nil {
		return "", err
	}
	for name, text := range map[string]string{"time.go": jumping, "clockjump.go": clockFile,
		"overlay.json": string(overlay)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	program := filepath.Join(dir, "exchange")
	cmd := exec.Command("go", "build", "-tags", "clockjump", "-overlay",
		filepath.Join(dir, "overlay.json"), "-pgo=off", "-o", program, "exchange/cmd/exchange")
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
	program := must[string](c.t)(clockProgram(c.t.TempDir()))
	c.s.Use(program)
}

// jump moves the clock an hour forward, until orders have that time, and back: by the death of the
// process, whose successor has the right clock and future records, or by hand, which puts it before
// the newest record. Each time the exchange must log it.
func (c *chaos) jump() {
	ahead := float64(time.Now().Add(time.Hour).UnixMicro()) / 1e6
	c.s.Signal(syscall.SIGUSR1)
	exchangetest.Eventually(c.t, "orders are executed an hour ahead", func() bool {
		var newest []struct {
			Time float64 `json:"timestamp"`
		}
		status, body, err := c.s.Client.Get(nil, "http://"+c.s.Listen+"/api/v1/exchanges/?limit=1")
		return err == nil && status == 200 && json.Unmarshal(body, &newest) == nil &&
			len(newest) == 1 && newest[0].Time >= ahead
	})
	exchangetest.Eventually(c.t, "the exchange says that its clock has jumped", func() bool {
		return clockJump.MatchString(c.s.Log())
	})
	if c.random.IntN(2) == 0 {
		c.setBack(time.Hour, c.killExchange)
	} else {
		c.setBack(time.Hour, func() { c.s.Signal(syscall.SIGUSR2) })
		c.setBack(2*time.Hour, func() { c.s.Signal(syscall.SIGUSR2) })
		c.setBack(time.Hour, func() { c.s.Signal(syscall.SIGUSR1) })
	}
	c.accepts(10)
}

var clockJump = regexp.MustCompile(`the clock has jumped ahead.* ahead=(59m|1h)`)

var clockAlarm = regexp.MustCompile(`the clock is behind the newest record.* behind_us=([0-9]+)`)

// setBack moves the clock, and waits until the exchange logs that it is now about much before the
// newest record.
func (c *chaos) setBack(much time.Duration, move func()) {
	c.t.Helper()
	from := len(c.s.Log())
	move()
	exchangetest.Eventually(c.t, fmt.Sprintf("the exchange logs that its clock is %v slow", much),
		func() bool {
			for _, alarm := range clockAlarm.FindAllStringSubmatch(c.s.Log()[from:], -1) {
				us := must[int64](c.t)(strconv.ParseInt(alarm[1], 10, 64))
				if (time.Duration(us)*time.Microsecond - much).Abs() < 10*time.Minute {
					return true
				}
			}
			return false
		})
}
