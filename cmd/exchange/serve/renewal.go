package serve

import (
	"context"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"exchange/actors"
	"exchange/config"
	"exchange/gateway"
	"exchange/gateway/listen"
	"exchange/gateway/operator"
)

// Certificates and the operator's token are renewed while the exchange runs, and the configuration
// is reloaded: see reload.go.

// renewInterval is the time between two checks for new files of certificates. A supervisor that
// cannot send signals only has to replace the files.
const renewInterval = 10 * time.Second

// A renewal loads new certificates and tokens, and another configuration. All of it runs in one
// goroutine, one after the other.
type renewal struct {
	cfg          *config.Config
	log          *slog.Logger
	gateway      *gateway.Gateway
	certificates []*listen.Certificate
	tokens       tokenSet // as they are now

	source  rereading
	running *config.Config // in effect, as it was read
	// agreed is the market part applied in the cluster, as text; nil: none is known. It is nil
	// itself for an exchange on one machine.
	agreed   func() []byte
	reread   func(*config.Config)          // receives each one in effect; nil as agreed is
	engine   atomic.Pointer[actors.Engine] // of an exchange on one machine; nil: it is starting
	requests chan reloadRequest
}

// A certificateSet holds the listeners' certificates; nil without TLS.
type certificateSet struct{ public, operator, metrics *listen.Certificate }

// all returns those that are not nil.
func (s *certificateSet) all() (list []*listen.Certificate) {
	for _, c := range []*listen.Certificate{s.public, s.operator, s.metrics} {
		if c != nil {
			list = append(list, c)
		}
	}
	return list
}

// certificates loads those of the listeners.
func certificates(cfg *config.Config, log *slog.Logger) (s certificateSet, err error) {
	for _, x := range []struct {
		tls *config.TLS
		to  **listen.Certificate
	}{{&cfg.TLS, &s.public}, {&cfg.OperatorTLS, &s.operator}, {&cfg.Metrics.TLS, &s.metrics}} {
		if !x.tls.On() {
			continue
		}
		if *x.to, err = listen.LoadCertificate(x.tls.CertFile, x.tls.KeyFile, log); err != nil {
			return s, err
		}
	}
	return s, nil
}

// run renews at once on a request, and checks the certificates from time to time, until ctx ends.
func (r *renewal) run(ctx context.Context, asked <-chan os.Signal) {
	tick := time.NewTicker(renewInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
			if done, err := r.all(); err == nil { // the log has the fault
				r.noteSignal(done)
			}
		case request := <-r.requests:
			done, err := r.all()
			request <- reloadOutcome{done, err}
		case now := <-tick.C:
			for _, c := range r.certificates {
				c.Refresh(now)
			}
		}
	}
}

// all reloads everything. A faulty certificate or token stays as it is, and so does a faulty
// configuration. The log has the fault.
func (r *renewal) all() (*operator.Reloaded, error) {
	var faults []string
	for _, c := range r.certificates {
		if c.Reload(); c.Stale() {
			faults = append(faults, "a certificate stays as it was: see the log")
		}
	}
	if err := r.renewTokens(); err != nil {
		r.log.Error("the tokens stay as they are", "error", err)
		faults = append(faults, fmt.Sprintf("the tokens stay as they were: %v", err))
	}
	changes, err := r.configure()
	if err != nil {
		return nil, err
	}
	done := &operator.Reloaded{Faults: faults}
	for _, c := range changes {
		done.Applied = append(done.Applied, operator.ReloadedOption{Key: c.Key, Before: c.Before,
			After: c.After, Origin: c.Origin})
	}
	return done, nil
}

func (r *renewal) renewTokens() error {
	now, err := tokens(r.cfg)
	if err != nil {
		return err
	}
	if !same(now.operator, r.tokens.operator) {
		r.gateway.SetOperatorToken(now.operator)
		r.log.Info("the operator's token was changed: the previous one is invalid now")
	}
	if !same(now.metrics, r.tokens.metrics) {
		r.gateway.SetMetricsToken(now.metrics)
		r.log.Info("the metrics' token was changed: the previous one is invalid now")
	}
	r.tokens = now
	return nil
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
