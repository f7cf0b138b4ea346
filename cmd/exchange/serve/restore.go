package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"exchange/actors/seal"
	"exchange/cmd/exchange/cli"
	"exchange/config"
	"exchange/core/state"
	"exchange/persistence"
	"exchange/persistence/backup"
	"exchange/persistence/folder"
	"exchange/persistence/redis"
	"exchange/persistence/replicated"
)

// The command that fills an empty store from a backup, while no server runs.

type restoreAnswer struct {
	Store    string    `json:"store"`
	File     string    `json:"file"`
	Of       int       `json:"of"` // backups in the folder
	Sequence uint64    `json:"sequence"`
	Taken    time.Time `json:"taken"`
	Accounts int       `json:"accounts"`
	Rows     int       `json:"rows"`
	// Node is the only node of the new cluster; "": the exchange runs alone.
	Node string `json:"node,omitempty"`
	// Authenticated is true if the backup was found to be written under the server's key, and
	// unchanged.
	Authenticated bool `json:"authenticated"`
	// SecretKey is the state of the key that the API secrets are sealed with: "there", "missing",
	// "another", or "unneeded".
	SecretKey string `json:"secret_key"`
}

const restoreHelp = `Fills the configured store from a backup of ` +
	"`exchange backup`" + `: a file, or the newest in a folder: of
one history the one with the highest sequence, of several histories the last one taken. The store
must be empty, and may be of another kind than the one that was backed up. No server may be running
on it.

The server's secret key (exchange.key, which was kept apart) must be in its file first, or in the
environment: a key derived from it authenticates the backup. A key that was retired from the file
counts too, in its own file beside it or as a further line. All of the backup must be authentic before
anything is written, and again before the store can be served. An old backup is as authentic as a new
one: the output names the time of the backup.

--without-authentication restores without that proof. A writer of the file then decides which account
owns what, and which withdrawals are pending: only for a backup whose key is lost, and that no one else
could have changed. Its API keys do not work without the key.

The backup is verified as a whole before anything is written. If the restore fails after that, the
store is partly filled, and the exchange does not start on it: empty it and restore again.

With --node NAME, the exchange continues as a cluster, whose only node is this one at first; the
others join it empty. It needs cluster.nodes, and the cluster.folder of exchange cluster init.

The folders of --data and --store are made if they are missing, and none above them.

The store is found as ` +
	"`exchange serve`" + ` finds it, by the same flags, variables and configuration
file.`

func (p *Commands) restoreCommand() *cobra.Command {
	var given cli.Sources
	var without bool
	c := &cobra.Command{
		Use:   "restore DIR|FILE",
		Short: "Fill an empty store from a backup",
		Long:  restoreHelp,
		Args:  cli.Takes("DIR|FILE"),
		RunE: cli.Run(func(ctx context.Context, args []string) error {
			cfg, err := p.Load(&given)
			if err != nil {
				return err
			}
			for _, name := range cfg.Ignored {
				fmt.Fprintf(p.Stderr,
					"exchange: the environment variable %s names no option and is ignored\n", name)
			}
			file, of, err := p.findBackup(args[0])
			if err != nil {
				return err
			}
			return p.restore(ctx, cfg, file, of, without)
		}),
	}
	given.Register(c.Flags())
	c.Flags().BoolVar(&without, "without-authentication", false,
		"restore without proof that the exchange wrote the backup: see --help")
	return c
}

// findBackup returns the file itself, or the newest backup in a folder and the number of backups.
func (p *Commands) findBackup(path string) (file string, of int, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", 0, cli.WithExit(cli.ExitUsage, fmt.Errorf("there is no backup: %w", err))
	}
	if !info.IsDir() {
		if info, err := describe(path); err == nil { // its faults are reported later
			p.warnOfFuture([]foundBackup{{path, info}}, time.Now())
		}
		return path, 1, nil
	}
	list, err := backupsIn(path)
	if err != nil {
		return "", 0, err
	}
	now := time.Now()
	p.warnOfFuture(list, now)
	return newest(list, now).file, len(list), nil
}

// A foundBackup is a backup and its description.
type foundBackup struct {
	file string
	info *backup.Info
}

// backupsIn returns all backups of a folder, which has at least one.
func backupsIn(path string) (list []foundBackup, err error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, cli.WithExit(cli.ExitUsage,
			fmt.Errorf("the folder of the backup cannot be read: %w", err))
	}
	for _, e := range entries {
		if !backup.IsFileName(e.Name()) {
			continue
		}
		name := filepath.Join(path, e.Name())
		info, err := describe(name)
		if err != nil {
			return nil, cli.WithExit(cli.ExitBroken,
				fmt.Errorf("%s: %w: if it is not the one to restore, name the file that is", name,
					err))
		}
		list = append(list, foundBackup{name, info})
	}
	if len(list) == 0 {
		return nil, cli.WithExit(cli.ExitUsage,
			fmt.Errorf("there is no backup in %s: it would be called exchange-SEQUENCE.backup",
				path))
	}
	return list, nil
}

func describe(name string) (*backup.Info, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return backup.Describe(f)
}

// newest returns the backup to restore. Within one history the sequence decides, because a clock
// may have been wrong. A restored exchange continues from a lower sequence in its own history. So
// of several histories it chooses the one with the last backup; a time in the future is wrong.
func newest(list []foundBackup, now time.Time) foundBackup {
	highest, last := map[string]foundBackup{}, map[string]time.Time{}
	for _, f := range list {
		h := f.info.History
		if best, ok := highest[h]; !ok || f.info.Sequence > best.info.Sequence {
			highest[h] = f
		}
		if at := f.info.Taken; at.After(last[h]) && !at.After(now) {
			last[h] = at
		}
	}
	return slices.MaxFunc(slices.Collect(maps.Values(highest)), func(a, b foundBackup) int {
		return cmp.Or(last[a.info.History].Compare(last[b.info.History]),
			cmp.Compare(a.info.Sequence, b.info.Sequence),
			strings.Compare(a.info.History, b.info.History))
	})
}

// warnOfFuture warns of backups whose descriptions have a time in the future.
func (p *Commands) warnOfFuture(list []foundBackup, now time.Time) {
	for _, f := range list {
		if f.info.Taken.After(now) {
			fmt.Fprintf(p.Stderr, "exchange: %s says that it was taken at %s, which is in the "+
				"future: a clock was wrong then, or this machine's is now\n", f.file,
				f.info.Taken.Format(time.RFC3339))
		}
	}
}

func (p *Commands) restore(ctx context.Context, cfg *config.Config, file string, backups int,
	without bool) error {
	cluster, err := clusterOf(&cfg.Cluster)
	if err != nil {
		return cli.WithExit(cli.ExitUsage, fmt.Errorf("%w; nothing was written", err))
	}
	if err := mayMakeFolders(cfg); err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return cli.WithExit(cli.ExitUsage, fmt.Errorf("the backup cannot be read: %w", err))
	}
	defer f.Close()
	g := p.Progress()
	defer g.Done()
	b, err := p.openBackup(cfg, f, without, g)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := cli.MakeFolder("the data folder", cfg.Data); err != nil {
		return err
	}
	held, err := holdFolder(cfg)
	if err != nil {
		return err
	}
	defer held.Release() //nolint:errcheck // the process's end frees it, too
	if there, err := replicated.Formed(cfg.Data); err != nil || there {
		return cli.WithExit(cli.ExitUsage, cmp.Or(err,
			fmt.Errorf("the folder %s is that of a cluster's "+
				"node; nothing was written: name an empty one", cfg.Data)))
	}
	log := newLogger(p.Stderr, config.Log{Level: "warn", Format: cfg.Log.Format},
		new(slog.LevelVar))
	store, err := openStore(ctx, cfg, redis.Options{Fill: true, Logger: log})
	if errors.Is(err, persistence.ErrCorrupt) && !errors.Is(err, persistence.ErrVersion) {
		return cli.WithExit(cli.ExitUsage, fmt.Errorf(
			"%w; nothing was written: if the store is what is damaged, name an empty one", err))
	}
	if err != nil {
		return startFailed(ctx, err)
	}
	heartbeat := persistence.Heartbeat{Check: config.Ms(cfg.Timing.OwnerCheckMs),
		Stale: config.Ms(cfg.Timing.OwnerStaleMs)}
	info, err := fill(ctx, &restoring{Store: store, heartbeat: heartbeat}, b, g)
	if err == nil && cfg.Cluster.On() {
		err = replicated.Found(cfg.Data, cluster, cfg.Cluster.Node, info.Sequence)
	}
	if err == nil {
		err = folder.Of(cfg.Data, log).Restored()
	}
	g.Done()
	if err != nil {
		return restoreFailed(store, err)
	}
	a := restoreAnswer{Store: store.String(), File: file, Of: backups, Sequence: info.Sequence,
		Taken: info.Taken, Accounts: info.Accounts, Authenticated: !without,
		SecretKey: p.keyFor(cfg, info), Node: cfg.Cluster.Node}
	for _, n := range info.Rows {
		a.Rows += n
	}
	return p.Print(&a, func(w *tabwriter.Writer) { a.write(w, cfg) })
}

// mayMakeFolders returns why the folders of the configuration cannot be made, before reading a long
// backup.
func mayMakeFolders(cfg *config.Config) error {
	store := cfg.PebbleFolder()
	if store == "" || filepath.Dir(filepath.Clean(store)) == filepath.Clean(cfg.Data) {
		return cli.MayMakeFolder(cfg.Data)
	}
	return cmp.Or(cli.MayMakeFolder(cfg.Data), cli.MayMakeFolder(store))
}

// clusterOf returns the id of the cluster that a restore makes; "": none.
func clusterOf(c *config.Cluster) (string, error) {
	switch {
	case !c.On():
		return "", nil
	case c.Observer:
		return "", cli.Usage("an observer keeps nothing that could be restored: name a node")
	}
	id, _, err := loadNode(c)
	return id, err
}

// fill restores an open backup into a store, which it closes.
func fill(ctx context.Context, store persistence.Store, b *backup.Backup,
	g *cli.Progress) (*backup.Info, error) {
	info, err := b.Load(ctx, store, func(rows int) {
		g.Show("%s rows restored",
			config.Thousands(rows))
	})
	return info, errors.Join(err, store.Close())
}

// openBackup reads a whole backup, which must be authentic, and opens it.
func (p *Commands) openBackup(cfg *config.Config, f *os.File, without bool,
	g *cli.Progress) (*backup.Backup, error) {
	refuse := func(code int, err error) (*backup.Backup, error) {
		return nil, cli.WithExit(code, fmt.Errorf("%s: %w; nothing was written", f.Name(), err))
	}
	keys, err := seal.Load(p.Env(config.EnvSecretKey), cfg.SecretKeyFile, false)
	var by persistence.Authority // nil: every backup is accepted
	switch {
	case without:
		fmt.Fprintf(p.Stderr,
			"exchange: WITHOUT AUTHENTICATION: nothing proves that the exchange wrote %s: "+
				"a writer of the file has decided which account owns what\n", f.Name())
	case err != nil:
		return refuse(cli.ExitUsage, fmt.Errorf(
			"it is authenticated under the server's secret key, and %w: %s", err, bringKey(cfg)))
	default:
		by = keys
		if err := authenticate(f, by, g); errors.Is(err, persistence.ErrNoKey) {
			return refuse(cli.ExitUsage, fmt.Errorf("it is %w; there is %s: %s", err,
				keys, bringKey(cfg)))
		} else if err != nil {
			return refuse(cli.ExitBroken, err)
		}
	}
	b, err := verified(f, by, g)
	if err == nil && keys != nil {
		if err = boundKeys(b.State(), keys); err != nil {
			b.Close()
		}
	}
	if err != nil {
		return refuse(cli.ExitBroken, err)
	}
	return b, nil
}

func authenticate(f *os.File, by persistence.Authority, g *cli.Progress) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return backup.Authenticate(g.Reader(f, "%s authenticated"), by)
}

// verified reads a whole backup, and opens it.
func verified(f *os.File, by persistence.Authority, g *cli.Progress) (*backup.Backup, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if _, err := backup.Verify(g.Reader(f, "%s verified"), by); err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return backup.Open(f, by)
}

// boundKeys opens the seal of each API key, which is bound to its account and rights, as the first
// start would. If a server key is missing, that start refuses its keys.
func boundKeys(s *state.State, keys *seal.Sealer) error {
	for _, k := range s.Keys() {
		if k.Revoked {
			continue
		}
		_, err := keys.Open(k.Sealed, k.SealedBy, k.Bound())
		if err != nil && !errors.Is(err, seal.ErrOtherKey) {
			err = fmt.Errorf("key %s of account %s: %w", k.Key.Key, s.Account(k.Account).Name, err)
			if other := persistence.Unreadable(err); errors.Is(other, persistence.ErrVersion) {
				return other
			}
			return fmt.Errorf("%w: %w", backup.ErrDamaged, err)
		}
	}
	return nil
}

func restoreFailed(store persistence.Store, err error) error {
	if errors.Is(err, backup.ErrNotEmpty) {
		return cli.WithExit(cli.ExitUsage, fmt.Errorf(
			"%w; nothing was written to %s: name an empty store, or empty this one if nothing in "+
				"it is needed", err, store))
	}
	if errors.Is(err, persistence.ErrHeld) {
		return cli.WithExit(cli.ExitUnavailable, fmt.Errorf(
			"%w; nothing was written to %s: stop what uses it, or name another store", err, store))
	}
	code := cli.ExitUnavailable
	if errors.Is(err, backup.ErrDamaged) || errors.Is(err, persistence.ErrVersion) {
		code = cli.ExitBroken // it has changed since it was verified
	}
	return cli.WithExit(code,
		fmt.Errorf(
			"%w; %s may be partly filled, and no exchange starts on it then: empty it before "+
				"the next try", err, store))
}

// keyFor reports whether the server's secret key is the needed one.
func (p *Commands) keyFor(cfg *config.Config, info *backup.Info) string {
	if len(info.SealedBy) == 0 {
		return "unneeded"
	}
	key, err := seal.Load(p.Env(config.EnvSecretKey), cfg.SecretKeyFile, false)
	if err != nil {
		return "missing"
	}
	for _, text := range info.SealedBy {
		if id, err := strconv.ParseUint(text, 16, 64); err != nil || !key.Opens(id) {
			return "another"
		}
	}
	return "there"
}

func (a *restoreAnswer) write(w *tabwriter.Writer, cfg *config.Config) {
	from := a.File
	if a.Of > 1 {
		from += fmt.Sprintf(", the newest of %d", a.Of)
	}
	fmt.Fprintf(w, "restored\t%s\nfrom\t%s\ntaken\t%s\nsequence\t%d\naccounts\t%d\nrows\t%d\n",
		a.Store, from, a.Taken.Format(time.RFC3339), a.Sequence, a.Accounts, a.Rows)
	if a.Authenticated {
		fmt.Fprintln(w,
			"authenticated\tyes: written under the server's key, and unchanged; that it is the "+
				"newest backup nothing proves")
	} else {
		fmt.Fprintln(w,
			"authenticated\tNO: a writer of the file has decided which account owns what")
	}
	fmt.Fprintln(w, "\nNext:")
	fmt.Fprintf(w, "- inform your clients: everything acknowledged after %s is gone\n",
		a.Taken.Format(time.RFC3339))
	switch a.SecretKey {
	case "missing", "another":
		fmt.Fprintf(w, "- the secret key in %s is %s: %s\n", cfg.SecretKeyFile, a.SecretKey,
			lostKeyHelp)
	}
	if parts, err := os.ReadDir(cfg.Archive); cfg.Archive != "" && err == nil && len(parts) > 0 {
		fmt.Fprintf(w,
			"- name an empty folder as archive, where one begins with this backup's state: that "+
				"in %s belongs to what was before; keep it\n", cfg.Archive)
	}
	if !strings.HasPrefix(a.Store, "pebble:") {
		fmt.Fprintln(w,
			"- on each other host that has served from this store, remove HEAD.redis and "+
				"owner.id from the data folder: they record data that is gone")
	}
	fmt.Fprintln(w, "- start the exchange with this configuration: exchange serve")
	if a.Node != "" {
		fmt.Fprintf(w, "- it is node %s, and leads alone: let the other nodes join it with empty "+
			"folders, because one disk tolerates no failure\n", a.Node)
	}
	fmt.Fprintln(w, "- compare its books: exchange audit")
	fmt.Fprintln(w,
		"- codes that were mailed for withdrawals before have expired then: an owner's first try "+
			"has a new one mailed, and costs no try")
}
