package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"exchange/config"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version string

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print what this program was built from",
		Args:  takes(),
		RunE: run(func(context.Context, []string) error {
			v := buildVersion()
			if p.json {
				return printJSON(p.stdout, v)
			}
			commit := ""
			if v.Commit != "" {
				commit = " " + v.Commit
				if v.Modified {
					commit += " with changes"
				}
			}
			_, err := fmt.Fprintf(p.stdout, "exchange %s%s (%s, %s/%s)\n", v.Version, commit, v.Go, runtime.GOOS, runtime.GOARCH)
			return err
		}),
	}
}

type versionAnswer struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`   // empty if the build did not see a repository
	Modified bool   `json:"modified"` // the commit is not all of it
	Go       string `json:"go"`
}

func buildVersion() versionAnswer {
	v := versionAnswer{Version: version, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		if v.Version == "" {
			v.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	if v.Version == "" {
		v.Version = "unknown"
	}
	return v
}

// healthTimeout is how long `health` waits for its answer. The supervisor's own patience is longer.
const healthTimeout = 3 * time.Second

func (p *program) healthCommand() *cobra.Command {
	var address string
	c := &cobra.Command{
		Use:   "health",
		Short: "Ask a server on this machine whether it is alive",
		Long: "Asks /healthz of the public listener. Exits with 0 if the server is alive and with 75 if not. Made for health checks of containers, " +
			"which have no other program to ask with.",
		Args: takes(),
		RunE: run(func(ctx context.Context, _ []string) error {
			if address == "" {
				address = p.env("EXCHANGE_LISTEN")
			}
			if address == "" {
				address = config.Default().Listen
			}
			if err := health(ctx, address); err != nil {
				return err
			}
			if p.json {
				return printJSON(p.stdout, map[string]bool{"ok": true})
			}
			_, err := fmt.Fprintln(p.stdout, "ok")
			return err
		}),
	}
	c.Flags().StringVar(&address, "listen", "", "address of the public listener (default 127.0.0.1:8080 or EXCHANGE_LISTEN)")
	return c
}

func health(ctx context.Context, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return usage("--listen is %q: write host:port", address)
	}
	// A server that listens on every interface is asked on this machine's own.
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/healthz", nil)
	if err != nil {
		return usage("--listen is %q: write host:port", address)
	}
	answer, err := direct().Do(r)
	if err != nil {
		return withExit(exitUnavailable, fmt.Errorf("the exchange does not answer at %s: %w", address, cause(err)))
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 4096))
	if answer.StatusCode != http.StatusOK {
		return withExit(exitUnavailable, errors.New("the exchange is not well: it answers "+answer.Status))
	}
	return nil
}
