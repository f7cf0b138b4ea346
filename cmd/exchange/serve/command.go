package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"exchange/cmd/exchange/cli"
	"exchange/config"
)

// Commands are the commands of this machine: they start a process, or change its files.
type Commands struct{ *cli.Program }

// New returns the commands of a run of the command line.
func New(p *cli.Program) *Commands { return &Commands{p} }

// TopLevel returns the commands without a group.
func (p *Commands) TopLevel() []*cobra.Command {
	return []*cobra.Command{p.serveCommand(), p.restoreCommand(), p.secretKeyCommand()}
}

const serveHelp = `Runs the exchange until it is stopped (SIGTERM, SIGINT).

A value comes from a flag, else from an environment variable such as EXCHANGE_LISTEN, else from the
file of --config, else it is the default. ` +
	"`exchange config --help`" + ` describes every option,
` +
	"`exchange config example`" + ` prints a file to start from.

On a store that others can reach (Redis) one exchange serves, and each further one is a standby: it
waits until the owner has stopped or its heartbeat is missing. With --take-over it takes the store at
once, which ends the other one, and opens timing.owner_stale_ms later.

A start is refused while there are API keys whose secrets no secret key opens (exchange.key, and
retired ones beside it). If their secret key is permanently lost, --revoke-lost-keys revokes these
API keys, mails their owners, makes an exchange.key if there is none, and serves.

The data folder records which store and which archive it has served with. If one of them is empty,
mostly because a disk is not mounted, the start ends with 75 and creates nothing: a supervisor tries
again until the disk is mounted. With --new a new one begins there. A store with another history is
refused with 64. If the parent of a configured folder is missing, the start ends with 75, too, unless
--new is given or the path is below ./data.

With --node and --nodes it is one of several nodes that keep one journal together, see
` +
	"`exchange cluster --help`" + `. With --node, --observer and --follow it serves the data of such nodes,
without a store and without a vote.`

func (p *Commands) serveCommand() *cobra.Command {
	var given cli.Sources
	var once thisStart
	c := &cobra.Command{
		Use:   "serve [--config FILE | --demo]",
		Short: "Run the exchange",
		Long:  serveHelp,
		Args:  cli.Takes(),
		RunE: cli.Run(func(ctx context.Context, _ []string) error {
			cfg, err := p.Load(&given)
			if err != nil {
				return err
			}
			if once.takeOver && cfg.Cluster.On() {
				return cli.Usage(
					"--take-over is for a store that others can reach: the nodes of a " +
						"cluster agree themselves; see exchange cluster transfer")
			}
			if once.revokeLost && cfg.Cluster.Observer {
				return cli.Usage(
					"--revoke-lost-keys is for a process that has the secret key: an " +
						"observer has none")
			}
			signal.Ignore(syscall.SIGPIPE) // the log's reader may end
			lines, level := newLineWriter(p.Stderr), new(slog.LevelVar)
			p.Stderr = lines
			slog.SetDefault(newLogger(lines, cfg.Log, level))
			p.LogsEnd = cfg.Log.Format == "json"
			for _, name := range cfg.Ignored {
				slog.Warn("an environment variable names no option and is ignored", "name", name)
			}
			load := func() (*config.Config, error) { return p.Load(&given) }
			return serve(ctx, cfg, rereading{load, level}, lines, once)
		}),
	}
	given.Register(c.Flags())
	c.Flags().BoolVar(&once.takeOver, "take-over", false,
		"this once, take a shared store from an exchange that may still run")
	c.Flags().BoolVar(&once.revokeLost, "revoke-lost-keys", false,
		"this once, revoke the API keys whose secrets no secret key opens, and mail their owners")
	c.Flags().BoolVar(&once.beginNew, "new", false,
		"this once, begin a new store or archive where an empty one is in the place of a known one")
	return c
}

// thisStart holds the options of one start that are not in the configuration.
type thisStart struct {
	takeOver   bool // takes the store of an exchange that may still run
	revokeLost bool // revokes the API keys that no secret key opens
	beginNew   bool // begins a new store or archive in place of a missing known one
}

// OfConfig returns the commands of the group config.
func (p *Commands) OfConfig() []*cobra.Command {
	example := &cobra.Command{
		Use:   "example",
		Short: "Print a sample configuration file",
		Args:  cli.Takes(),
		RunE: cli.Run(func(context.Context, []string) error {
			_, err := io.WriteString(p.Stdout, config.Example())
			return err
		}),
	}
	var given cli.Sources
	check := &cobra.Command{
		Use:   "check [--config FILE]",
		Short: "Check the configuration of `serve`, and report its faults",
		Long: "Reads the configuration as `serve` would, with the same flags and environment, " +
			"and reports all faults of it, and of the files and folders that " +
			"it names. It does not look at the store. 75: a folder is missing, as of a disk that " +
			"is not mounted.",
		Args: cli.Takes(),
		RunE: cli.Run(func(context.Context, []string) error {
			cfg, err := p.Load(&given)
			if err == nil {
				err = refusals(newKnown(cfg, false, slog.New(slog.DiscardHandler)))
			}
			if err != nil {
				return err
			}
			if p.JSON {
				return cli.PrintJSON(p.Stdout, map[string]any{"ok": true, "summary": cfg.Summary()})
			}
			for _, name := range cfg.Ignored {
				fmt.Fprintf(p.Stderr,
					"exchange: the environment variable %s names no option and is ignored\n", name)
			}
			_, err = fmt.Fprintf(p.Stdout, "The configuration is good: %s\n", cfg.Summary())
			return err
		}),
	}
	given.Register(check.Flags())
	return []*cobra.Command{example, check}
}

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
