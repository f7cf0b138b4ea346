package operate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"exchange/cmd/exchange/cli"
	"exchange/config"
)

// healthTimeout bounds the wait of `health` for its answer. The supervisor's own timeout is longer.
const healthTimeout = 3 * time.Second

func (p *Commands) healthCommand() *cobra.Command {
	var address, certFile string
	c := &cobra.Command{
		Use:   "health",
		Short: "Ask a server on this machine whether it is alive",
		Long: "Asks /healthz of the public listener. Exits with 0 if the server is alive and " +
			"with 75 if not. Made for health checks of containers, " +
			"which have no other program to ask with. With --tls-cert-file it speaks TLS; at an " +
			"address that is not of this machine, the listener must have the certificate of that " +
			"file.",
		Args: cli.Takes(),
		RunE: cli.Run(func(ctx context.Context, _ []string) error {
			if address == "" {
				address = p.Env("EXCHANGE_LISTEN")
			}
			if address == "" {
				address = config.Default().Listen
			}
			if certFile == "" {
				certFile = p.Env("EXCHANGE_TLS_CERT_FILE")
			}
			if err := health(ctx, address, certFile); err != nil {
				return err
			}
			if p.JSON {
				return cli.PrintJSON(p.Stdout, map[string]bool{"ok": true})
			}
			_, err := fmt.Fprintln(p.Stdout, "ok")
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
		return cli.Usage("--listen is %q: write host:port", address)
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
		return cli.Usage("--listen is %q: write host:port", address)
	}
	answer, err := direct(trust).Do(r)
	if err != nil {
		return cli.WithExit(cli.ExitUnavailable,
			fmt.Errorf("the exchange does not answer at %s: %w", address, cause(err)))
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 4096))
	if answer.StatusCode != http.StatusOK {
		return cli.WithExit(cli.ExitUnavailable,
			errors.New("exchange unhealthy: HTTP "+answer.Status))
	}
	return nil
}

// thisMachine returns the address for a server of this machine that listens on every interface, and
// any other host as it is.
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
