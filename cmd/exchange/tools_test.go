//go:build prove && unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"exchange/config"
	"exchange/persistence"
	"exchange/persistence/redis"
	"exchange/persistence/redistest"
)

// The containers' Redis starts by its command, the health check finds it, and it wants the
// password. The exchange's store accepts this Redis as durable.
func TestTheRedisOfTheContainersServesAnExchange(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Fatal("redis-server is not installed, and this test needs it: `make smoke` installs it")
	}
	s := compose(t).Services["redis"]
	port, dir := redistest.FreePort(t), t.TempDir()
	script := strings.Replace(s.Command[2], "<<SETTINGS\n",
		fmt.Sprintf("<<SETTINGS\nport %d\nbind 127.0.0.1\ndir %s\n", port, dir), 1)
	environ := os.Environ()
	for name, value := range s.Environment {
		environ = append(environ, name+"="+value)
	}
	server := exec.Command(s.Command[0], s.Command[1], script)
	server.Env, server.Dir = environ, dir
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	worked(t, server.Start())
	t.Cleanup(func() {
		syscall.Kill(-server.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
		server.Wait()                                      //nolint:errcheck // it was killed
	})
	if s.Healthcheck.Test[0] != "CMD-SHELL" {
		t.Fatalf("%q", s.Healthcheck.Test)
	}
	check := strings.Replace(s.Healthcheck.Test[1], "redis-cli",
		fmt.Sprintf("redis-cli -p %d", port), 1)
	healthy := func(environ []string) bool {
		c := exec.Command("sh", "-c", check)
		c.Env = environ
		return c.Run() == nil
	}
	for begin := time.Now(); !healthy(environ); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > 20*time.Second {
			t.Fatal("its health check does not find it")
		}
	}
	if healthy(os.Environ()) {
		t.Error("it needs no password")
	}

	ctx := context.Background()
	address := fmt.Sprintf("127.0.0.1:%d", port)
	c := goredis.NewClient(&goredis.Options{Addr: address, Password: composePassword, Protocol: 2,
		DisableIdentity: true})
	defer c.Close()
	for name, want := range composeSettings(t) {
		switch name {
		case "maxmemory", "auto-aof-rewrite-min-size": // Redis reports bytes
			continue
		case "requirepass":
			want = composePassword // as the shell fills it in
		}
		if got, err := c.ConfigGet(ctx, name).Result(); err != nil || got[name] != want {
			t.Errorf("%v, %v, want %s %s", got, err, name, want)
		}
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", server.Process.Pid))
	if err == nil && (strings.Contains(string(line), composePassword) ||
		!strings.Contains(string(line), "redis-server")) {
		t.Errorf("its command line is %q", line)
	}
	opensWithThePassword(t, address)
}

func opensWithThePassword(t *testing.T, address string) {
	t.Helper()
	ctx := context.Background()
	for url, opens := range map[string]bool{
		"redis://:" + composePassword + "@" + address + "/0": true,
		"redis://" + address + "/0":                          false,
	} {
		store, err := redis.Open(ctx, url, redis.Options{})
		if err == nil {
			_, _, err = store.Acquire(ctx, persistence.Claim{})
			store.Close() //nolint:errcheck // nothing was written
		}
		if (err == nil) != opens {
			t.Errorf("%s: %v", config.RedactURL(url), err)
		}
	}
}

// systemd itself accepts the unit without a complaint, and finds little to attack.
func TestSystemdTakesTheService(t *testing.T) {
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip(
			"there is no systemd-analyze: the unit is compared with the program only, and not " +
				"read by systemd")
	}
	text := must(os.ReadFile(unitFile))
	// The program is not installed here: another one stands in for it.
	file := filepath.Join(t.TempDir(), "exchange.service")
	text = []byte(strings.Replace(string(text), "/usr/local/bin/exchange ", "/bin/sh ", 1))
	worked(t, os.WriteFile(file, text, 0o600))
	for _, args := range [][]string{{"verify", "--man=no", file},
		{"security", "--offline=true", "--threshold=25", file}} {
		out, err := exec.Command(tool, args...).CombinedOutput()
		if output := string(out); err != nil ||
			args[0] == "verify" && strings.Contains(output, "exchange.service") {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, output)
		}
	}
}
