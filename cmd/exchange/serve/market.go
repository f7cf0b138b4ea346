package serve

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"exchange/actors"
	"exchange/config"
	"exchange/persistence/replicated"
)

// A market compares the market part of this node's configuration with the one that the cluster has
// agreed on. The gateway's limits follow the applied part: while the node serves they are those of
// its term, and until then those of the newest market part.
type market struct {
	cfg    *config.Config
	own    [][]byte             // as text of each format
	report replicated.OwnMarket // of the file, for the other nodes
	log    *slog.Logger
	limit  func(*config.Config) // changes the gateway's limits

	mu      sync.Mutex
	file    *config.Config // as last reloaded: beside cfg it may match the applied part
	applied []byte         // nil: none
	newest  *config.Config // the configuration with it, as far as it is readable
	keys    []string       // of the options that differ
	serves  bool
	changed func()         // checks whether the node could serve; nil: not set yet
	text    []byte         // last parsed; nil: none
	read    *config.Config // the configuration with it
}

func newMarket(cfg *config.Config, log *slog.Logger) *market {
	m := &market{cfg: cfg, own: cfg.Markets(), log: log, file: cfg, newest: cfg}
	m.report.Set(m.own)
	return m
}

// options returns how a term gets the market part.
func (m *market) options() *actors.Market {
	return &actors.Market{
		Text: func(applied []byte, format uint8) ([]byte, error) {
			cfg, err := m.with(applied)
			if err != nil {
				return nil, err
			}
			return cfg.MarketOf(format), nil
		},
		Use: func(text []byte, o *actors.Options) error {
			cfg, err := m.with(text)
			if err == nil {
				setMarket(cfg, o)
			}
			return err
		}}
}

// with returns the node's configuration with a market part; nil: its own.
func (m *market) with(text []byte) (*config.Config, error) {
	m.mu.Lock()
	known, read := m.text, m.read
	m.mu.Unlock()
	switch {
	case text == nil, slices.ContainsFunc(m.own, func(own []byte) bool {
		return bytes.Equal(own, text)
	}):
		return m.cfg, nil
	case bytes.Equal(known, text):
		return read, nil // a long one takes long to read, and a new leader is waited for
	}
	cfg, err := m.cfg.WithMarket(text)
	if err != nil {
		return nil, fmt.Errorf("%w: the market part that is applied, with the rest of this node's "+
			"configuration: %w", actors.ErrConfig, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.text, m.read = text, cfg
	return cfg, nil
}

// change returns the applied market part as a file would change it, as text of a format, and the
// keys in which the two differ; nil: none.
func (m *market) change(applied, file []byte, format uint8) (to []byte, keys []string, err error) {
	before, err := m.with(applied)
	if err != nil {
		return nil, nil, err
	}
	after, err := before.WithMarket(file)
	if err != nil {
		return nil, nil, err
	}
	keys = after.MarketDiffers(before.MarketOf(format))
	if all := after.MarketDiffers(before.Market()); len(all) > len(keys) {
		later := slices.DeleteFunc(all, func(k string) bool { return slices.Contains(keys, k) })
		return nil, nil, errors.New("some nodes run a program without support for an agreed " +
			strings.Join(later, ", ") + ": upgrade them first, or leave it as it is")
	}
	if keys == nil {
		return nil, nil, nil
	}
	return after.MarketOf(format), keys, nil
}

// judge calls a function now, and whenever another market part is applied.
func (m *market) judge(whether func()) {
	m.mu.Lock()
	m.changed = whether
	m.mu.Unlock()
	whether()
}

// serve applies the limits of a term, or of a follower's data, to the gateway.
func (m *market) serve(text []byte) {
	cfg, err := m.with(text)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.serves = true; err != nil {
		m.log.Error("BUG: a term has a market part that cannot be read", "error", err)
		return
	}
	m.limit(cfg)
}

// follow applies the limits of the newest market part to the gateway.
func (m *market) follow() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.serves = false
	m.limit(m.newest)
}

// agreed receives the applied market part, possibly repeatedly. It does not wait: the caller has a
// log to keep.
func (m *market) agreed(text []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.applied != nil && bytes.Equal(m.applied, text) {
		return
	}
	m.applied, m.keys = text, nil
	go m.compare(text)
}

// reread receives the node's reloaded file, and returns when its differences are computed.
func (m *market) reread(file *config.Config) {
	m.report.Set(file.Markets())
	m.mu.Lock()
	m.file = file
	text := m.applied
	m.mu.Unlock()
	if text != nil {
		m.compare(text)
	}
}

// compare finds and logs the options in which the node's file differs, and gives a follower's
// gateway the limits.
func (m *market) compare(text []byte) {
	m.mu.Lock()
	file := m.file
	m.mu.Unlock()
	cfg, err := m.with(text)
	keys := file.MarketDiffers(text)
	m.mu.Lock()
	if whether := m.changed; whether != nil {
		defer whether()
	}
	defer m.mu.Unlock()
	if !bytes.Equal(m.applied, text) || m.file != file {
		return // another one was applied or loaded meanwhile
	}
	if m.keys = keys; len(keys) > 0 {
		m.log.Warn("the configuration of this node differs from the one applied in the cluster, "+
			"and has no effect there: make it equal, or apply it by exchange config apply",
			"node", m.cfg.Cluster.Node, "keys", strings.Join(keys, ", "))
	}
	if err != nil {
		m.log.Error("this node cannot serve with the configuration applied in the cluster",
			"error", err)
		return
	}
	if m.newest = cfg; !m.serves {
		m.limit(cfg)
	}
}

// agreedText returns the applied market part; nil: none is known.
func (m *market) agreedText() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.applied
}

// differs returns the keys of the options in which the node's file differs.
func (m *market) differs() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.keys
}
