package gateway

import (
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// A lingering close lets a client read the answer to a request that was not read to its end. If the
// server closed at once, the client's further bytes would reset the connection, and the answer
// would be lost. So the server stops sending, reads and drops the client's bytes, and then closes.

// Bounds of lingering closes.
const (
	mostLingering = 256 // at once, of one listener
	// of one address, except this machine and trusted proxies
	mostLingeringOfAddress = 32
	lingerTimeout          = 2 * time.Second // for each
	lingerBytes            = 1 << 20         // from each client
)

// First steps of Close.
const (
	lingerNot uint32 = iota
	lingerWanted
	lingerBegun // or over, or not wanted any more
)

// lingerAfter closes the connection in this way after the answer.
func lingerAfter(ctx *fasthttp.RequestCtx, c *boundedConn) {
	ctx.SetConnectionClose()
	if c != nil {
		c.lingering.CompareAndSwap(lingerNot, lingerWanted)
	}
}

// Close implements net.Conn. It waits for a client only after lingerAfter, and once: another call
// ends the wait.
func (c *boundedConn) Close() error {
	if c.lingering.Swap(lingerBegun) == lingerWanted {
		c.linger()
	}
	c.places.leave(c) // before the client sees the end: it may come again at once
	return c.Conn.Close()
}

// cut closes a connection at once.
func (c *boundedConn) cut() {
	c.lingering.Store(lingerBegun)
	c.Close() //nolint:errcheck // nothing is left to do
}

var lingerBuffers = sync.Pool{New: func() any { return new([16 << 10]byte) }}

func (c *boundedConn) linger() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return
	}
	loser, ok := c.places.mayLinger(c)
	if loser != nil {
		loser.cut()
	}
	if !ok {
		return
	}
	defer c.places.lingered(c)
	if half.CloseWrite() != nil ||
		c.Conn.SetReadDeadline(time.Now().Add(c.places.patience)) != nil {
		return
	}
	b := lingerBuffers.Get().(*[16 << 10]byte)
	defer lingerBuffers.Put(b)
	for rest := lingerBytes; rest > 0; {
		n, err := c.Conn.Read(b[:min(rest, len(b))])
		if err != nil {
			return
		}
		rest -= n
	}
}

var _ net.Conn = (*boundedConn)(nil)
