package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// A slowDisk tells the test of each write, and takes the write when the test lets it.
type slowDisk struct {
	written chan []byte
	synced  chan error
}

func newSlowDisk() *slowDisk { return &slowDisk{make(chan []byte), make(chan error)} }

func (d *slowDisk) write(b []byte) error {
	d.written <- bytes.Clone(b)
	return <-d.synced
}

func TestWaitingCommitsShareTheNextSync(t *testing.T) {
	const many = 10
	d := newSlowDisk()
	c := newCommitter(d.write)
	ended := make(chan error)
	go func() { ended <- c.run() }()
	var first, others sync.WaitGroup
	first.Go(func() { c.commit([]byte("first")) })
	if b := <-d.written; len(b) != recordBytes || !bytes.HasPrefix(b, []byte("first\x00")) {
		t.Errorf("%q", b)
	}
	for range many {
		others.Go(func() { c.commit(bytes.Repeat([]byte("long"), recordBytes)) })
	}
	forming := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.forming.records)
	}
	for forming() < many*recordBytes {
		runtime.Gosched()
	}
	d.synced <- nil
	first.Wait()
	if b := <-d.written; len(b) != many*recordBytes || strings.Trim(string(b), "long") != "" {
		t.Errorf("%q", b)
	}
	d.synced <- nil
	others.Wait()

	go c.commit(nil) // it is never answered
	<-d.written
	broken := errors.New("broken")
	d.synced <- broken
	if err := <-ended; err != broken {
		t.Error(err)
	}
}

func TestTheLogBeginsAnewWhenItIsFull(t *testing.T) {
	l, err := createLog(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f := func(from, at int64, records string) {
		t.Helper()
		l.at = from
		if err := l.append([]byte(records)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, len(records))
		if _, err := l.ReadAt(b, at); err != nil || string(b) != records ||
			l.at != at+int64(len(records)) {
			t.Errorf("%q at %d, then %d: %v", b, at, l.at, err)
		}
		if info, err := os.Stat(l.Name()); err != nil || info.Size() != logBytes {
			t.Errorf("%v, %v", info, err)
		}
	}
	f(0, 0, "one")
	f(3, 3, "two")
	f(logBytes-5, logBytes-5, "three")
	f(logBytes-4, 0, "again")
}
