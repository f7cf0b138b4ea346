package cli

import (
	"maps"

	"github.com/spf13/pflag"

	"exchange/config"
)

// Sources are the values of the flags of `serve`, which several commands take.
type Sources struct {
	File  string               // of --config; "": none
	flags map[string]*textFlag // by key of the option
}

// Register adds the flags to a command.
func (s *Sources) Register(fs *pflag.FlagSet) {
	fs.StringVar(&s.File, "config", "", "configuration file (default $EXCHANGE_CONFIG)")
	s.flags = map[string]*textFlag{}
	for i := range config.Options {
		o := &config.Options[i]
		if !o.Flag {
			continue
		}
		v := &textFlag{kind: o.Type(), text: o.Default}
		s.flags[o.Key] = v
		f := fs.VarPF(v, o.FlagName(), "", o.Brief)
		if o.Type() == "bool" {
			f.NoOptDefVal = "true"
		}
	}
	fs.SortFlags = false // in the order of the table
}

// Given returns the text of the flag of an option, by its key, and whether it was given.
func (s *Sources) Given(key string) (text string, given bool) {
	f := s.flags[key]
	return f.text, f.given
}

// Load makes the configuration. A wrong one exits with ExitUsage.
func (p *Program) Load(s *Sources) (*config.Config, error) {
	given := maps.Collect(func(yield func(string, string) bool) {
		for key, f := range s.flags {
			if f.given && !yield(key, f.text) {
				return
			}
		}
	})
	cfg, err := config.Load(config.Sources{File: s.File, Environ: p.Environ, Flags: given})
	return cfg, WithExit(ExitUsage, err)
}

// A textFlag takes any text: the configuration checks it, so that all problems are reported at
// once.
type textFlag struct {
	kind  string
	text  string
	given bool
}

func (f *textFlag) Set(s string) error { f.text, f.given = s, true; return nil }

func (f *textFlag) String() string { return f.text }

func (f *textFlag) Type() string { return f.kind }
