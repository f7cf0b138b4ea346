//go:build unix

package main

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"exchange/cmd/exchange/serve"
	"exchange/config"
)

const unitFile = "../../docs/exchange.service"

// A unit is a unit file: section and name to the values, in their order.
type unit map[string][]string

func readUnit(t *testing.T) unit {
	t.Helper()
	text := must(os.ReadFile(unitFile))
	u, section := unit{}, ""
	for _, line := range strings.Split(string(text), "\n") {
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		default:
			name, value, found := strings.Cut(line, "=")
			if !found || strings.TrimSpace(line) != line {
				t.Errorf("the line %q is no setting", line)
			}
			u[section+"."+name] = append(u[section+"."+name], value)
		}
	}
	return u
}

// one returns the value of a setting that appears once.
func (u unit) one(t *testing.T, name string) string {
	t.Helper()
	if len(u[name]) != 1 {
		t.Fatalf("%s has the values %q", name, u[name])
	}
	return u[name][0]
}

func (u unit) number(t *testing.T, name string) int {
	t.Helper()
	return must(strconv.Atoi(u.one(t, name)))
}

func defaults(t *testing.T) *config.Config {
	t.Helper()
	cfg := config.Demo()
	worked(t, cfg.Finish())
	return cfg
}

// neededFiles returns how many open files the defaults of the configuration need.
func neededFiles(t *testing.T) int {
	return defaults(t).Limits.Connections + serve.KeptDescriptors
}

// The unit agrees with the exit codes, the limits and the times of the program.
func TestTheServiceFitsTheProgram(t *testing.T) {
	u := readUnit(t)
	start := strings.Fields(u.one(t, "Service.ExecStart"))
	if start[0] != "/usr/local/bin/exchange" {
		t.Errorf("it runs %s", start[0])
	}
	parsesAs(t, unitFile, start[1:], "serve")
	for name, want := range map[string]string{
		"Install.WantedBy":           "multi-user.target",
		"Unit.StartLimitIntervalSec": "0",
		"Service.Restart":            "on-failure",
		// systemd counts an end by these as clean
		"Service.RestartForceExitStatus": "SIGHUP SIGPIPE",
		// SIGHUP reloads everything reloadable: see serve/renewal.go
		"Service.ExecReload":       "/bin/kill -HUP $MAINPID",
		"Service.User":             "exchange",
		"Service.StateDirectory":   "exchange",
		"Service.WorkingDirectory": "/var/lib/exchange", // ./data, the default, is below it
		"Service.UMask":            "0077",
		"Service.LimitCORE":        "0",
	} {
		if got := u.one(t, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	var prevent []string
	for _, code := range codesNotToRestart {
		prevent = append(prevent, strconv.Itoa(code))
	}
	if got := strings.Fields(u.one(t, "Service.RestartPreventExitStatus")); !slices.Equal(got,
		prevent) {
		t.Errorf("codes %q are not restarted, want %q", got, prevent)
	}
	if stop := u.number(t, "Service.TimeoutStopSec") * 1000; stop <= defaults(t).Timing.StopMaxMs {
		t.Errorf("a stop has %d ms, and may take %d", stop, defaults(t).Timing.StopMaxMs)
	}
	if files := u.number(t, "Service.LimitNOFILE"); files < neededFiles(t) {
		t.Errorf("%d files may be open, and %d are needed", files, neededFiles(t))
	}
	if data := defaults(t); !strings.HasPrefix(data.Store, "pebble:./") {
		t.Errorf("the default store is %s, which is not below WorkingDirectory", data.Store)
	}
}

// The service has no rights that the program does not need.
func TestTheServiceHasNoRights(t *testing.T) {
	u := readUnit(t)
	for name, want := range map[string]string{
		"NoNewPrivileges": "yes", "CapabilityBoundingSet": "", "AmbientCapabilities": "",
		"ProtectSystem": "strict", "ProtectHome": "yes", "ProtectProc": "invisible",
		"ProtectClock":         "yes",
		"ProtectControlGroups": "yes", "ProtectHostname": "yes", "ProtectKernelLogs": "yes",
		"ProtectKernelModules": "yes", "ProtectKernelTunables": "yes", "PrivateDevices": "yes",
		"PrivateTmp": "yes", "DevicePolicy": "closed", "KeyringMode": "private",
		"LockPersonality":        "yes",
		"MemoryDenyWriteExecute": "yes", "RemoveIPC": "yes", "RestrictNamespaces": "yes",
		"RestrictRealtime": "yes", "RestrictSUIDSGID": "yes", "SystemCallArchitectures": "native",
		"RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6", "StateDirectoryMode": "0700",
	} {
		if got := u.one(t, "Service."+name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := u["Service.SystemCallFilter"]; !slices.Equal(got,
		[]string{"@system-service", "~@privileged"}) {
		t.Errorf("system calls are %q", got)
	}
	for _, name := range []string{"ReadWritePaths", "PrivateUsers", "DynamicUser",
		"PermissionsStartOnly"} {
		if got := u["Service."+name]; got != nil {
			t.Errorf("%s is %q", name, got)
		}
	}
}
