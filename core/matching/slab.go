package matching

// Numbers instead of pointers: half the size, and nothing for the garbage collector to follow.
// Number 0 means none, so that the zero value of a link is no link.

const (
	blockBits = 9 // 512 records: 24 KiB of orders, 20 KiB of levels, both exact allocator sizes
	blockLen  = 1 << blockBits
)

// A slab holds records of one type in blocks that never move: growing copies no record and takes no
// pause, and a *T stays valid. Records are never returned; owners keep free lists, and start with a
// new slab when few of many records are left.
type slab[T any] struct {
	blocks []*[blockLen]T
	used   uint32 // numbers 1..used are allocated
}

// at returns the record of a number from grow.
func (s *slab[T]) at(n uint32) *T { return &s.blocks[n>>blockBits][n&(blockLen-1)] }

// grow allocates a number that was never used.
func (s *slab[T]) grow() uint32 {
	s.used++
	if s.used == 0 {
		panic("BUG: a book holds more than 2^32-1 orders")
	}
	if int(s.used>>blockBits) == len(s.blocks) {
		s.blocks = append(s.blocks, new([blockLen]T))
	}
	return s.used
}
