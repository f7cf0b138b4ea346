package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// An asking is clients that send orders to whichever node acknowledges them, one after the other.
type asking struct {
	nodes   []clusterNode
	stopped chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex
	newest  time.Time     // when the newest acknowledgement came
	from    string        // the address that it came from
	silence time.Duration // the longest since it was reset
}

const (
	readerCount = 16
	// askPatience is how long a client waits for an answer until it asks another node.
	askPatience = 200 * time.Millisecond
	// askPause is between two nodes that do not acknowledge.
	askPause = 5 * time.Millisecond
)

func newAsking(nodes []clusterNode, users []*user) *asking {
	a := &asking{nodes: nodes, stopped: make(chan struct{}), newest: time.Now()}
	for i, u := range users {
		side := [2]string{"buy", "sell"}[i%2]
		u.places = [][]byte{u.order("amount=0.01&pair=BTC_USDT&price=50000&type=" + side)}
		a.running.Go(func() { a.run(u, i) })
	}
	return a
}

func (a *asking) stop() {
	close(a.stopped)
	a.running.Wait()
}

func (a *asking) run(u *user, at int) {
	nonce := uint64(time.Now().UnixMicro())
	for {
		a.ask(a.nodes[at%len(a.nodes)].address, u, &nonce)
		select {
		case <-a.stopped:
			return
		case <-time.After(askPause):
			at++
		}
	}
}

// ask sends orders to a node until one is not acknowledged in time.
func (a *asking) ask(address string, u *user, nonce *uint64) {
	c, err := net.DialTimeout("tcp", address, askPatience)
	if err != nil {
		return
	}
	defer c.Close()
	for in := bufio.NewReader(c); ; {
		select {
		case <-a.stopped:
			return
		default:
		}
		*nonce++
		putNonce(u.places[0][u.nonceAt:], *nonce)
		if c.SetDeadline(time.Now().Add(askPatience)) != nil {
			return
		}
		if _, err := c.Write(u.places[0]); err != nil {
			return
		}
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			return
		}
		if _, err := in.Discard(int(max(0, r.ContentLength))); err != nil ||
			r.StatusCode != http.StatusCreated {
			return
		}
		a.acknowledged(address)
	}
}

func (a *asking) acknowledged(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.silence = max(a.silence, now.Sub(a.newest))
	a.newest, a.from = now, address
}

// longest has something happen to a node, and returns the longest time without an acknowledgement
// until another node has acknowledged for a while.
func (a *asking) longest(address string, do func() error) (time.Duration, error) {
	a.mu.Lock()
	a.silence = 0
	a.mu.Unlock()
	if err := do(); err != nil {
		return 0, err
	}
	var since time.Time // the first acknowledgement of another node
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(askPause) {
		a.mu.Lock()
		from, silence := a.from, a.silence
		a.mu.Unlock()
		switch {
		case from == address:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > settling:
			return silence, nil
		}
	}
	return 0, fmt.Errorf("no other node than %s has acknowledged in a minute", address)
}
