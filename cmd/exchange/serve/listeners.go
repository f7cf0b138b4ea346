package serve

import (
	"log/slog"
	"net"

	"exchange/config"
	"exchange/gateway"
)

// listeners are for clients, operators and monitoring.
type listeners struct {
	public, operator net.Listener
	metrics          net.Listener // nil: none
}

// openListeners opens the configured listeners.
func openListeners(cfg *config.Config, log *slog.Logger) (*listeners, error) {
	l := &listeners{}
	var err error
	if l.public, err = net.Listen("tcp", cfg.Listen); err != nil {
		return nil, cannotListen(publicListener, err)
	}
	if l.operator, err = listenForOperators(cfg, log); err == nil {
		l.metrics, err = listenForMetrics(cfg)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	host, _, err := net.SplitHostPort(cfg.Listen)
	if err == nil && !cfg.TLS.On() && !config.Loopback(host) {
		log.Warn(
			"the API is plain HTTP on an address that others reach: let them use it through a "+
				"proxy "+
				"with TLS only, because a request can be sent again by each machine that sees it",
			"listen", cfg.Listen)
	}
	return l, nil
}

// logReady logs that the API takes requests.
func (l *listeners) logReady(log *slog.Logger) {
	log.Info("ready", "listen", l.public.Addr().String(), "operator", l.operator.Addr().String())
}

// close closes the open ones.
func (l *listeners) close() {
	for _, one := range []net.Listener{l.metrics, l.operator, l.public} {
		if one != nil {
			one.Close() //nolint:errcheck // nothing is lost with it
		}
	}
}

// serve makes the gateway answer on all of them. The channel gets the reason why one has ended.
func (l *listeners) serve(g *gateway.Gateway) <-chan error {
	ended := make(chan error, 3)
	go func() { ended <- g.Serve(l.public) }()
	go func() { ended <- g.ServeOperator(l.operator) }()
	if l.metrics != nil {
		go func() { ended <- g.ServeMetrics(l.metrics) }()
	}
	return ended
}
