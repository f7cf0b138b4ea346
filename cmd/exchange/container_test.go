//go:build unix

package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"exchange/config"
	"exchange/persistence/redistest"
)

// A composeFile holds the parts of docs/compose.yaml that the tests read.
type composeFile struct {
	Services map[string]composeService `yaml:"services"`
	Networks map[string]struct {
		Internal bool `yaml:"internal"`
	} `yaml:"networks"`
}

type composeService struct {
	Image       string            `yaml:"image"`
	Command     []string          `yaml:"command"`
	Environment map[string]string `yaml:"environment"`
	Networks    []string          `yaml:"networks"`
	User        string            `yaml:"user"`
	ReadOnly    bool              `yaml:"read_only"`
	CapDrop     []string          `yaml:"cap_drop"`
	CapAdd      []string          `yaml:"cap_add"`
	SecurityOpt []string          `yaml:"security_opt"`
	Privileged  bool              `yaml:"privileged"`
	Ports       []string          `yaml:"ports"`
	Restart     string            `yaml:"restart"`
	StopGrace   string            `yaml:"stop_grace_period"`
	Ulimits     map[string]int    `yaml:"ulimits"`
	Healthcheck struct {
		Test []string `yaml:"test"`
	} `yaml:"healthcheck"`
}

var composeVariable = regexp.MustCompile(`\$\$|\$\{([A-Z_]+)(:[-?])?([^}]*)\}`)

// readCompose reads docs/compose.yaml as Compose does with these variables, and fails the test for
// others without a default.
func readCompose(t *testing.T, variables map[string]string) composeFile {
	t.Helper()
	text := must(os.ReadFile("../../docs/compose.yaml"))
	filled := composeVariable.ReplaceAllStringFunc(string(text), func(s string) string {
		m := composeVariable.FindStringSubmatch(s)
		switch value, given := variables[m[1]]; {
		case s == "$$":
			return "$"
		case given:
			return value
		case m[2] == ":-":
			return m[3]
		}
		t.Errorf("the variable %s has no default", s)
		return ""
	})
	var file composeFile
	worked(t, yaml.Unmarshal([]byte(filled), &file))
	return file
}

const composePassword = "0123456789abcdef0123456789abcdef"

func compose(t *testing.T) composeFile {
	return readCompose(t, map[string]string{"REDIS_PASSWORD": composePassword})
}

// The documented containers have no unneeded rights. TestNoSecretIsShownAndNoFileIsForOthers of
// crash/ shows that the program writes to its data folder alone.
func TestContainersHaveNoRightsAndAReadOnlyRoot(t *testing.T) {
	file := compose(t)
	if len(file.Services) != 2 {
		t.Errorf("there are %d services", len(file.Services))
	}
	for name, s := range file.Services {
		if s.User == "" || strings.HasPrefix(s.User, "0") || s.User == "root" || !s.ReadOnly ||
			!slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.CapAdd) > 0 ||
			!slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) || s.Privileged ||
			s.Healthcheck.Test == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if ports := file.Services["exchange"].Ports; !slices.Equal(ports,
		[]string{"127.0.0.1:8080:8080"}) {
		t.Errorf("the API, which is plain there, can be reached at %q", ports)
	}

	image := must(os.ReadFile("../../Dockerfile"))
	stages := regexp.MustCompile(`(?m)^FROM `).Split(string(image), -1)
	last := stages[len(stages)-1]
	for _, line := range []string{"gcr.io/distroless/static-debian12:nonroot",
		"\nUSER 65532:65532\n", "\nHEALTHCHECK ", "\nENTRYPOINT [\"/exchange\"]\n",
		"\nVOLUME /data\n"} {
		if !strings.Contains(last, line) {
			t.Errorf("the image has no %q", line)
		}
	}
	if strings.Contains(last, "\nRUN ") {
		t.Error("something is run in the image, which has no shell to run it")
	}
	for _, m := range regexp.MustCompile(
		`(?m)^(?:CMD|HEALTHCHECK .* CMD) \[(.*)\]$`).FindAllStringSubmatch(last, -1) {
		args := strings.Split(strings.ReplaceAll(strings.ReplaceAll(m[1], `"`, ""),
			"/exchange, ", ""), ", ")
		parsesAs(t, "Dockerfile", args, args[0])
	}
	// The image is built by the Go version that go.mod asks for.
	module := must(os.ReadFile("../../go.mod"))
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(module))
	if version == nil || !regexp.MustCompile(`^golang:`+version[1]+`[@ ]`).MatchString(stages[1]) {
		t.Errorf("go.mod asks for %q, the image is built with %.30q", version, stages[1])
	}
}

// The store of the containers is reached by the exchange alone, with a password that no command
// line shows.
func TestTheStoreOfTheContainersIsForTheExchangeAlone(t *testing.T) {
	file := compose(t)
	store, exchange := file.Services["redis"], file.Services["exchange"]
	if len(store.Ports) > 0 || !slices.Equal(store.Networks, []string{"store"}) ||
		!file.Networks["store"].Internal {
		t.Errorf("the store can be reached: %q, %q, %+v", store.Ports,
			store.Networks, file.Networks)
	}
	if !slices.Contains(exchange.Networks, "store") {
		t.Errorf("the exchange has the networks %q", exchange.Networks)
	}
	for name, s := range file.Services {
		if words := strings.Join(slices.Concat(s.Command, s.Healthcheck.Test),
			" "); strings.Contains(words, composePassword) {
			t.Errorf("%s: the password is on a command line: %s", name, words)
		}
	}
	text := must(os.ReadFile("../../docs/compose.yaml"))
	// Without a password Compose starts nothing.
	if all, demanded := strings.Count(string(text), "${REDIS_PASSWORD"),
		strings.Count(string(text), "${REDIS_PASSWORD:?"); all != 2 || demanded != 2 {
		t.Errorf("the password is named %d times, %d times as one that must be there", all,
			demanded)
	}
	// Neither a repository nor a layer of an image gets the password.
	leavesOut(t, ".gitignore", "/docs/.env")
}

// An image, and the build's cache, contain none of the secrets that may be in the folder.
func TestAnImageIsBuiltWithoutSecrets(t *testing.T) {
	leavesOut(t, ".dockerignore", "**/.env", "**/exchange.key*", "**/*.token", "**/exchange.yaml")
}

// leavesOut wants lines in a list of files that are left out, and no line that brings files back.
func leavesOut(t *testing.T, list string, want ...string) {
	t.Helper()
	text := must(os.ReadFile("../../" + list))
	lines := strings.Split(string(text), "\n")
	for _, line := range want {
		if !slices.Contains(lines, line) {
			t.Errorf("%s does not have %s", list, line)
		}
	}
	for _, line := range lines {
		if strings.HasPrefix(line, "!") {
			t.Errorf("%s brings files back: %s", list, line)
		}
	}
}

// The exchange of the containers fits the program: flags, variables, places, times and limits.
func TestTheExchangeOfTheContainersFitsTheProgram(t *testing.T) {
	s := compose(t).Services["exchange"]
	parsesAs(t, "compose.yaml", s.Command, "serve")
	parsesAs(t, "compose.yaml", s.Healthcheck.Test[2:], "health")
	if !slices.Equal(s.Healthcheck.Test[:2], []string{"CMD", "/exchange"}) {
		t.Errorf("its health is asked by %q", s.Healthcheck.Test)
	}
	given := map[string]string{}
	for i, word := range s.Command {
		if name, flag := strings.CutPrefix(word, "--"); flag && name != "config" {
			given[name] = s.Command[i+1]
		}
	}
	if at := slices.Index(s.Healthcheck.Test, "--listen"); at < 0 ||
		s.Healthcheck.Test[at+1] != given["listen"] {
		t.Errorf("it listens at %q, and is asked by %q", given["listen"], s.Healthcheck.Test)
	}
	var environ []string
	for name, value := range s.Environment {
		environ = append(environ, name+"="+value)
	}
	demo := t.TempDir() + "/exchange.yaml"
	worked(t, os.WriteFile(demo, []byte(config.Example()), 0o600))
	cfg, err := config.Load(config.Sources{File: demo, Environ: environ, Flags: given})
	if err != nil || len(cfg.Ignored) > 0 {
		t.Fatalf("%v, ignored %q", err, cfg.Ignored)
	}
	if cfg.Store != "redis://:"+composePassword+"@redis:6379/0" || cfg.Data != "/data" {
		t.Errorf("the store is %s, the data folder %s", cfg.Store, cfg.Data)
	}
	patience, err := time.ParseDuration(s.StopGrace)
	if err != nil || patience <= time.Duration(cfg.Timing.StopMaxMs)*time.Millisecond {
		t.Errorf("a stop has %s, %v, and may take %d ms", patience, err, cfg.Timing.StopMaxMs)
	}
	if s.Ulimits["nofile"] < neededFiles(t) {
		t.Errorf("%d files may be open, and %d are needed", s.Ulimits["nofile"], neededFiles(t))
	}
	if core, given := s.Ulimits["core"]; core != 0 || !given {
		t.Errorf("%v", s.Ulimits)
	}
	if s.Restart != "no" {
		t.Errorf("it is restarted (%s), whatever the exit code is", s.Restart)
	}
}

// composeSettings returns the start settings of the containers' Redis.
func composeSettings(t *testing.T) map[string]string {
	t.Helper()
	script := compose(t).Services["redis"].Command[2]
	_, text, _ := strings.Cut(script, "<<SETTINGS\n")
	text, _, found := strings.Cut(text, "SETTINGS\n")
	if !found {
		t.Fatalf("there are no settings in %q", script)
	}
	settings := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		settings[name] = strings.Trim(value, `"`)
	}
	return settings
}

// The containers' Redis is configured as the exchange demands, and as in docs/storage.md.
func TestTheRedisOfTheContainersIsSetAsItMustBe(t *testing.T) {
	got := composeSettings(t)
	for i := 0; i < len(redistest.Durable); i += 2 {
		if name, want := redistest.Durable[i], redistest.Durable[i+1]; got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	page := pages(t)["../../docs/storage.md"]
	_, table, _ := strings.Cut(page, "## How Redis must be set\n")
	table, _, _ = strings.Cut(table, "\n\nThe exchange reads")
	named := map[string]bool{"maxmemory": true, "requirepass": true, "aof-use-rdb-preamble": true}
	settings := strings.Join(regexp.MustCompile(`(?m)^\|([^|]+)\|`).FindAllString(table, -1), "\n")
	for _, m := range regexp.MustCompile("`([a-z-]+) ([^`]+)`").FindAllStringSubmatch(settings,
		-1) {
		named[m[1]] = true
		if want := strings.Trim(m[2], `"`); got[m[1]] != want {
			t.Errorf("%s is %q, docs/storage.md says %q", m[1], got[m[1]], want)
		}
	}
	if len(named) < 10 {
		t.Errorf("docs/storage.md names %v", named)
	}
	for name := range got {
		if !named[name] {
			t.Errorf("docs/storage.md does not explain %s", name)
		}
	}
}
