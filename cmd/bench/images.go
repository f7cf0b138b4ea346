package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"exchange/persistence"
	"exchange/persistence/pebble"
)

// Images are what requests wait for while snapshots of a large state are made. Two exchanges have
// the same data, and the same requests are due at each in turns. One makes no snapshot; the other
// makes the next as soon as the exchange allows, one in six seconds.
type images struct {
	sides []*imageSide
	rate  float64 // requests a second
	turn  int
	waits *row
}

// An imageSide is one of the two exchanges.
type imageSide struct {
	server
	rows  []*row
	snaps float64 // that are to be made in each measurement, at least
}

// imageQuantiles are those of the rows.
var imageQuantiles = []struct {
	name    string
	percent float64
}{{"p99", 99}, {"p99.9", 99.9}, {"longest", 100}}

// imagesWaits is the place in imageQuantiles of the one whose difference is judged.
const imagesWaits = 1

func newImages(o options) *images {
	const never, always = "snapshot: {min_records: 100000000, max_records: 100000000}\n",
		"snapshot: {min_records: 1, max_records: 1}\n"
	side := func(title, settings string, snaps float64) *imageSide {
		s := &imageSide{server: server{title: title, options: o, pairs: manyPairs,
			settings: settings}, snaps: snaps}
		for _, q := range imageQuantiles {
			s.rows = append(s.rows, &row{unit: "ms", group: groupOpen,
				subject: "beside 1,000,000 open orders, " + q.name + ": " + title})
		}
		return s
	}
	m := &images{rate: 1_000, sides: []*imageSide{side("no snapshots", never, 0),
		side("always a snapshot", always, 1)}}
	m.waits = &row{subject: "beside 1,000,000 open orders, p99.9: what a snapshot adds",
		unit: "ms", group: groupOpen, aim: aim{most: 5}}
	for i, r := range m.sides[1].rows {
		r.yardstick = m.sides[0].rows[i]
	}
	return m
}

func (m *images) name() string { return "snapshots of a large exchange" }

func (m *images) rows() (list []*row) {
	for i := range imageQuantiles {
		list = append(list, m.sides[0].rows[i], m.sides[1].rows[i])
	}
	return append(list, m.waits)
}

func (m *images) begin(ctx context.Context, dir string) error {
	first, err := os.MkdirTemp(dir, "exchange-")
	if err != nil {
		return err
	}
	data := filepath.Join(first, "data")
	err = fillLarge(ctx, data, manyPairs, 0, func() (persistence.Store, error) {
		return pebble.Open(data, pebble.Options{})
	})
	if err != nil {
		return err
	}
	second, err := os.MkdirTemp(dir, "exchange-")
	if err != nil {
		return err
	}
	err = os.CopyFS(second, os.DirFS(first))
	if err == nil { // a copy can be read by all, and a key must not be
		err = os.Chmod(filepath.Join(second, "data", "exchange.key"), 0o600)
	}
	if err != nil {
		return err
	}
	for i, dir := range []string{first, second} {
		s := m.sides[i]
		if err := s.launch(dir, nil); err != nil {
			return err
		}
		if err := s.populate(); err != nil {
			return err
		}
		if _, err := s.clients.run(s.options.length); err != nil {
			return err
		}
		if err := s.settled(); err != nil { // Pebble puts the many rows in order
			return err
		}
	}
	return nil
}

// measure loads the two in turns: whichever was first in a round is second in the next.
func (m *images) measure(context.Context) error {
	m.turn++
	var waits [2]float64
	for i := range m.sides {
		at := (i + m.turn) % len(m.sides)
		var err error
		if waits[at], err = m.sides[at].load(m.rate); err != nil {
			return err
		}
	}
	m.waits.values = append(m.waits.values, waits[1]-waits[0])
	return nil
}

// load measures one exchange, and returns what is judged, in milliseconds.
func (s *imageSide) load(perSecond float64) (waits float64, err error) {
	before, err := scrape(&s.server)
	if err != nil {
		return 0, err
	}
	latencies := newLatencies()
	if _, err := s.clients.runOpen(perSecond, s.options.openLength, latencies); err != nil {
		return 0, err
	}
	after, err := scrape(&s.server)
	if err != nil {
		return 0, err
	}
	made := after[metricSnapshots] - before[metricSnapshots]
	if made < s.snaps || s.snaps == 0 && made > 0 {
		return 0, fmt.Errorf("%s: %v snapshots were made in %v: measure for longer (-open-seconds)",
			s.title, made, s.options.openLength)
	}
	for i, q := range imageQuantiles {
		s.rows[i].values = append(s.rows[i].values,
			milliseconds(latencies.ValueAtPercentile(q.percent)))
	}
	return milliseconds(latencies.ValueAtPercentile(imageQuantiles[imagesWaits].percent)), nil
}

func (m *images) end() {
	for _, s := range m.sides {
		s.end()
	}
}
