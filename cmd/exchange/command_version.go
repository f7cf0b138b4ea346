package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"exchange/config"
	"exchange/gateway/api"
)

// commit is what the linker was told of the commit that this program is built from, as `git
// describe` names it: -ldflags "-X main.commit=$(git describe --tags --always --dirty)".
var commit string

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
			from := ""
			if v.Commit != "" {
				from = " " + v.Commit
				if v.Modified {
					from += " with changes"
				}
			}
			_, err := fmt.Fprintf(p.stdout, "exchange %s%s (%s, %s/%s)\n", v.Version, from, v.Go,
				runtime.GOOS, runtime.GOARCH)
			return err
		}),
	}
}

type versionAnswer struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`   // empty if neither Go nor the linker was told
	Modified bool   `json:"modified"` // the commit is not all of it
	Go       string `json:"go"`
}

func buildVersion() versionAnswer {
	v := versionAnswer{Version: api.Version, Commit: commit, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok && commit == "" {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	return v
}

// healthTimeout bounds the wait of `health` for its answer. The supervisor's own patience is
// longer.
const healthTimeout = 3 * time.Second

func (p *program) healthCommand() *cobra.Command {
	var address, certFile string
	c := &cobra.Command{
		Use:   "health",
		Short: "Ask a server on this machine whether it is alive",
		Long: "Asks /healthz of the public listener. Exits with 0 if the server is alive and " +
			"with 75 if not. Made for health checks of containers, " +
			"which have no other program to ask with. With --tls-cert-file it speaks TLS; at an " +
			"address that is not of this machine, the listener must have the certificate of that " +
			"file.",
		Args: takes(),
		RunE: run(func(ctx context.Context, _ []string) error {
			if address == "" {
				address = p.env("EXCHANGE_LISTEN")
			}
			if address == "" {
				address = config.Default().Listen
			}
			if certFile == "" {
				certFile = p.env("EXCHANGE_TLS_CERT_FILE")
			}
			if err := health(ctx, address, certFile); err != nil {
				return err
			}
			if p.json {
				return printJSON(p.stdout, map[string]bool{"ok": true})
			}
			_, err := fmt.Fprintln(p.stdout, "ok")
			return err
		}),
	}
	c.Flags().StringVar(&address, "listen", "",
		"address of the public listener (default 127.0.0.1:8080 or EXCHANGE_LISTEN)")
	c.Flags().StringVar(&certFile, "tls-cert-file", "",
		"file of the listener's certificate, if it has TLS (default EXCHANGE_TLS_CERT_FILE)")
	return c
}

func health(ctx context.Context, address, certFile string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return usage("--listen is %q: write host:port", address)
	}
	host = thisMachine(host)
	scheme, trust, err := healthTrust(host, certFile)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet,
		scheme+"://"+net.JoinHostPort(host, port)+"/healthz", nil)
	if err != nil {
		return usage("--listen is %q: write host:port", address)
	}
	answer, err := direct(trust).Do(r)
	if err != nil {
		return withExit(exitUnavailable,
			fmt.Errorf("the exchange does not answer at %s: %w", address, cause(err)))
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 4096))
	if answer.StatusCode != http.StatusOK {
		return withExit(exitUnavailable,
			errors.New("the exchange is not well: it answers "+answer.Status))
	}
	return nil
}

// thisMachine returns the host at which this machine asks a server that listens on every interface,
// and any other host as it is.
func thisMachine(host string) string {
	ip := net.ParseIP(host)
	switch {
	case ip != nil && ip.IsUnspecified() && ip.To4() == nil:
		return "::1"
	case host == "" || ip != nil && ip.IsUnspecified():
		return "127.0.0.1"
	}
	return host
}

// healthTrust returns the trust for a listener that has the certificate of that file, if any. At an
// address of this machine nothing is verified, because the request has no secret. The listener may
// rightly serve an older certificate, while the file has a new one or is broken. At any other
// address, which the certificate need not name, the listener must prove the certificate's own name.
func healthTrust(host, certFile string) (scheme string, trust *tls.Config, err error) {
	if certFile == "" {
		return "http", nil, nil
	}
	if config.Loopback(host) {
		trust = &tls.Config{MinVersion: tls.VersionTLS12}
		trust.InsecureSkipVerify = true //nolint:gosec // see above
		return "https", trust, nil
	}
	trust = &tls.Config{MinVersion: tls.VersionTLS12}
	var first *x509.Certificate
	if trust.RootCAs, first, err = readCertificates(certFile); err != nil {
		return "", nil, err
	}
	switch {
	case len(first.DNSNames) > 0:
		trust.ServerName = strings.Replace(first.DNSNames[0], "*", "any", 1)
	case len(first.IPAddresses) > 0:
		trust.ServerName = first.IPAddresses[0].String()
	}
	return "https", trust, nil
}
