package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"exchange/actors"
	"exchange/actors/owner"
	"exchange/actors/seal"
	"exchange/cmd/exchange/cli"
	"exchange/config"
	"exchange/gateway/listen"
	"exchange/persistence"
	"exchange/persistence/archive"
	"exchange/persistence/backup"
	"exchange/persistence/folder"
	"exchange/persistence/memory"
	"exchange/persistence/replicated"
)

// How each start ends, and whether a restart is right: never after 64, after 70 not before an
// operator has checked, always after 75. After 77 an exchange of one machine is a standby, and a
// node that was removed stays removed.
func TestEachStartEndsWithTheCodeOfItsReason(t *testing.T) {
	ctx := t.Context()
	ended, end := context.WithCancel(ctx)
	end()
	alone := func(err error) error { return startFailed(ctx, fmt.Errorf("opening: %w", err)) }
	node := func(err error) error { return nodeFailed(ctx, fmt.Errorf("opening: %w", err)) }
	listens := func(err error) error {
		return cannotListen("it", &net.OpError{Op: "listen", Err: err})
	}
	file := func(err error) error { return &fs.PathError{Op: "open", Path: "x", Err: err} }
	for _, x := range []struct {
		start, what string
		err         error
		code        int
		again       bool
	}{
		{"alone", "another server's key", alone(seal.ErrOtherKey), cli.ExitUsage, false},
		{"alone", "a Redis that may lose writes", alone(persistence.ErrNotDurable),
			cli.ExitUsage, false},
		{"alone", "an old Redis", alone(persistence.ErrUnsupported), cli.ExitUsage, false},
		{"alone", "another history", alone(persistence.ErrForeign), cli.ExitUsage, false},
		{"alone", "a pair is missing", alone(actors.ErrConfig), cli.ExitUsage, false},
		{"alone", "a folder of other users", alone(file(fs.ErrPermission)), cli.ExitUsage, false},
		{"alone", "a file for a folder", alone(file(syscall.ENOTDIR)), cli.ExitUsage, false},
		{"alone", "a wrong password of Redis", alone(fs.ErrPermission), cli.ExitUsage, false},
		{"alone", "damage", alone(persistence.ErrCorrupt), cli.ExitBroken, false},
		{"alone", "a newer program", alone(persistence.ErrVersion), cli.ExitBroken, false},
		{"alone", "a lost tail", alone(persistence.ErrGap), cli.ExitBroken, false},
		{"alone", "a broken invariant", alone(persistence.ErrInvalid), cli.ExitBroken, false},
		{"alone", "a store in use", alone(persistence.ErrLocked), cli.ExitUnavailable, true},
		{"alone", "a disk not mounted", alone(persistence.ErrAbsent), cli.ExitUnavailable, true},
		{"alone", "no append-only file", alone(persistence.ErrNotInEffect), cli.ExitUnavailable,
			true},
		{"alone", "no Redis", alone(syscall.ECONNREFUSED), cli.ExitUnavailable, true},
		{"alone", "no socket of Redis", alone(syscall.ENOENT), cli.ExitUnavailable, true},
		{"alone", "a store that hangs", alone(actors.ErrStalled), cli.ExitUnavailable, true},
		{"alone", "a full disk", alone(syscall.ENOSPC), cli.ExitUnavailable, true},
		{"alone", "stopped", startFailed(ended, errors.New("x")), cli.ExitUnavailable, true},
		{"alone", "taken over", alone(persistence.ErrFenced), cli.ExitFenced, true},
		{"standby", "stopped", alone(owner.ErrStandby), cli.ExitDone, false},
		{"standby", "an owner that lives", alone(persistence.ErrHeld), cli.ExitUnavailable, true},
		{"node", "removed", node(persistence.ErrRemoved), cli.ExitFenced, false},
		{"node", "another node's folder", node(replicated.ErrFolder), cli.ExitUsage, false},
		{"node", "wrong certificates", node(errConfig), cli.ExitUsage, false},
		{"node", "damage", node(persistence.ErrCorrupt), cli.ExitBroken, false},
		{"node", "a newer program", node(persistence.ErrVersion), cli.ExitBroken, false},
		{"node", "a newer format", node(persistence.ErrFormat), cli.ExitBroken, false},
		{"node", "a newer format while it votes", engineFailed(persistence.ErrFormat),
			cli.ExitBroken,
			false},
		{"node", "no address of its own yet", node(syscall.EADDRNOTAVAIL), cli.ExitUnavailable,
			true},
		{"node", "stopped while it forms", nodeFailed(ended, persistence.ErrCorrupt),
			cli.ExitUnavailable, true},
		{"each", "an address that is taken", listens(syscall.EADDRINUSE), cli.ExitUnavailable,
			true},
		{"each", "an address not there yet", listens(syscall.EADDRNOTAVAIL), cli.ExitUnavailable,
			true},
		{"each", "names not there yet", listens(&net.DNSError{IsTemporary: true}),
			cli.ExitUnavailable,
			true},
		{"each", "no such name", listens(&net.DNSError{IsNotFound: true}), cli.ExitUsage, false},
		{"each", "a port of root", listens(syscall.EACCES), cli.ExitUsage, false},
		{"each", "an address without TLS", listenerEnded(listen.ErrPlain), cli.ExitUsage, false},
		{"each", "a listener ended", listenerEnded(net.ErrClosed), cli.ExitUnavailable, true},
		{"archive", "another's", archiveFailed(archive.ErrOther), cli.ExitUsage, false},
		{"archive", "not mounted", archiveFailed(persistence.ErrAbsent), cli.ExitUnavailable, true},
		{"archive", "damage", archiveFailed(persistence.ErrCorrupt), cli.ExitBroken, false},
		{"archive", "a newer program", archiveFailed(persistence.ErrVersion), cli.ExitBroken,
			false},
		{"archive", "a full disk", archiveFailed(file(syscall.ENOSPC)), cli.ExitUnavailable, true},
		{"archive", "other users'", archiveFailed(file(fs.ErrPermission)), cli.ExitUsage, false},
		{"restore", "a store in use", restored(persistence.ErrHeld), cli.ExitUnavailable, true},
		{"restore", "a store that is not empty", restored(backup.ErrNotEmpty), cli.ExitUsage,
			false},
		{"restore", "a backup that changed meanwhile", restored(backup.ErrDamaged), cli.ExitBroken,
			false},
		{"restore", "a full disk", restored(syscall.ENOSPC), cli.ExitUnavailable, true},
	} {
		code := cli.ExitCode(x.err)
		again := code == cli.ExitUnavailable || code == cli.ExitFenced && x.start != "node"
		if code != x.code || again != x.again {
			t.Errorf("%s, %s: %d (try again: %t), want %d (%t): %v", x.start, x.what, code, again,
				x.code, x.again, x.err)
		}
	}
}

func restored(err error) error {
	return restoreFailed(memory.Open(memory.NewDisk(), persistence.Retention{}),
		fmt.Errorf("filling: %w", err))
}

// The same with real folders.
func TestStartsOnRealFoldersEndWithTheCodeOfTheirReason(t *testing.T) {
	in := func(t *testing.T) *config.Config {
		t.Helper()
		cfg := config.Demo()
		cfg.Data = filepath.Join(t.TempDir(), "data")
		cfg.Store, cfg.Archive = "pebble:"+filepath.Join(cfg.Data, "store"), filepath.Join(cfg.Data,
			"archive")
		worked(t, cfg.Finish())
		return cfg
	}
	holds := func(cfg *config.Config) int {
		held, err := holdData(newKnown(cfg, false, slog.Default()))
		if err == nil {
			err = held.Release()
		}
		return cli.ExitCode(err)
	}
	opens := func(cfg *config.Config) int {
		worked(t, os.MkdirAll(cfg.Data, 0o700))
		s, err := newKnown(cfg, false, slog.New(slog.DiscardHandler)).openStore(t.Context())
		if err == nil {
			return cli.ExitCode(s.Close())
		}
		return cli.ExitCode(startFailed(t.Context(), err))
	}
	for what, x := range map[string]struct {
		start  func(*config.Config) int
		change func(cfg *config.Config)
		code   int
	}{
		"nothing":       {holds, func(*config.Config) {}, cli.ExitDone},
		"nothing there": {opens, func(*config.Config) {}, cli.ExitDone},
		"the data folder is a file": {holds, func(cfg *config.Config) {
			worked(t, os.WriteFile(cfg.Data, nil, 0o600))
		}, cli.ExitUsage},
		"no disk below the data folder": {holds, func(cfg *config.Config) {
			cfg.Data = filepath.Join(cfg.Data, "none", "data")
		}, cli.ExitUnavailable},
		"another process has it": {holds, func(cfg *config.Config) {
			worked(t, os.MkdirAll(cfg.Data, 0o700))
			held := must(folder.Hold(cfg.Data))
			t.Cleanup(func() { worked(t, held.Release()) })
		}, cli.ExitUnavailable},
		"a certificate is missing": {holds, func(cfg *config.Config) {
			cfg.TLS.CertFile, cfg.TLS.KeyFile = "none.crt", "none.key"
		}, cli.ExitUsage},
		"the store is a file": {opens, func(cfg *config.Config) {
			worked(t, os.MkdirAll(cfg.Data, 0o700))
			worked(t, os.WriteFile(cfg.PebbleFolder(), nil, 0o600))
		}, cli.ExitUsage},
		"the store is in use": {opens, func(cfg *config.Config) {
			s := must(newKnown(cfg, false, slog.New(slog.DiscardHandler)).openStore(t.Context()))
			t.Cleanup(func() { worked(t, s.Close()) })
		}, cli.ExitUnavailable},
		"a copy of a node's store": {opens, func(cfg *config.Config) {
			worked(t, os.MkdirAll(filepath.Join(cfg.PebbleFolder(), copyFolder), 0o700))
		}, cli.ExitUsage},
		"the store's HEAD is damaged": {opens, func(cfg *config.Config) {
			worked(t, os.MkdirAll(cfg.PebbleFolder(), 0o700))
			worked(t, os.WriteFile(filepath.Join(cfg.PebbleFolder(), "HEAD.main"), []byte("x"),
				0o600))
		}, cli.ExitBroken},
	} {
		cfg := in(t)
		x.change(cfg)
		if code := x.start(cfg); code != x.code {
			t.Errorf("%s: %d, want %d", what, code, x.code)
		}
	}
}
