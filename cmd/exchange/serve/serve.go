package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/owner"
	"exchange/actors/seal"
	"exchange/cmd/exchange/cli"
	"exchange/cmd/exchange/hangup"
	"exchange/config"
	"exchange/core/state"
	"exchange/gateway"
	"exchange/gateway/edge"
	"exchange/gateway/listen"
	"exchange/persistence"
	"exchange/persistence/archive"
	"exchange/persistence/folder"
	"exchange/persistence/pebble"
	"exchange/persistence/redis"
	"exchange/persistence/replicated"
)

// serve runs the exchange until ctx ends, which is an order to stop, or until the exchange cannot
// continue. The error carries the exit code.
func serve(ctx context.Context, cfg *config.Config, from rereading, lines *lineWriter,
	once thisStart) error {
	log := slog.Default()
	build := cli.BuildVersion()
	log.Info("exchange starts", "version", build.Version, "commit", build.Commit, "pid",
		os.Getpid(), "configuration", cfg.Summary())
	known := newKnown(cfg, once.beginNew, log)
	held, err := holdData(known)
	if err != nil {
		return err
	}
	defer held.Release() //nolint:errcheck // the process's end frees it, too
	secret, err := tokens(cfg)
	if err != nil {
		return failf(cli.SystemCode(err), "%v", err)
	}
	certified, err := certificates(cfg, log)
	if err != nil {
		return failf(cli.ExitUsage, "TLS: %v", err)
	}
	open, err := openListeners(cfg, log)
	if err != nil {
		return err
	}
	defer open.close()
	warnOfDust(cfg, log)
	at := newClusterView(cfg, log)
	renewed := newRenewal(cfg, from, at, log)
	if err := fitMachine(cfg, log); err != nil {
		return err
	}
	o := gatewayOptions(cfg, log)
	o.Reload, o.LogLost = renewed, lines.Lost
	if at != nil {
		o.Cluster = at
	}
	o.Tasks, o.Folders = tasksIn(cfg.Data, log), writtenFolders(cfg)
	o.OperatorToken, o.MetricsToken = secret.operator, secret.metrics
	o.Certificate, o.OperatorCertificate, o.MetricsCertificate =
		certified.public, certified.operator, certified.metrics
	var archived *archive.Archive
	if cfg.Archive != "" {
		if archived, err = known.openArchive(); err != nil {
			return err
		}
		o.Archive = auditable{archived, cfg}
	}
	g := gateway.New(o)
	served := open.serve(g)
	defer g.Shutdown(lastAnswers)
	renewed.gateway, renewed.tokens, renewed.certificates = g, secret, certified.all()
	renewing, cancel := context.WithCancel(ctx)
	defer cancel()
	go renewed.run(renewing, hangup.Asked)
	if cfg.Cluster.Observer {
		return serveObserver(ctx, cfg, g, at, open, served)
	}
	if at != nil {
		return serveNode(ctx, known, once, archived, g, at, open, served)
	}
	return serveSingle(ctx, known, once, archived, renewed, open, served)
}

// serveSingle runs an exchange on one machine. archived is nil if nothing is archived.
func serveSingle(ctx context.Context, known *knownData, once thisStart, archived *archive.Archive,
	renewed *renewal, open *listeners, served <-chan error) error {
	cfg, log, g := known.cfg, slog.Default(), renewed.gateway
	if there, err := replicated.Formed(cfg.Data); err != nil || there {
		return cli.WithExit(cli.ExitUsage, cmp.Or(err,
			fmt.Errorf("the folder %s is that of a cluster's "+
				"node: set cluster.node, or name another folder", cfg.Data)))
	}
	store, err := known.openStore(ctx)
	if err != nil {
		return startFailed(ctx, err)
	}
	defer closeStore(store, log)
	d := newDemo(cfg)
	var waited atomic.Bool // for another serving process
	engine, err := startEngine(ctx, known, once, store, archived, func(owner string) {
		waited.Store(waited.Load() || owner != "")
		g.SetStandby(owner)
	}, &d)
	if err != nil || engine == nil {
		return err
	}
	stopDemo, err := d.start(ctx, engine)
	if err != nil && ctx.Err() == nil {
		return startFailed(ctx, fmt.Errorf("filling the demo: %w",
			errors.Join(err, engine.Err())))
	}
	defer stopDemo()
	renewed.engine.Store(engine)
	if waited.Load() { // meanwhile fees and limits of the file may have changed, here as there
		if _, err := renewed.Reload(ctx); err != nil {
			log.Warn("this standby serves with the configuration of its start", "error", err)
		}
	}
	g.SetEngine(engine)
	open.logReady(log)
	d.show(open.public.Addr().String())
	return untilStopped(ctx, cfg, log, engine, g, served)
}

// fitMachine bounds connections and memory by the machine's limits, and sets the processors.
func fitMachine(cfg *config.Config, log *slog.Logger) (err error) {
	warned := log
	if cfg.Demo && cfg.Limits.Connections == config.Default().Limits.Connections {
		warned = slog.New(slog.DiscardHandler) // a demo has few clients
	}
	if cfg.Limits.Connections, err = affordable(cfg.Limits.Connections, warned); err != nil {
		return failf(cli.ExitUsage, "%v", err)
	}
	limitMemory(memlimit.FromCgroup, log)
	if cfg.PebbleFolder() != "" {
		addProcessors(log)
	}
	return nil
}

// startEngine starts the engine on the store. archived is nil if nothing is archived. The engine is
// nil, without an error, if a standby was stopped.
func startEngine(ctx context.Context, known *knownData, once thisStart, store persistence.Store,
	archived *archive.Archive, standsBy func(owner string), d *demo) (*actors.Engine, error) {
	cfg, log := known.cfg, slog.Default()
	options := engineOptions(cfg, store, log)
	options.Histories, options.NewExchange = known.store, known.beginNew
	options.TakeOver, options.RevokeLost = once.takeOver, once.revokeLost
	options.StandsBy = standsBy
	if archived != nil {
		// Otherwise nothing could ever be archived, and so nothing trimmed.
		if err := archived.Fits(ctx, store); err != nil {
			return nil, archiveUnfit(ctx, err)
		}
		if err := known.fits(archived); err != nil {
			return nil, archiveUnfit(ctx, err)
		}
		options.Archive = known.save(archived)
	}
	if err := withMail(cfg, log, &options); err != nil {
		return nil, err
	}
	options.Check = demoCheck(cfg)
	d.prepare(&options)
	engine, err := start(ctx, options)
	if err != nil {
		return nil, startFailed(ctx, err)
	}
	return engine, nil
}

func start(ctx context.Context, o actors.Options) (*actors.Engine, error) {
	defer collectRarely()()
	return actors.Start(ctx, o)
}

// holdData makes the data folder, if the start may, and locks it for this process.
func holdData(k *knownData) (*folder.Lock, error) {
	if err := refusals(k); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(k.cfg.Data, 0o700); err != nil {
		return nil, failf(cli.SystemCode(err), "the data folder cannot be made: %v", err)
	}
	return holdFolder(k.cfg)
}

// holdFolder locks the data folder for this process. Files of another program version there, or in
// the store's folder, are refused before anything is written.
func holdFolder(cfg *config.Config) (*folder.Lock, error) {
	if err := readable(cfg); err != nil {
		return nil, startFailed(context.Background(), err)
	}
	held, err := folder.Hold(cfg.Data)
	switch {
	case errors.Is(err, persistence.ErrLocked):
		return nil, failf(cli.ExitUnavailable, "%v", err)
	case err != nil:
		return nil, failf(cli.SystemCode(err), "%v", err)
	}
	return held, nil
}

// readable returns the error of files from another version of the program.
func readable(cfg *config.Config) error {
	if cfg.Cluster.Observer {
		return nil
	}
	if err := replicated.Readable(cfg.Data); err != nil {
		return err
	}
	if dir := cfg.PebbleFolder(); dir != "" {
		return pebble.Readable(dir)
	}
	return redis.Readable(filepath.Join(cfg.Data, redis.HeadFile))
}

// Names of the listeners.
const (
	publicListener   = "the API"
	operatorListener = "the operator's listener"
	operatorSocket   = "the operator's socket"
	metricsListener  = "the metrics' listener"
)

// cannotListen is a listener's error. A taken address may be free soon: the previous process may
// still be ending.
func cannotListen(who string, err error) error {
	return failf(cli.SystemCode(err), "%s cannot listen: %v", who, err)
}

// lastAnswers bounds the time for pending answers at the end.
const lastAnswers = 2 * time.Second

// closeStore bounds its wait, because a store that hangs must not keep the process.
func closeStore(store persistence.Store, log *slog.Logger) {
	done := make(chan error, 1)
	go func() { done <- store.Close() }()
	select {
	case err := <-done:
		if err != nil {
			log.Error("the store did not close", "error", err)
		}
	case <-time.After(lastAnswers):
		log.Error("the store does not close; the process ends without it, which is safe")
	}
}

// untilStopped waits for the order to stop and stops the exchange in order.
func untilStopped(ctx context.Context, cfg *config.Config, log *slog.Logger, engine *actors.Engine,
	g *gateway.Gateway, served <-chan error) error {
	select {
	case err := <-served:
		return listenerEnded(err)
	case <-engine.Dead():
		return engineFailed(engine.Err())
	case <-ctx.Done():
	}
	log.Info("stopping: no new requests, finishing those in flight", "at_most",
		config.Ms(cfg.Timing.StopMaxMs))
	stop, cancel := context.WithTimeout(context.Background(), config.Ms(cfg.Timing.StopMaxMs))
	defer cancel()
	if err := engine.Stop(stop); err != nil {
		if engine.Err() != nil {
			return engineFailed(engine.Err())
		}
		return failf(cli.ExitUnavailable, "stopped without a last snapshot, which is safe: %v", err)
	}
	g.Shutdown(lastAnswers)
	log.Info("stopped")
	return nil
}

// listenerEnded gives the end of a listener its exit code.
func listenerEnded(err error) error {
	if errors.Is(err, listen.ErrPlain) {
		return failf(cli.ExitUsage, "%v", err)
	}
	return failf(cli.ExitUnavailable, "a listener ended: %v", err)
}

// startFailed gives the error of a start its exit code.
func startFailed(ctx context.Context, err error) error {
	var coded *cli.ExitError
	switch {
	case errors.As(err, &coded) && ctx.Err() == nil:
		return err
	case errors.Is(err, owner.ErrStandby):
		slog.Info("stopped: this was a standby, and has changed nothing")
		return nil
	case ctx.Err() != nil:
		return failf(cli.ExitUnavailable, "stopped while starting")
	case errors.Is(err, seal.ErrOtherKey):
		return failf(cli.ExitUsage, "%v\nIt was refused so that nothing is lost: %s", err,
			lostKeyHelp)
	case errors.Is(err, persistence.ErrNotDurable), errors.Is(err, persistence.ErrUnsupported),
		errors.Is(err, persistence.ErrForeign), errors.Is(err, actors.ErrConfig),
		errors.Is(err, errConfig), errors.Is(err, replicated.ErrFolder):
		return failf(cli.ExitUsage, "%v", err)
	case errors.Is(err, persistence.ErrVersion), errors.Is(err, persistence.ErrFormat):
		return failf(cli.ExitBroken, "%v\nNothing was changed and nothing is served. "+
			"docs/operations/upgrade.md says how to upgrade and to roll back", err)
	case errors.Is(err, persistence.ErrCorrupt):
		return failf(cli.ExitBroken,
			"%v\nNothing was changed and nothing is served. Restore a backup of the store, or "+
				"ask for help with a copy of it; see docs/storage.md", err)
	}
	for _, lasting := range []error{fs.ErrPermission, fs.ErrInvalid, syscall.ENOTDIR, syscall.EROFS,
		syscall.ENAMETOOLONG} {
		if errors.Is(err, lasting) {
			return failf(cli.ExitUsage, "%v", err)
		}
	}
	return engineFailed(err)
}

// nodeFailed gives the error of the start of a cluster's node its exit code. No backup replaces the
// node's acknowledged records; the others hold them.
func nodeFailed(ctx context.Context, err error) error {
	if ctx.Err() == nil && errors.Is(err, persistence.ErrCorrupt) &&
		!errors.Is(err, persistence.ErrVersion) {
		return failf(cli.ExitBroken,
			"%v\nNothing is served by this node, and the others have what it "+
				"has acknowledged. Keep a copy of its folder, and replace the node; see "+
				"docs/operations/cluster.md", err)
	}
	return startFailed(ctx, err)
}

// archiveUnfit gives the reason why an archive is not continued from a store its exit code.
func archiveUnfit(ctx context.Context, err error) error {
	if errors.Is(err, archive.ErrOther) || errors.Is(err, persistence.ErrCorrupt) {
		return archiveFailed(err)
	}
	return startFailed(ctx, err)
}

// archiveFailed gives the error of an archive its exit code. The store is unaffected.
func archiveFailed(err error) error {
	switch {
	case errors.Is(err, archive.ErrOther):
		return failf(cli.ExitUsage,
			"%v\nName an empty folder and start once with --new: an archive begins there with the "+
				"state of now; or name the one that belongs to this store, or start without "+
				"archive", err)
	case errors.Is(err, persistence.ErrAbsent):
		return failf(cli.ExitUnavailable, "%v", err)
	case errors.Is(err, persistence.ErrVersion):
		return failf(cli.ExitBroken, "the archive: %v", err)
	case errors.Is(err, persistence.ErrCorrupt):
		return failf(cli.ExitBroken,
			"the archive: %v\nBring what is missing back from a copy of the folder, or start "+
				"without archive", err)
	}
	return failf(cli.SystemCode(err), "%v", err)
}

// engineFailed gives the end of an engine its exit code.
func engineFailed(err error) error {
	switch {
	case errors.Is(err, persistence.ErrFenced):
		return failf(cli.ExitFenced, "%v: this one serves no more; started again, it is a standby",
			err)
	case errors.Is(err, persistence.ErrRemoved):
		return failf(cli.ExitFenced, "%v", err)
	case errors.Is(err, persistence.ErrGap), errors.Is(err, persistence.ErrCorrupt),
		errors.Is(err, persistence.ErrInvalid), errors.Is(err, persistence.ErrFormat):
		return failf(cli.ExitBroken, "%v", err)
	}
	return failf(cli.ExitUnavailable, "%v", err)
}

// failf returns an error with an exit code.
func failf(code int, format string, args ...any) error {
	return cli.WithExit(code, fmt.Errorf(format, args...))
}

var errConfig = errors.New("the configuration does not fit")

// lostKeyHelp is the remedy when the key that API secrets are sealed with is missing.
const lostKeyHelp = "bring exchange.key back, or a retired one as exchange.key.ID beside it, or " +
	"give the key in " + config.EnvSecretKey + ". If it is permanently lost, `exchange serve " +
	"--revoke-lost-keys` revokes these API keys, mails their owners, and serves"

// startTimeout bounds the wait for a Redis that is absent or still loading.
const startTimeout = 30 * time.Second

// openStore opens the configured store to serve it.
func (k *knownData) openStore(ctx context.Context) (persistence.Store, error) {
	has, err := k.has(k.store)
	if err != nil {
		return nil, err
	}
	return openStore(ctx, k.cfg, redis.Options{MustExist: has, StartNew: k.beginNew, Logger: k.log})
}

// openStore opens the configured store. o are the options of a Redis for this use. The embedded
// store uses the common ones.
func openStore(ctx context.Context, cfg *config.Config, o redis.Options) (persistence.Store,
	error) {
	o.Retention, o.AcceptDurability = retention(cfg), cfg.AcceptRedisDurability
	o.Head = filepath.Join(cfg.Data, redis.HeadFile)
	if folder := cfg.PebbleFolder(); folder != "" {
		if err := noCopies(folder); err != nil {
			return nil, err
		}
		s, err := pebble.Open(folder,
			pebble.Options{Retention: o.Retention, Logger: o.Logger})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s, err := redis.Open(ctx, cfg.Store, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func retention(cfg *config.Config) (keep persistence.Retention) {
	keep.Trades, keep.Orders = cfg.Retention()
	keep.Candles = cfg.History.Candles
	return keep
}

func gatewayOptions(cfg *config.Config, log *slog.Logger) edge.Options {
	l, t := &cfg.Limits, &cfg.Timing
	o := edge.Options{Log: log, BodyBytes: l.BodyBytes, AnswersBytes: int64(l.AnswersBytes),
		HeaderBytes: l.HeaderBytes, Connections: l.Connections,
		ConnectionsPerAddress: l.ConnectionsPerAddress,
		IdleTimeout:           config.Ms(t.IdleTimeoutMs), ReadTimeout: config.Ms(t.ReadTimeoutMs),
		WriteTimeout: config.Ms(t.WriteTimeoutMs),
		Node:         cfg.Cluster.Node,
		RateEntries:  l.RateEntries, NoDocs: cfg.NoDocs, NoPages: cfg.NoPages,
		Contact:        cfg.Contact,
		TrustedProxies: cfg.TrustedProxies,
		Limits:         gatewayLimits(cfg)}
	if cfg.Demo {
		o.Demo, o.DemoMails = demoKeys(), demoMails(cfg)
	}
	o.DepositInstructions = depositInstructions(cfg)
	version := cli.BuildVersion()
	o.Build = edge.Build{Version: version.Version, Commit: version.Commit}
	return o
}

// rate returns a limit on requests; 0 a second: none.
func rate(perSecond, burst int) edge.Rate {
	if perSecond == 0 {
		return edge.Rate{}
	}
	return edge.Rate{PerSecond: perSecond, Burst: burst}
}

// gatewayLimits returns the gateway's limits of the market part.
func gatewayLimits(cfg *config.Config) (o edge.Limits) {
	l, s := &cfg.Limits, &cfg.Stream
	o.Stream = edge.StreamOptions{Connections: s.Connections,
		ConnectionsPerAddress: s.ConnectionsPerAddress,
		MessagesPerSecond:     s.MessagesPerSecond, QueueBytes: s.QueueBytes,
		Stall: config.Ms(s.StallMs), Interval: config.Ms(s.IntervalMs),
		BBOInterval: config.Ms(s.BBOIntervalMs), OrdersInFlight: s.OrdersInFlight,
		PingInterval: config.Ms(s.PingIntervalMs), PingTimeout: config.Ms(s.PingTimeoutMs)}
	if !cfg.NoRateLimits {
		o.PublicRate = rate(l.PublicRate, l.PublicBurst)
		o.ReadRate = rate(l.ReadRate, l.ReadBurst)
		o.CommandRate = rate(l.CommandRate, l.CommandBurst)
		o.CancelRate = rate(l.CancelRate, l.CancelBurst)
		o.FailureRate = rate(l.FailureRate, l.FailureBurst)
		o.ProbeRate, o.DocsRate = edge.DefaultProbeRate, edge.DefaultDocsRate
		o.WebRate = edge.DefaultWebRate
	}
	return o
}

// warnOfDust warns of each pair whose orders may be worth next to nothing. With the maximum of an
// account's orders, a few cents hold the memory of a book.
func warnOfDust(cfg *config.Config, log *slog.Logger) {
	for _, p := range cfg.Pairs {
		if p.MinimumOrderValue.IsZero() {
			log.Warn(
				"orders of this pair have no minimum value: a few cents can fill its book with "+
					"tiny orders; "+
					"set minimum_order_value", "pair", p.Name,
				"open_orders_per_account_and_book", cfg.Limits.OpenOrdersPerAccountAndBook)
		}
	}
}

func engineOptions(cfg *config.Config, store persistence.Store, log *slog.Logger) actors.Options {
	t := &cfg.Timing
	host, _ := os.Hostname()
	o := actors.Options{
		Store:     store,
		Identity:  folder.Of(cfg.Data, log),
		Retention: retention(cfg),
		Owner:     fmt.Sprintf("%s pid %d", host, os.Getpid()),
		Timing: actors.Timing{Request: config.Ms(t.RequestTimeoutMs), Stall: config.Ms(t.StallMs),
			StallMax:   config.Ms(t.StallMaxMs),
			OwnerCheck: config.Ms(t.OwnerCheckMs), OwnerStale: config.Ms(t.OwnerStaleMs),
			Projection: config.Ms(t.ProjectionMs)},
		Snapshot: committed.SnapshotPolicy{MinRecords: uint64(cfg.Snapshot.MinRecords),
			MaxRecords:  uint64(cfg.Snapshot.MaxRecords),
			MinInterval: config.Ms(t.SnapshotMinMs)},
		Sealer: func(sealed bool) (*seal.Sealer, error) {
			s, err := seal.Load(os.Getenv(config.EnvSecretKey), cfg.SecretKeyFile, !sealed)
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("there are sealed API secrets in the store, and %w: %s", err,
					lostKeyHelp)
			}
			if err != nil {
				return nil, fmt.Errorf("%w: %w", errConfig, keyOnDisk(cfg, err))
			}
			return s, nil
		},
		KeyMaterial: gateway.KeyMaterial,
		Log:         log,
		Exit:        os.Exit,
	}
	setMarket(cfg, &o)
	return o
}

// setMarket sets the market part of the options, and all limits. The gateway's share is in
// gatewayLimits.
func setMarket(cfg *config.Config, o *actors.Options) {
	l := &cfg.Limits
	o.Limits = actors.Limits{InFlight: l.InFlight, InFlightCancels: l.InFlightCancels,
		InFlightPerAccount: l.InFlightPerAccount, Reads: l.Reads,
		ReadsPerAccount: l.ReadsPerAccount,
		MaxFills:        l.MaxFills, OpenOrdersPerAccount: l.OpenOrdersPerAccount,
		OpenOrdersPerBook: l.OpenOrdersPerBook,

		OpenOrdersPerAccountAndBook: l.OpenOrdersPerAccountAndBook,

		StopsPerAccountAndBook: l.StopsPerAccount, StopsPerBook: l.StopsPerBook,
		GTDPerAccountAndBook: l.GTDPerAccount, GTDPerBook: l.GTDPerBook,
		TriggersInFlight: l.TriggersInFlight,

		PendingWithdrawals: l.PendingWithdrawals, KeysPerAccount: l.KeysPerAccount,
		Accounts: l.Accounts, FoldLag: l.FoldLag, ProjectionLag: l.ProjectionLag,
		BatchBytes: l.BatchBytes, Batch: l.Batch, OwnBytes: cfg.Stream.OwnBytes}
	o.Timing.SwitchGrace = config.Ms(cfg.Timing.SwitchGraceMs)
	o.Withdrawal = actors.WithdrawalPolicy{CodeValid: config.Ms(cfg.Timing.CodeValidMs),
		CodeTries: cfg.Withdrawal.CodeTries}
	o.Currencies, o.Pairs = nil, nil
	for _, c := range cfg.Currencies {
		o.Currencies = append(o.Currencies,
			directory.Currency{Code: c.Code, Sign: c.Sign, MinimumWithdrawal: c.MinimumWithdrawal,
				Addresses: c.Addresses()})
	}
	for _, p := range cfg.Pairs {
		base, quote := p.Currencies()
		o.Pairs = append(o.Pairs, directory.PairRules{Name: p.Name, Base: base, Quote: quote,
			PricePrecision:  p.PricePrecision,
			AmountPrecision: p.AmountPrecision, MinimumOrderSize: p.MinimumOrderSize,
			MaximumOrderSize:  p.MaximumOrderSize,
			MinimumOrderValue: p.MinimumOrderValue,
			PriceTick:         p.PriceTick,
			AmountStep:        p.AmountStep,
			PriceBand:         p.PriceBand,
			MarketCollar:      p.MarketCollar,
			StopCollar:        p.StopCollar,
			Fees:              state.FeeRates{Maker: p.MakerFee, Taker: p.TakerFee}})
	}
}
