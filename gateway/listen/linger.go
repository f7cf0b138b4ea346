package listen

import (
	"sync"
	"time"
)

// A lingering close lets a client read the answer to a request that was not read completely. If the
// server closed at once, the client's further bytes would reset the connection, and the answer
// would be lost. So the server stops sending, reads and drops the client's bytes, and then closes.

// lingerBytes is the most that a lingering close reads from its client.
const lingerBytes = 8 << 20

// First steps of Close.
const (
	lingerNot uint32 = iota
	lingerWanted
	lingerBegun // or over, or no longer wanted
)

// Linger lets Close linger.
func (c *Conn) Linger() { c.lingering.CompareAndSwap(lingerNot, lingerWanted) }

// Close implements net.Conn. It waits for a client only after Linger, and once: another call ends
// the wait.
func (c *Conn) Close() error {
	if c.lingering.Swap(lingerBegun) == lingerWanted {
		c.linger()
	}
	c.places.leave(c) // before the client sees the end: it may come again at once
	return c.Conn.Close()
}

// Cut closes a connection at once.
func (c *Conn) Cut() {
	c.lingering.Store(lingerBegun)
	c.Close() //nolint:errcheck // nothing is left to do
}

var lingerBuffers = sync.Pool{New: func() any { return new([16 << 10]byte) }}

func (c *Conn) linger() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return
	}
	loser, ok := c.places.mayLinger(c)
	if loser != nil {
		loser.Cut()
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
