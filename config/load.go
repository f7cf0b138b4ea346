package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Sources are the inputs of Load, besides the defaults.
type Sources struct {
	File    string            // path of the YAML file; empty: the file named by envConfig, if any
	Environ []string          // NAME=value, in the form of os.Environ
	Flags   map[string]string // text of the given flags, by key
}

// problemList holds all problems of a configuration, one sentence each.
type problemList []string

func (p problemList) Error() string {
	if len(p) == 1 {
		return p[0]
	}
	return fmt.Sprintf("the configuration has %d problems:\n  - %s", len(p),
		strings.Join(p, "\n  - "))
}

// maxFileBytes bounds the configuration file: some thousand pairs.
const maxFileBytes = 1 << 20

// Load reads a configuration. Its error lists all problems at once.
func Load(src Sources) (*Config, error) {
	l := loader{cfg: Default()}
	env := make(map[string]string)
	for _, e := range src.Environ {
		if name, value, _ := strings.Cut(e,
			"="); strings.HasPrefix(name, envPrefix) && value != "" {
			env[name] = value
		}
	}
	file := src.File
	if file == "" {
		file = env[envConfig]
	}
	if file != "" {
		l.readFile(file)
	}
	l.environment(env)
	for i := range Options {
		o := &Options[i]
		if text, ok := src.Flags[o.Key]; ok {
			l.set(o, text, "--"+o.FlagName())
		}
	}
	if err := l.cfg.Finish(); err != nil {
		l.problems = append(l.problems, err.(problemList)...)
	}
	if len(l.problems) > 0 {
		return nil, l.problems
	}
	return l.cfg, nil
}

type loader struct {
	cfg      *Config
	problems problemList
	lines    map[string]int // of each option in the file
}

func (l *loader) problem(format string, args ...any) {
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

func (l *loader) readFile(name string) {
	f, err := os.Open(name)
	if err == nil {
		defer f.Close()
		var data []byte
		if data, err = io.ReadAll(io.LimitReader(f, maxFileBytes+1)); err == nil {
			if len(data) > maxFileBytes {
				l.cfg.unread = true
				l.problem("%s is longer than %s bytes: is it a configuration file?", name,
					Thousands(maxFileBytes))
				return
			}
			l.yaml(name, data)
			return
		}
	}
	l.cfg.unread = true
	hint := ""
	if errors.Is(err, fs.ErrNotExist) {
		hint = "; `exchange config example > exchange.yaml` makes one"
	}
	l.problem("the configuration cannot be read: %v%s.", err, hint)
}

func (l *loader) environment(env map[string]string) {
	known := map[string]bool{envConfig: true, EnvOperatorToken: true, EnvSecretKey: true,
		EnvOperatorName: true, EnvOperatorCA: true, EnvAPIKeyFile: true}
	for i := range Options {
		o := &Options[i]
		known[o.env()] = true
		if text, ok := env[o.env()]; ok {
			l.set(o, text, o.env())
		}
	}
	for name := range env {
		if !known[name] {
			l.cfg.Ignored = append(l.cfg.Ignored, name)
		}
	}
	slices.Sort(l.cfg.Ignored)
}

// set sets an option from text; origin is the source of the text, for messages.
func (l *loader) set(o *Option, text, origin string) {
	if err := o.set(l.cfg, text); err != nil {
		var nested problemList
		if errors.As(err, &nested) { // a list: each entry has its own message
			for _, p := range nested {
				l.problem("%s: %s", origin, p)
			}
			l.cfg.unread = true
			return
		}
		l.problem("%s is %s (%s): %s.", o.Key, o.show(text), origin, err)
		l.cfg.unread = l.cfg.unread || o.Key == "demo" // it may have selected the demo's pairs
		return
	}
	l.cfg.origin[o.Key] = origin
}
