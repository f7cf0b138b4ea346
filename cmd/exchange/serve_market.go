package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"exchange/actors"
	"exchange/config"
)

// A market is what this node's configuration has of the market part, beside what the nodes of the
// cluster have agreed on.
type market struct {
	cfg *config.Config
	own []byte
	log *slog.Logger

	mu      sync.Mutex
	applied []byte   // nil: none
	keys    []string // of the options that differ
}

func newMarket(cfg *config.Config, log *slog.Logger) *market {
	return &market{cfg: cfg, own: cfg.Market(), log: log}
}

// options returns how a reign comes to the market part.
func (m *market) options() *actors.Market {
	return &actors.Market{Own: m.own, Use: func(text []byte, o *actors.Options) error {
		cfg, err := m.cfg.WithMarket(text)
		if err != nil {
			return fmt.Errorf("%w: the market part that is applied, with the rest of this node's "+
				"configuration: %w", actors.ErrConfig, err)
		}
		setMarket(cfg, o)
		return nil
	}}
}

// agreed hears of the market part that is applied. It does not wait: the caller has a log to keep.
func (m *market) agreed(text []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applied = text
	if m.keys = nil; !bytes.Equal(text, m.own) {
		go m.compare(text)
	}
}

// compare finds and logs in which options the node's file differs.
func (m *market) compare(text []byte) {
	keys := m.cfg.MarketDiffers(text)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !bytes.Equal(m.applied, text) {
		return // another one was applied meanwhile
	}
	m.keys = keys
	m.log.Warn("the configuration of this node differs from what is applied in the cluster, and "+
		"counts for nothing there: make it equal, or apply it by exchange config apply", "node",
		m.cfg.Cluster.Node, "keys", strings.Join(keys, ", "))
}

// differs returns the keys of the options in which the node's file differs.
func (m *market) differs() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.keys
}

// pack makes a market part small enough for an operator's request.
func pack(text []byte) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(text)
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

// unpack reads what pack has made.
func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("the market part is not packed as gzip: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(r, config.MaxMarket+1))
	if err != nil {
		return nil, fmt.Errorf("the market part is damaged: %w", err)
	}
	return text, nil // too long a text is refused when it is read
}
