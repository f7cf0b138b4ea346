package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"exchange/config"
)

const serveHelp = `Runs the exchange until it is told to stop (SIGTERM, SIGINT).

A value comes from a flag, else from an environment variable such as EXCHANGE_LISTEN, else from the
file of --config, else it is the default. ` + "`exchange config --help`" +
	` describes everything that can be
configured, ` + "`exchange config example`" + ` prints a file to start from.

On a store that others can reach (Redis) one exchange serves, and each further one is a standby: it
waits until the owner has stopped or shows no sign of life. With --take-over it takes the store at
once, which ends the other one, and opens timing.owner_stale_ms later.

A start is refused as long as there are API keys whose secrets no secret key opens (exchange.key,
and retired ones beside it). If their secret key is lost for good, --revoke-lost-keys revokes these
API keys, mails their owners, makes an exchange.key if there is none, and serves.

The data folder knows which store and which archive it has served with. If an empty one is in their
place, mostly because a disk is not mounted, the start ends with 75 and makes nothing: a supervisor
tries again until the disk is there. With --new a new one begins there. A store with another history
is refused with 64. A missing folder above a configured one ends a start with 75, too, unless --new
is given or the path is below ./data.

With --node and --nodes it is one of several nodes that keep one journal together, see
` + "`exchange cluster --help`" + `. With --node, --observer and --follow it serves from what such nodes
have, without a store and without a vote.`

func (p *program) serveCommand() *cobra.Command {
	var given sources
	var once thisStart
	c := &cobra.Command{
		Use:   "serve [--config FILE | --demo]",
		Short: "Run the exchange",
		Long:  serveHelp,
		Args:  takes(),
		RunE: run(func(ctx context.Context, _ []string) error {
			cfg, err := p.load(&given)
			if err != nil {
				return err
			}
			if once.takeOver && cfg.Cluster.On() {
				return usage("--take-over is for a store that others can reach: the nodes of a " +
					"cluster agree themselves; see exchange cluster transfer")
			}
			if once.revokeLost && cfg.Cluster.Observer {
				return usage("--revoke-lost-keys is for a process that has the secret key: an " +
					"observer has none")
			}
			signal.Ignore(syscall.SIGPIPE) // the log's reader may end
			lines, level := newLineWriter(p.stderr), new(slog.LevelVar)
			p.stderr = lines
			slog.SetDefault(newLogger(lines, cfg.Log, level))
			p.logsEnd = cfg.Log.Format == "json"
			for _, name := range cfg.Ignored {
				slog.Warn("an environment variable names no option and is ignored", "name", name)
			}
			load := func() (*config.Config, error) { return p.load(&given) }
			return serve(ctx, cfg, rereading{load, level}, lines, once)
		}),
	}
	given.register(c.Flags())
	c.Flags().BoolVar(&once.takeOver, "take-over", false,
		"this once, take a shared store from an exchange that may still run")
	c.Flags().BoolVar(&once.revokeLost, "revoke-lost-keys", false,
		"this once, revoke the API keys whose secrets no secret key opens, and mail their owners")
	c.Flags().BoolVar(&once.anew, "new", false,
		"this once, begin a new store or archive where an empty one is in the place of a known one")
	return c
}

// thisStart is what an operator asks of one start, and no configuration has.
type thisStart struct {
	takeOver   bool // takes the store of an exchange that may still run
	revokeLost bool // revokes the API keys that no secret key opens
	anew       bool // begins a store or an archive anew that the data folder knows
}

func (p *program) configCommand() *cobra.Command {
	example := &cobra.Command{
		Use:   "example",
		Short: "Print a sample configuration file",
		Args:  takes(),
		RunE: run(func(context.Context, []string) error {
			_, err := io.WriteString(p.stdout, config.Example())
			return err
		}),
	}
	var given sources
	check := &cobra.Command{
		Use:   "check [--config FILE]",
		Short: "Check what `serve` would use, and say what is wrong with it",
		Long: "Reads the configuration as `serve` would, with the same flags and environment, " +
			"and says all that is wrong with it, and with the files and folders that it " +
			"names. It does not look at the store. 75: a folder is missing, as of a disk that is " +
			"not mounted.",
		Args: takes(),
		RunE: run(func(context.Context, []string) error {
			cfg, err := p.load(&given)
			if err == nil {
				err = refusals(newKnown(cfg, false, slog.New(slog.DiscardHandler)))
			}
			if err != nil {
				return err
			}
			if p.json {
				return printJSON(p.stdout, map[string]any{"ok": true, "summary": cfg.Summary()})
			}
			for _, name := range cfg.Ignored {
				fmt.Fprintf(p.stderr,
					"exchange: the environment variable %s names no option and is ignored\n", name)
			}
			_, err = fmt.Fprintf(p.stdout, "The configuration is good: %s\n", cfg.Summary())
			return err
		}),
	}
	given.register(check.Flags())
	c := group("config", "Print, check, reload or apply a configuration", example, check,
		p.commandOf(&configReloadVerb), p.configApplyCommand())
	c.Long = "Everything that `exchange serve` can be told, by its key in the YAML file.\n\n" +
		config.Reference()
	return c
}

// sources has the values of the flags of `serve`.
type sources struct {
	file  string
	flags map[string]*textFlag // by key of the option
}

func (s *sources) register(fs *pflag.FlagSet) {
	fs.StringVar(&s.file, "config", "", "configuration file (default $EXCHANGE_CONFIG)")
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

// load makes the configuration. A wrong one exits with exitUsage.
func (p *program) load(s *sources) (*config.Config, error) {
	given := maps.Collect(func(yield func(string, string) bool) {
		for key, f := range s.flags {
			if f.given && !yield(key, f.text) {
				return
			}
		}
	})
	cfg, err := config.Load(config.Sources{File: s.file, Environ: p.environ, Flags: given})
	return cfg, withExit(exitUsage, err)
}

// A textFlag takes any text: the configuration checks it, so that all problems are told at once.
type textFlag struct {
	kind  string
	text  string
	given bool
}

func (f *textFlag) Set(s string) error { f.text, f.given = s, true; return nil }
func (f *textFlag) String() string     { return f.text }
func (f *textFlag) Type() string       { return f.kind }

// newLogger writes the program's log. It sets the level, which can be changed later.
func newLogger(w io.Writer, c config.Log, level *slog.LevelVar) *slog.Logger {
	level.Set(logLevel(c.Level))
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// logLevel reads a level of the configuration.
func logLevel(name string) (level slog.Level) {
	if err := level.UnmarshalText([]byte(name)); err != nil {
		panic("BUG: the level of the log was not checked: " + err.Error())
	}
	return level
}
