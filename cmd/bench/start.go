package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"exchange/actors/seal"
	"exchange/persistence/pebble"
)

// A start is the time from the start of a process until a large exchange is ready. Its data are in
// the page cache, as after the end of a process.
type start struct {
	server
	ready *row
	dir   string // of the exchange
}

func newStart(o options) *start {
	s := &start{server: server{title: "start of a large exchange", options: o, pairs: manyPairs}}
	s.ready = &row{subject: "start: 100,000 accounts, 1,000,000 open orders, 10,000,000 closed",
		unit: "s", aim: aim{most: 2}}
	return s
}

func (s *start) rows() []*row { return []*row{s.ready} }

// begin fills the folder. The first start is not measured: it adds what is configured beside, and
// the store then puts the many rows in order.
func (s *start) begin(ctx context.Context, dir string) error {
	var err error
	if s.dir, err = os.MkdirTemp(dir, "exchange-"); err != nil {
		return err
	}
	data := filepath.Join(s.dir, "data")
	sealer, err := seal.Load("", filepath.Join(data, "exchange.key"), true)
	if err != nil {
		return err
	}
	store, err := pebble.Open(data, pebble.Options{})
	if err != nil {
		return err
	}
	l := &largeExchange{pairs: s.pairs, accounts: 100_000, open: 1_000_000, closed: 10_000_000,
		sealer: sealer}
	if err := errors.Join(l.fill(ctx, store), store.Close()); err != nil {
		return err
	}
	defer s.end()
	if err := s.launch(s.dir, nil); err != nil {
		return err
	}
	return s.settled()
}

// settled waits until the exchange has nothing to do any more.
func (s *start) settled() error {
	const look = time.Second
	for last := time.Duration(0); ; {
		used, err := cpuOf(s.pids)
		if err != nil || used-last < look/50 {
			return err
		}
		last = used
		time.Sleep(look)
	}
}

func (s *start) measure(context.Context) error {
	defer s.end()
	begin := time.Now()
	if err := s.launch(s.dir, nil); err != nil {
		return err
	}
	s.ready.values = append(s.ready.values, time.Since(begin).Seconds())
	return nil
}

// end kills the exchange that was started last.
func (s *start) end() {
	s.server.end()
	s.pids, s.stops = nil, nil
}
