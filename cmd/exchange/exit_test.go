package main

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
	"exchange/config"
	"exchange/gateway/listen"
	"exchange/persistence"
	"exchange/persistence/archive"
	"exchange/persistence/backup"
	"exchange/persistence/folder"
	"exchange/persistence/memory"
	"exchange/persistence/replicated"
)

// How each start ends, and whether to start it again is right: never after 64, after 70 not before
// an operator has looked, always after 75. After 77 an exchange of one machine is a standby, and a
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
		{"alone", "another server's key", alone(seal.ErrOtherKey), exitUsage, false},
		{"alone", "a Redis that may lose writes", alone(persistence.ErrNotDurable),
			exitUsage, false},
		{"alone", "an old Redis", alone(persistence.ErrUnsupported), exitUsage, false},
		{"alone", "another history", alone(persistence.ErrForeign), exitUsage, false},
		{"alone", "a pair is missing", alone(actors.ErrConfig), exitUsage, false},
		{"alone", "a folder of other users", alone(file(fs.ErrPermission)), exitUsage, false},
		{"alone", "a file for a folder", alone(file(syscall.ENOTDIR)), exitUsage, false},
		{"alone", "a wrong password of Redis", alone(fs.ErrPermission), exitUsage, false},
		{"alone", "damage", alone(persistence.ErrCorrupt), exitBroken, false},
		{"alone", "a newer program", alone(persistence.ErrVersion), exitBroken, false},
		{"alone", "a lost tail", alone(persistence.ErrGap), exitBroken, false},
		{"alone", "a broken invariant", alone(persistence.ErrInvalid), exitBroken, false},
		{"alone", "a store in use", alone(persistence.ErrLocked), exitUnavailable, true},
		{"alone", "a disk not mounted", alone(persistence.ErrAbsent), exitUnavailable, true},
		{"alone", "no append-only file", alone(persistence.ErrNotInEffect), exitUnavailable, true},
		{"alone", "no Redis", alone(syscall.ECONNREFUSED), exitUnavailable, true},
		{"alone", "no socket of Redis", alone(syscall.ENOENT), exitUnavailable, true},
		{"alone", "a store that hangs", alone(actors.ErrStalled), exitUnavailable, true},
		{"alone", "a full disk", alone(syscall.ENOSPC), exitUnavailable, true},
		{"alone", "stopped", startFailed(ended, errors.New("x")), exitUnavailable, true},
		{"alone", "taken over", alone(persistence.ErrFenced), exitFenced, true},
		{"standby", "stopped", alone(owner.ErrStandby), exitDone, false},
		{"standby", "an owner that lives", alone(persistence.ErrHeld), exitUnavailable, true},
		{"node", "removed", node(persistence.ErrRemoved), exitFenced, false},
		{"node", "another node's folder", node(replicated.ErrFolder), exitUsage, false},
		{"node", "wrong certificates", node(errConfig), exitUsage, false},
		{"node", "damage", node(persistence.ErrCorrupt), exitBroken, false},
		{"node", "a newer program", node(persistence.ErrVersion), exitBroken, false},
		{"node", "a newer format", node(persistence.ErrFormat), exitBroken, false},
		{"node", "a newer format while it votes", engineFailed(persistence.ErrFormat), exitBroken,
			false},
		{"node", "no address of its own yet", node(syscall.EADDRNOTAVAIL), exitUnavailable, true},
		{"node", "stopped while it forms", nodeFailed(ended, persistence.ErrCorrupt),
			exitUnavailable, true},
		{"each", "an address that is taken", listens(syscall.EADDRINUSE), exitUnavailable, true},
		{"each", "an address not there yet", listens(syscall.EADDRNOTAVAIL), exitUnavailable, true},
		{"each", "names not there yet", listens(&net.DNSError{IsTemporary: true}), exitUnavailable,
			true},
		{"each", "no such name", listens(&net.DNSError{IsNotFound: true}), exitUsage, false},
		{"each", "a port of root", listens(syscall.EACCES), exitUsage, false},
		{"each", "an address without TLS", listenerEnded(listen.ErrPlain), exitUsage, false},
		{"each", "a listener ended", listenerEnded(net.ErrClosed), exitUnavailable, true},
		{"archive", "another's", archiveFailed(archive.ErrOther), exitUsage, false},
		{"archive", "not mounted", archiveFailed(persistence.ErrAbsent), exitUnavailable, true},
		{"archive", "damage", archiveFailed(persistence.ErrCorrupt), exitBroken, false},
		{"archive", "a newer program", archiveFailed(persistence.ErrVersion), exitBroken, false},
		{"archive", "a full disk", archiveFailed(file(syscall.ENOSPC)), exitUnavailable, true},
		{"archive", "other users'", archiveFailed(file(fs.ErrPermission)), exitUsage, false},
		{"restore", "a store in use", restored(persistence.ErrHeld), exitUnavailable, true},
		{"restore", "a store that is not empty", restored(backup.ErrNotEmpty), exitUsage, false},
		{"restore", "a backup that changed meanwhile", restored(backup.ErrDamaged), exitBroken,
			false},
		{"restore", "a full disk", restored(syscall.ENOSPC), exitUnavailable, true},
	} {
		code := exitCode(x.err)
		again := code == exitUnavailable || code == exitFenced && x.start != "node"
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

// The same of what real folders make.
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
		return exitCode(err)
	}
	opens := func(cfg *config.Config) int {
		worked(t, os.MkdirAll(cfg.Data, 0o700))
		s, err := newKnown(cfg, false, slog.New(slog.DiscardHandler)).openStore(t.Context())
		if err == nil {
			return exitCode(s.Close())
		}
		return exitCode(startFailed(t.Context(), err))
	}
	for what, x := range map[string]struct {
		start  func(*config.Config) int
		change func(cfg *config.Config)
		code   int
	}{
		"nothing":       {holds, func(*config.Config) {}, exitDone},
		"nothing there": {opens, func(*config.Config) {}, exitDone},
		"the data folder is a file": {holds, func(cfg *config.Config) {
			worked(t, os.WriteFile(cfg.Data, nil, 0o600))
		}, exitUsage},
		"no disk below the data folder": {holds, func(cfg *config.Config) {
			cfg.Data = filepath.Join(cfg.Data, "none", "data")
		}, exitUnavailable},
		"another process has it": {holds, func(cfg *config.Config) {
			worked(t, os.MkdirAll(cfg.Data, 0o700))
			held := must(folder.Hold(cfg.Data))
			t.Cleanup(func() { worked(t, held.Release()) })
		}, exitUnavailable},
		"a certificate is missing": {holds, func(cfg *config.Config) {
			cfg.TLS.CertFile, cfg.TLS.KeyFile = "none.crt", "none.key"
		}, exitUsage},
		"the store is a file": {opens, func(cfg *config.Config) {
			worked(t, os.MkdirAll(cfg.Data, 0o700))
			worked(t, os.WriteFile(cfg.PebbleFolder(), nil, 0o600))
		}, exitUsage},
		"the store is in use": {opens, func(cfg *config.Config) {
			s := must(newKnown(cfg, false, slog.New(slog.DiscardHandler)).openStore(t.Context()))
			t.Cleanup(func() { worked(t, s.Close()) })
		}, exitUnavailable},
		"a copy of a node's store": {opens, func(cfg *config.Config) {
			worked(t, os.MkdirAll(filepath.Join(cfg.PebbleFolder(), copyFolder), 0o700))
		}, exitUsage},
		"the store's HEAD is damaged": {opens, func(cfg *config.Config) {
			worked(t, os.MkdirAll(cfg.PebbleFolder(), 0o700))
			worked(t, os.WriteFile(filepath.Join(cfg.PebbleFolder(), "HEAD.main"), []byte("x"),
				0o600))
		}, exitBroken},
	} {
		cfg := in(t)
		x.change(cfg)
		if code := x.start(cfg); code != x.code {
			t.Errorf("%s: %d, want %d", what, code, x.code)
		}
	}
}
