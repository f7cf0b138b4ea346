package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"exchange/actors/seal"
	"exchange/persistence"
	"exchange/persistence/pebble"
	"exchange/persistence/redis"
)

// A start is the time from the start of a process until a large exchange is ready. Its data are in
// the page cache, as after the end of a process, or in a Redis that runs.
type start struct {
	server
	ready  *row
	closed int     // orders that have closed
	redis  *server // nil: it is on Pebble
	store  []string
	dir    string // of the exchange
}

func newStart(o options) *start {
	s := &start{server: server{title: "start of a large exchange", options: o, pairs: manyPairs},
		closed: 10_000_000}
	s.ready = &row{subject: "start: 100,000 accounts, 1,000,000 open orders, 10,000,000 closed",
		unit: "s", aim: aim{most: 2}}
	return s
}

// newRedisStart has no closed orders: a start reads none, and they would fill the memory.
func newRedisStart(o options) *start {
	s := &start{server: server{title: "start of a large exchange on Redis", options: o,
		pairs: manyPairs}, redis: new(server)}
	s.ready = &row{subject: "start on Redis: 100,000 accounts, 1,000,000 open orders", unit: "s"}
	return s
}

func (s *start) rows() []*row { return []*row{s.ready} }

// begin fills the store. The first start is not measured: it adds what is configured beside, and
// Pebble then puts the many rows in order. On Redis an orderly stop ends it, which makes an image.
func (s *start) begin(ctx context.Context, dir string) error {
	var err error
	if s.dir, err = os.MkdirTemp(dir, "exchange-"); err != nil {
		return err
	}
	data := filepath.Join(s.dir, "data")
	err = fillLarge(ctx, data, s.pairs, s.closed, func() (persistence.Store, error) {
		return s.open(ctx, data)
	})
	if err != nil {
		return err
	}
	defer s.kill()
	if err := s.launch(s.dir, s.store); err != nil {
		return err
	}
	if err := s.settled(); err != nil || s.redis == nil {
		return err
	}
	return s.stop()
}

// fillLarge fills a store with a large exchange whose data folder it makes.
func fillLarge(ctx context.Context, data string, pairs, closed int,
	open func() (persistence.Store, error)) error {
	sealer, err := seal.Load("", filepath.Join(data, "exchange.key"), true)
	if err != nil {
		return err
	}
	store, err := open()
	if err != nil {
		return err
	}
	l := &largeExchange{pairs: pairs, accounts: 100_000, open: 1_000_000, closed: closed,
		sealer: sealer}
	return errors.Join(l.fill(ctx, store), store.Close())
}

// open opens the store that is to be filled.
func (s *start) open(ctx context.Context, data string) (persistence.Store, error) {
	if s.redis == nil {
		return pebble.Open(data, pebble.Options{})
	}
	url, err := s.redis.startRedis(s.dir)
	if err != nil {
		return nil, err
	}
	s.store = []string{"--store", url}
	return redis.Open(ctx, url, redis.Options{})
}

// stop ends the exchange that was started last as an operator does, and waits for its end.
func (s *start) stop() error {
	exchange, err := os.FindProcess(s.pids[len(s.pids)-1])
	if err != nil {
		return err
	}
	if err := exchange.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	_, err = exchange.Wait()
	return err
}

func (s *start) measure(context.Context) error {
	defer s.kill()
	begin := time.Now()
	if err := s.launch(s.dir, s.store); err != nil {
		return err
	}
	s.ready.values = append(s.ready.values, time.Since(begin).Seconds())
	return nil
}

// kill ends the exchange that was started last.
func (s *start) kill() {
	s.server.end()
	s.pids, s.stops = nil, nil
}

func (s *start) end() {
	s.kill()
	if s.redis != nil {
		s.redis.end()
	}
}
