package api

import (
	"bytes"
	"slices"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/valyala/fasthttp"
)

// leastPacked is the size in bytes of the smallest packed answer: 200 levels of a book, or 200
// candles. Below it packing costs more than it saves.
const leastPacked = 16 << 10

// mostPacked is the size in bytes of the largest packed answer: packing takes memory outside the
// Budget, and 5 ns for each byte.
const mostPacked = 2 << 20

// packLevel is the gzip level: 720 candles of 75 KB take 0.4 ms and become 19 KB. Level 6 takes
// 0.95 ms for 18 KB.
const packLevel = gzip.BestSpeed + 1

// gzipWriters are gzip.Writers of that level: one has tables of some 100 KB.
var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, packLevel)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return w
}}

// IsBulky reports whether a public answer is large enough to be packed for a client that takes
// gzip. Private answers are never packed: their size would reveal the parts that repeat the
// request.
func (c *Call) IsBulky() bool {
	size := len(c.body) + lengthOf(c.pieces)
	return c.Status == fasthttp.StatusOK && c.Key == nil && leastPacked <= size &&
		size <= mostPacked
}

// Pack compresses an answer that IsBulky, by gzip: once for each state of a book or a chart.
func (c *Call) Pack() {
	plain, pieces := c.body, slices.Clone(c.pieces) // pack may run in another client's call
	pack := sync.OnceValue(func() *text {
		if len(pieces) > 0 {
			plain = make([]byte, 0, lengthOf(pieces))
			for _, p := range pieces {
				plain = append(plain, p.json...)
			}
		}
		var b bytes.Buffer
		w := gzipWriters.Get().(*gzip.Writer)
		defer gzipWriters.Put(w)
		w.Reset(&b)
		_, _ = w.Write(plain) // a buffer takes everything
		_ = w.Close()
		return &text{json: b.Bytes()}
	})
	if c.shown != nil {
		pack = c.shown.pack(c.span, pack)
	}
	t := pack()
	c.body, c.pieces = c.body[:0], append(c.pieces[:0], piece{t.json, t})
}

// pack returns the packer of an earlier identical request for the view; otherwise it keeps and
// returns pack.
func (s *shownView) pack(what span, pack func() *text) func() *text {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.packed == nil || s.has != what {
		s.packed, s.has = pack, what
	}
	return s.packed
}
