package folder

import (
	"encoding/hex"
	"errors"
	"slices"

	"exchange/persistence"
)

// maxIDs is how many ids of the store, and of the archive, are kept: the newest ones.
const maxIDs = 16

// A Memory holds the ids of the past and present histories of the folder's store, or of its
// archive. Another store or archive in its place has none of them, and an empty one has none at
// all. The zero id is that of a store that was restored, and not served since.
//
//tidy:keep Store and Archive return it
type Memory struct {
	identity *Identity
	what     string
	in       func(*stored) *[]string
	forget   func(*stored)
}

// Store is the memory of the folder's store.
func (i *Identity) Store() *Memory {
	return &Memory{i, "the history of the store", func(s *stored) *[]string { return &s.Store },
		func(s *stored) { *s = stored{Archive: s.Archive} }} // the claims were to that store
}

// Archive is the memory of the folder's archive.
func (i *Identity) Archive() *Memory {
	return &Memory{i, "the history of the archive", func(s *stored) *[]string { return &s.Archive },
		func(s *stored) { s.Archive = nil }}
}

// Known returns the ids, the newest last; none: none is recorded.
func (m *Memory) Known() ([]persistence.HistoryID, error) {
	m.identity.mu.Lock()
	defer m.identity.mu.Unlock()
	s, err := m.identity.read()
	if err != nil {
		return nil, err
	}
	return histories(*m.in(&s))
}

// Remember makes an id one of the newest two, durably: a store has its own id beside its history's.
func (m *Memory) Remember(id persistence.HistoryID) error {
	ids, err := m.Known()
	if newest := ids[max(0, len(ids)-2):]; err != nil || slices.Contains(newest, id) {
		return err
	}
	text := hex.EncodeToString(id[:])
	return m.identity.change(m.what, func(s *stored) {
		list := slices.DeleteFunc(*m.in(s), func(x string) bool { return x == text })
		*m.in(s) = append(list[max(0, len(list)-maxIDs+1):], text)
	})
}

// Forget forgets all ids, durably: another store or archive begins there.
func (m *Memory) Forget() error { return m.identity.change(m.what, m.forget) }

// histories reads ids in the file's form.
func histories(texts []string) (ids []persistence.HistoryID, err error) {
	for _, text := range texts {
		var id persistence.HistoryID
		b, err := hex.DecodeString(text)
		if err != nil || copy(id[:], b) != len(b) || len(b) != len(id) {
			return nil, errors.New("a history in it is not 32 hexadecimal digits")
		}
		ids = append(ids, id)
	}
	return ids, nil
}
