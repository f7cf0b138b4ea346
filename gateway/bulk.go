package gateway

import (
	"net"
	"slices"
	"sync"
)

// Answers above keptBody stay in memory until their clients have taken them, which may be as long
// as timing.write_timeout_ms. limits.answers_bytes bounds how many bytes that is for all clients
// together: else some hundred connections that ask for deep books and read nothing would take all
// memory. What several answers share counts once, for the account or address whose answer was the
// first, and each of them has a quarter.
type bulk struct {
	most int64 // bytes

	mu     sync.Mutex
	held   int64 // bytes
	uses   map[*byte]*inUse
	shares map[asker]int64 // bytes by the client for which they came
}

// inUse is a text that answers are written from.
type inUse struct {
	answers int
	size    int64
	asker   asker // whose first answer it was
}

// askerShare is the part of it that texts may take that came for one account or address.
const askerShare = 4

// theText tells texts apart by their last byte in memory, which parts of one have in common.
func theText(t []byte) *byte { return &t[:cap(t)][cap(t)-1] }

// take notes that an answer for a client is written from some texts, all of them or none: false, it
// would be too much. One answer is always possible, however large, and so is one that must be.
func (m *bulk) take(texts [][]byte, from asker, must bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	more := int64(0)
	for _, t := range texts {
		if len(t) > 0 && m.uses[theText(t)] == nil {
			more += int64(cap(t))
		}
	}
	share := m.shares[from]
	if !must && more > 0 && (m.held > 0 && m.held+more > m.most ||
		share > 0 && share+more > m.most/askerShare) {
		return false
	}
	if m.uses == nil {
		m.uses, m.shares = make(map[*byte]*inUse), make(map[asker]int64)
	}
	for _, t := range texts {
		if len(t) == 0 {
			continue
		}
		u := m.uses[theText(t)]
		if u == nil {
			u = &inUse{size: int64(cap(t)), asker: from}
			m.uses[theText(t)] = u
			m.held += u.size
			m.shares[from] += u.size
		}
		u.answers++
	}
	return true
}

// giveBack ends what take began.
func (m *bulk) giveBack(texts [][]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range texts {
		if len(t) == 0 {
			continue
		}
		u := m.uses[theText(t)]
		if u.answers--; u.answers > 0 {
			continue
		}
		delete(m.uses, theText(t))
		m.held -= u.size
		if m.shares[u.asker] -= u.size; m.shares[u.asker] == 0 {
			delete(m.shares, u.asker)
		}
	}
}

// A bulkBody is a large answer. The server writes it, and closes it when that is over, however it
// ended.
type bulkBody struct {
	net.Buffers // still to be written
	bulk        *bulk
	texts       [][]byte
}

func (m *bulk) body(texts [][]byte) *bulkBody {
	return &bulkBody{Buffers: slices.Clone(texts), bulk: m, texts: texts}
}

// Close implements io.Closer. The server may call it again.
func (b *bulkBody) Close() error {
	if b.texts != nil {
		b.bulk.giveBack(b.texts)
		b.texts, b.Buffers = nil, nil
	}
	return nil
}
