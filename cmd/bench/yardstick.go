package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/valyala/fasthttp"

	"exchange/gateway/sign"
)

// The yardsticks over HTTP are this program again: a fasthttp server that answers every request
// alike, at once or when the request is durable.

// startNoop starts the yardstick that does nothing.
func startNoop(s *server, _ string) error { return s.startYardstick() }

// startDurable starts the yardstick that makes requests durable, where the stores have their files
// too.
func startDurable(s *server, dir string) error {
	dir, err := os.MkdirTemp(dir, "yardstick-")
	if err != nil {
		return err
	}
	return s.startYardstick("-commit", filepath.Join(dir, "log"))
}

// startYardstick starts a yardstick for the generator's orders. The yardstick does not check users.
func (s *server) startYardstick(args ...string) (err error) {
	if s.address, err = s.noop(0, args...); err != nil {
		return err
	}
	users := make([]*user, s.options.connections)
	for i := range users {
		users[i] = &user{key: "00000000000000000000000000000000",
			secret: sign.New([]byte("secret"))}
	}
	s.clients, err = dial(s.address, len(users), users, func(int) string { return tradedPair })
	return err
}

// noop starts a yardstick that answers with a body of that length.
func (s *server) noop(length int, args ...string) (address string, err error) {
	if address, err = freeAddress(); err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if err := s.child(os.Stderr, self,
		append([]string{"-noop", address, "-length", strconv.Itoa(length)}, args...)...); err !=
		nil {
		return "", err
	}
	return address, await("the yardstick", func() bool { return dials(address) })
}

// serveNothing answers every request with the same order, or with a body of that length; with a
// log, each when it is durable there.
func serveNothing(address string, length int, log string) error {
	status, body := 201,
		[]byte(
			`{"success":true,"type":"sell","date":1795241513.443573,"oid":1,"price":50000,"amount":0.5,"amount_filled":0,"amount_original":0.5,"trades":[]}`)
	if length > 0 {
		status, body = 200, bytes.Repeat([]byte{'x'}, length)
	}
	failed := make(chan error, 2)
	var commits *committer
	if log != "" {
		f, err := createLog(log)
		if err != nil {
			return err
		}
		commits = newCommitter(f.append)
		go func() { failed <- commits.run() }()
	}
	s := &fasthttp.Server{NoDefaultServerHeader: true, Handler: func(ctx *fasthttp.RequestCtx) {
		if commits != nil {
			commits.commit(ctx.PostBody())
		}
		ctx.SetStatusCode(status)
		ctx.SetContentType("application/json")
		ctx.Response.SetBodyRaw(body)
	}}
	go func() { failed <- s.ListenAndServe(address) }()
	return <-failed
}

// recordBytes is how many bytes of an exchange's journal a request of the mix takes, with a share
// of its batch. The row of the journal's bytes measures them.
const recordBytes = 53

// A committer makes requests durable: requests that wait during a write form the next one.
type committer struct {
	write func(records []byte) error // until they are durable
	wake  chan struct{}

	mu      sync.Mutex
	forming *commitBatch
}

// A commitBatch has the records that become durable together.
type commitBatch struct {
	records []byte
	durable chan struct{} // closed when it is
}

func newCommitBatch() *commitBatch { return &commitBatch{durable: make(chan struct{})} }

func newCommitter(write func([]byte) error) *committer {
	return &committer{write: write, wake: make(chan struct{}, 1), forming: newCommitBatch()}
}

// commit returns when the request is durable. It writes only as much of the request as a record
// has.
func (c *committer) commit(request []byte) {
	var record [recordBytes]byte
	copy(record[:], request)
	c.mu.Lock()
	b := c.forming
	b.records = append(b.records, record[:]...)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default: // it will look anyway
	}
	<-b.durable
}

// run writes until that fails.
func (c *committer) run() error {
	for range c.wake {
		next := newCommitBatch()
		c.mu.Lock()
		b := c.forming
		c.forming = next
		c.mu.Unlock()
		if len(b.records) > 0 { // otherwise the batch before had all of this wake-up
			if err := c.write(b.records); err != nil {
				return err
			}
		}
		close(b.durable)
	}
	return nil
}

// A commitLog is a file that is written in a circle. All of the file has been written before, so a
// sync only writes the records. No file system asks less of a journal.
type commitLog struct {
	*os.File
	at int64
}

const logBytes = 32 << 20

func createLog(name string) (*commitLog, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(make([]byte, logBytes)); err != nil {
		return nil, err
	}
	return &commitLog{File: f}, f.Sync()
}

func (l *commitLog) append(records []byte) error {
	if l.at+int64(len(records)) > logBytes {
		l.at = 0
	}
	if _, err := l.WriteAt(records, l.at); err != nil {
		return fmt.Errorf("writing the log: %w", err)
	}
	l.at += int64(len(records))
	return datasync(l.File)
}
