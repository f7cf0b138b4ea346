package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"exchange/actors/seal"
	"exchange/cmd/exchange/cli"
	"exchange/config"
)

const secretKeyHelp = `Changes the server's secret key, under which API secrets are sealed, in its file (exchange.key):

  exchange secret-key rotate     puts a new key first; restart the exchange, which then seals all
                                 API secrets with it
  exchange secret-key retire     moves the other keys to files beside it, because older backups need
                                 them. The running exchange keeps them until it is restarted.

Codes of withdrawals that were mailed under a key are valid as long as the exchange has it: so retire it
later than timing.code_valid_ms (up to 7 days) after the restart. But a thief of a key can make codes
with it until it is retired and the exchange restarted. After a theft do it all at once (rotate,
restart, retire, restart): codes that were mailed before are then wrong.

The file is found as ` +
	"`exchange serve`" + ` finds it, by the same flags, variables and configuration file.
--data DIR without a configuration is enough for the usual file in that folder. The exchange reads the
file when it starts. If EXCHANGE_SECRET_KEY holds the key, put a new one before it there, with a blank
between.`

// secretKeyAnswer is the output of the commands about the server's key. Keys are named by their
// ids.
type secretKeyAnswer struct {
	File    string   `json:"file"`
	Keys    []string `json:"keys"` // the first one seals
	Retired []string `json:"retired"`
}

func (p *Commands) secretKeyCommand() *cobra.Command {
	command := func(use, short string, do func(a *secretKeyAnswer) error,
		next string) *cobra.Command {
		var given cli.Sources
		c := &cobra.Command{
			Use:   use,
			Short: short,
			Args:  cli.Takes(),
			RunE: cli.Run(func(context.Context, []string) error {
				file, err := p.secretKeyFile(&given)
				if err != nil {
					return err
				}
				if p.Env(config.EnvSecretKey) != "" {
					return cli.WithExit(cli.ExitUsage, fmt.Errorf(
						"%s holds the server's key, so no file is used: change it there",
						config.EnvSecretKey))
				}
				a := &secretKeyAnswer{File: file, Retired: []string{}}
				if _, err := seal.Load("", file, false); err != nil { // before anything is done
					return secretKeyFailed(err)
				}
				if err := do(a); err != nil {
					return secretKeyFailed(err)
				}
				s, err := seal.Load("", file, false)
				if err != nil {
					return secretKeyFailed(err)
				}
				for _, id := range s.IDs() {
					a.Keys = append(a.Keys, fmt.Sprintf("%016x", id))
				}
				return p.Print(a, func(w *tabwriter.Writer) { a.write(w, next) })
			}),
		}
		given.Register(c.Flags())
		return c
	}
	c := cli.Group("secret-key", "Show or rotate the server's secret key",
		command("show", "Name the keys in the file by their ids",
			func(*secretKeyAnswer) error { return nil }, ""),
		command("rotate", "Put a new key in front", func(a *secretKeyAnswer) error {
			_, err := seal.Rotate(a.File)
			return err
		},
			"Copy the file to another place, and restart the exchange: it seals all API secrets "+
				"with the first key. When timing.code_valid_ms is over since then (at once if a "+
				"key was stolen), `exchange secret-key retire` takes the others out."),
		command("retire", "Take all keys but the first out of the file",
			func(a *secretKeyAnswer) error {
				retired, err := seal.Retire(a.File)
				a.Retired = append([]string{}, retired...)
				return err
			},
			"The exchange that runs keeps the old keys, and takes codes of withdrawals made with "+
				"them, until it is restarted: restart it. After a theft keep the retired files "+
				"in another place after that: what is sealed with a key still opens as long as "+
				"its file is there."))
	c.Long = secretKeyHelp
	return c
}

// secretKeyFile finds the file. If --data names the folder, and there is no configuration, the file
// is the usual one in it.
func (p *Commands) secretKeyFile(given *cli.Sources) (string, error) {
	folder, data := given.Given("data")
	_, file := given.Given("secret_key_file")
	if data && folder != "" && !file && given.File == "" && p.Env("EXCHANGE_CONFIG") == "" &&
		p.Env("EXCHANGE_SECRET_KEY_FILE") == "" {
		return filepath.Join(folder, config.SecretKeyName), nil
	}
	cfg, err := p.Load(given)
	if err != nil {
		return "", err
	}
	return cfg.SecretKeyFile, nil
}

func (a *secretKeyAnswer) write(w *tabwriter.Writer, next string) {
	fmt.Fprintf(w, "file\t%s\n", a.File)
	for i, id := range a.Keys {
		fmt.Fprintf(w, "key\t%s\t%s\n", id, cli.Either(i == 0, "seals and opens", "opens"))
	}
	for _, name := range a.Retired {
		fmt.Fprintf(w, "retired\t%s\n", name)
	}
	if next != "" {
		fmt.Fprintf(w, "\n%s\n", next)
	}
}

// secretKeyFailed gives an error of the file its exit code. The file is unchanged.
func secretKeyFailed(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; `exchange serve` makes it at its first start", err)
	}
	return cli.WithExit(cli.ExitUsage, err)
}
