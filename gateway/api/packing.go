package api

import (
	"slices"
	"sync"

	"github.com/valyala/fasthttp"
)

// leastPacked is the size in bytes of the smallest answer that is sent packed: 200 levels of a
// book, or as many candles. Below it packing costs more than it saves.
const leastPacked = 16 << 10

// mostPacked is the size in bytes of the largest one: packing takes memory that no Budget counts,
// and 5 ns for each byte.
const mostPacked = 2 << 20

// packLevel is the level of gzip: 720 candles of 75 KB take 0.4 ms and become 19 KB. Level 6 takes
// 0.95 ms for 18 KB.
const packLevel = fasthttp.CompressBestSpeed + 1

// IsBulky reports whether a public answer is so large that a client which takes gzip gets it
// packed. Private answers never are: their size would tell what they repeat of a request.
func (c *Call) IsBulky() bool {
	bytes := len(c.body) + lengthOf(c.pieces)
	return c.Status == fasthttp.StatusOK && c.Key == nil && leastPacked <= bytes &&
		bytes <= mostPacked
}

// Pack packs an answer that IsBulky, by gzip. What clients ask for of one state of a book or a
// chart is packed once for all of them.
func (c *Call) Pack() {
	plain, pieces := c.body, slices.Clone(c.pieces) // another client's call may pack them
	pack := sync.OnceValue(func() *text {
		if len(pieces) > 0 {
			plain = make([]byte, 0, lengthOf(pieces))
			for _, p := range pieces {
				plain = append(plain, p.json...)
			}
		}
		return &text{json: fasthttp.AppendGzipBytesLevel(nil, plain, packLevel)}
	})
	if c.shown != nil {
		pack = c.shown.pack(c.span, pack)
	}
	t := pack()
	c.body, c.pieces = c.body[:0], append(c.pieces[:0], piece{t.json, t})
}

// pack returns what packs an answer of a view: one that another client has asked for, or a new one.
func (s *shownView) pack(what span, pack func() *text) func() *text {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.packed == nil || s.has != what {
		s.packed, s.has = pack, what
	}
	return s.packed
}
