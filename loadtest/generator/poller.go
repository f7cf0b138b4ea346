package generator

import (
	"errors"
	"io"
	"sync"
	"time"
)

// A Poller reads and writes sockets by their numbers, from one goroutine.
type Poller interface {
	// Add makes the poller the owner of a socket or a pipe.
	Add(i int, conn io.ReadWriteCloser) error
	Remove(i int)
	Write(i int, b []byte) error
	Read(i int, b []byte) (n int, err error) // ErrAgain: no data
	// Wait waits for at most d, and appends the numbers of readable ones.
	Wait(d time.Duration, ready []int) ([]int, error)
	Close()
}

// ErrAgain is the error of a Read without data.
var ErrAgain = errors.New("nothing to read yet")

var errPartWritten = errors.New("a request was written in part")

// A portablePoller reads each socket in its own goroutine, on systems without epoll.
type portablePoller struct {
	conns map[int]*portableConn
	ready chan arrival
	timer *time.Timer
}

type portableConn struct {
	io.ReadWriteCloser
	mu  sync.Mutex
	in  []byte
	err error
}

// An arrival holds the connection, too: another one may have its number by now.
type arrival struct {
	i    int
	conn *portableConn
}

func newPortablePoller() *portablePoller {
	t := time.NewTimer(time.Hour)
	return &portablePoller{conns: map[int]*portableConn{}, ready: make(chan arrival, 1024),
		timer: t}
}

func (p *portablePoller) Add(i int, conn io.ReadWriteCloser) error {
	c := &portableConn{ReadWriteCloser: conn}
	p.conns[i] = c
	go func() {
		b := make([]byte, 16<<10)
		for {
			n, err := conn.Read(b)
			c.mu.Lock()
			c.in, c.err = append(c.in, b[:n]...), err
			c.mu.Unlock()
			p.ready <- arrival{i, c}
			if err != nil {
				return
			}
		}
	}()
	return nil
}

func (p *portablePoller) Remove(i int) {
	if c := p.conns[i]; c != nil {
		c.Close()
		delete(p.conns, i)
	}
}

func (p *portablePoller) Write(i int, b []byte) error {
	_, err := p.conns[i].Write(b)
	return err
}

func (p *portablePoller) Read(i int, b []byte) (int, error) {
	c := p.conns[i]
	c.mu.Lock()
	defer c.mu.Unlock()
	n := copy(b, c.in)
	c.in = c.in[:copy(c.in, c.in[n:])]
	switch {
	case n > 0:
		return n, nil
	case c.err == nil:
		return 0, ErrAgain
	}
	return 0, c.err
}

func (p *portablePoller) Wait(d time.Duration, ready []int) ([]int, error) {
	p.timer.Reset(d)
	var a arrival
	select {
	case a = <-p.ready:
	case <-p.timer.C:
		return ready, nil
	}
	for {
		if p.conns[a.i] == a.conn {
			ready = append(ready, a.i)
		}
		select {
		case a = <-p.ready:
		default:
			return ready, nil
		}
	}
}

// Close closes the sockets; their readers notice and end too.
func (p *portablePoller) Close() {
	n := len(p.conns)
	for i := range p.conns {
		p.Remove(i)
	}
	go func() { // drain their last arrivals
		for range n {
			select {
			case <-p.ready:
			case <-time.After(time.Second):
				return
			}
		}
	}()
}
