package serve

import (
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"exchange/actors/seal"
	"exchange/cmd/exchange/cli"
	"exchange/config"
)

// refusals returns all reasons to refuse a start that do not depend on the store's content: missing
// or wrong files and folders, addresses, a socket's path, the limits of this process. It changes
// nothing. Its code is 64, or 75 if all of it may pass.
func refusals(k *knownData) error {
	cfg, quiet := k.cfg, slog.New(slog.DiscardHandler)
	var list []string
	code := cli.ExitUnavailable
	add := func(prefix string, err error) {
		if err == nil {
			return
		}
		list = append(list, prefix+err.Error())
		if cli.ExitCode(cli.WithExit(cli.ExitUsage, err)) != cli.ExitUnavailable {
			code = cli.ExitUsage
		}
	}
	_, _, err := presentTokens(cfg)
	add("", err)
	_, err = certificates(cfg, quiet)
	add("TLS: ", err)
	for _, err := range mayListen(cfg) {
		add("", err)
	}
	_, err = affordable(cfg.Limits.Connections, quiet)
	add("", err)
	_, err = mailing(cfg)
	add("mail: ", err)
	if cfg.Cluster.On() {
		_, _, err = loadNode(&cfg.Cluster)
		add("cluster: ", err)
	}
	for _, err := range slices.Concat(mayHold(cfg), k.missing()) {
		add("", err)
	}
	if !cfg.Cluster.Observer && k.mayHaveKey() == nil {
		add("", sealable(cfg))
	}
	switch len(list) {
	case 0:
		return nil
	case 1:
		return failf(code, "%s", list[0])
	}
	return failf(code, "a start is refused for %d reasons:\n  - %s", len(list),
		strings.Join(list, "\n  - "))
}

// mayListen returns why there can be no listener with an address or a path, whoever listens now.
func mayListen(cfg *config.Config) (all []error) {
	resolves := func(who, address string) {
		if _, err := net.ResolveTCPAddr("tcp", address); err != nil {
			all = append(all, cannotListen(who, &net.OpError{Op: "listen", Net: "tcp", Err: err}))
		}
	}
	resolves(publicListener, cfg.Listen)
	if cfg.Metrics.Listen != "" {
		resolves(metricsListener, cfg.Metrics.Listen)
	}
	path := cfg.OperatorSocket()
	if path == "" {
		resolves(operatorListener, cfg.Operator)
		return all
	}
	_, err := isSocket(path)
	if above := filepath.Dir(path); err == nil && above != filepath.Clean(cfg.Data) {
		if _, e := os.Stat(above); e != nil {
			err = cannotListen(operatorSocket, &net.OpError{Op: "listen", Net: "unix",
				Addr: &net.UnixAddr{Name: path, Net: "unix"}, Err: e})
		}
	}
	return append(all, mayHaveSocket(path, os.Geteuid()), err)
}

// mayHold returns the configured folders that are unusable.
func mayHold(cfg *config.Config) (all []error) {
	for _, x := range []struct{ what, path string }{{"the data folder", cfg.Data},
		{"the store's folder", cfg.PebbleFolder()}, {"the archive's folder", cfg.Archive}} {
		if cfg.Cluster.Observer && x.path != cfg.Data {
			continue
		}
		info, err := os.Stat(x.path)
		if err == nil && !info.IsDir() {
			err = &fs.PathError{Op: "mkdir", Path: x.path, Err: syscall.ENOTDIR}
		}
		if x.path != "" && err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = append(all, failf(cli.SystemCode(err), "%s cannot be made: %v", x.what, err))
		}
	}
	return all
}

// sealable returns the fault of the server's key. Only a node must have one: alone, the first start
// makes it.
func sealable(cfg *config.Config) error {
	if cfg.Cluster.On() {
		_, err := clusterKey(cfg)
		return err
	}
	_, err := seal.Load(os.Getenv(config.EnvSecretKey), cfg.SecretKeyFile, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
