package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"exchange/config"
	"exchange/gateway"
)

// What is renewed while the exchange runs: certificates and the operator's token.

// renewInterval is how often it is looked whether certificates have new files. A supervisor that cannot send signals
// only has to replace them.
const renewInterval = 10 * time.Second

// A renewal takes what is new.
type renewal struct {
	cfg          *config.Config
	log          *slog.Logger
	gateway      *gateway.Gateway
	certificates []*gateway.Certificate
	token        string // the operator's, as it is now
}

// certificates are those of the two listeners, nil without TLS.
func certificates(cfg *config.Config, log *slog.Logger) (public, operator *gateway.Certificate, err error) {
	for _, x := range []struct {
		tls *config.TLS
		to  **gateway.Certificate
	}{{&cfg.TLS, &public}, {&cfg.OperatorTLS, &operator}} {
		if !x.tls.On() {
			continue
		}
		if *x.to, err = gateway.LoadCertificate(x.tls.CertFile, x.tls.KeyFile, log); err != nil {
			return nil, nil, err
		}
	}
	return public, operator, nil
}

// hangups are the signals that ask for a renewal. It is called early: without it they would end the process. In a terminal that
// is what they are for: it was closed.
func hangups(input *os.File) (<-chan os.Signal, func()) {
	ch := make(chan os.Signal, 1)
	if !terminal(input) {
		signal.Notify(ch, syscall.SIGHUP)
	}
	return ch, func() { signal.Stop(ch) }
}

// run renews at once when it is asked, and looks at the certificates from time to time, until ctx ends.
func (r *renewal) run(ctx context.Context, asked <-chan os.Signal) {
	tick := time.NewTicker(renewInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
			r.all()
		case now := <-tick.C:
			for _, c := range r.certificates {
				c.Refresh(now)
			}
		}
	}
}

// all takes everything anew. What cannot be taken stays as it is, and is in the log.
func (r *renewal) all() {
	for _, c := range r.certificates {
		c.Reload()
	}
	token, err := operatorToken(r.cfg)
	switch {
	case err != nil:
		r.log.Error("the operator's token stays as it is", "error", err)
	case token != r.token:
		r.token = token
		r.gateway.SetOperatorToken(token)
		r.log.Info("the operator's token was changed: the one before has ended")
	}
}
