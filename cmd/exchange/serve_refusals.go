package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"exchange/actors/seal"
	"exchange/config"
)

// refusals returns all for which a start is refused whatever its store has: files that are missing
// or wrong, a socket's path, the limits of this process. It changes nothing. It has exit code 64.
func refusals(cfg *config.Config) error {
	quiet := slog.New(slog.DiscardHandler)
	var list []string
	add := func(subject string, err error) {
		if err != nil {
			list = append(list, subject+err.Error())
		}
	}
	_, _, err := presentTokens(cfg)
	add("", err)
	_, err = certificates(cfg, quiet)
	add("TLS: ", err)
	if path := cfg.OperatorSocket(); path != "" {
		add("", mayHaveSocket(path, os.Geteuid()))
	}
	_, err = affordable(cfg.Limits.Connections, quiet)
	add("", err)
	_, err = mailing(cfg)
	add("mail: ", err)
	if cfg.Cluster.On() {
		_, _, err = loadNode(&cfg.Cluster)
		add("cluster: ", err)
	}
	if !cfg.Cluster.Observer {
		add("", sealable(cfg))
	}
	switch len(list) {
	case 0:
		return nil
	case 1:
		return failf(exitUsage, "%s", list[0])
	}
	return failf(exitUsage, "a start is refused for %d reasons:\n  - %s", len(list),
		strings.Join(list, "\n  - "))
}

// sealable returns what is wrong with the server's key. Only a node must have one: alone, the first
// start makes it.
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
