package actors

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/persistence"
)

// A keySource is the way to a member, as a test says.
type keySource struct {
	mu    sync.Mutex
	link  uint64        // guarded by mu
	err   error         // guarded by mu
	asked int           // guarded by mu
	hold  chan struct{} // answers wait for it; nil: they do not
}

func (s *keySource) Link() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link
}

func (s *keySource) Material(context.Context, uint32, uint64) ([]byte, error) {
	s.mu.Lock()
	s.asked++
	err, hold := s.err, s.hold
	s.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte("secret"))
	return sum[:], nil
}

func (s *keySource) set(link uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link, s.err = link, err
}

// What verifies a key's signatures is asked for once, and again when the key was dropped, when
// another member is followed, and when there was no answer.
func TestTheMaterialOfAKeyIsForgottenInTime(t *testing.T) {
	source := &keySource{link: 1}
	l := &lentKeys{source: source, seq: func() uint64 { return 0 }, wait: time.Minute,
		fresh: func() any { return new(portable) }, of: map[uint32]*lentKey{}}
	key := &directory.Key{Number: 3}
	wants := func(what string, asked int, want error) {
		t.Helper()
		if _, err := l.material(key); !errors.Is(err, want) || source.asked != asked {
			t.Errorf("%s: %v, asked %d times", what, err, source.asked)
		}
	}
	wants("the first time", 1, nil)
	wants("again", 1, nil)
	l.drop(3)
	wants("dropped", 2, nil)
	source.set(2, nil)
	wants("another link", 3, nil)
	source.set(3, persistence.ErrNotFound)
	wants("an unknown key", 4, committed.ErrKeyRevoked)
	source.set(3, errors.New("busy"))
	wants("no answer", 5, source.err)
	source.set(3, nil)
	wants("an answer again", 6, nil)
	l.of = map[uint32]*lentKey{}
	for n := range uint32(maxLentKeys + 50) {
		l.find(n + 10)
	}
	if len(l.of) > maxLentKeys {
		t.Errorf("%d keys are kept", len(l.of))
	}
	source.hold = make(chan struct{})
	l.drop(3)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := l.material(key); err != nil {
				t.Error(err)
			}
		})
	}
	close(source.hold)
	if all.Wait(); source.asked != 7 {
		t.Errorf("20 at once have asked %d times", source.asked-6)
	}
}

// What only the server needs does not come to an observer, neither over its connections nor into
// its state; and a key that is revoked, or whose account is frozen, is forgotten.
func TestAnObserverIsNotToldWhatOnlyTheServerNeeds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		v := newObservatory(t, nil)
		r := v.next()
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": coin})
		must[Admin](t)(r.CreateAccount("planted-operator", "eve", "planted@mail.example"))
		must[Admin](t)(r.CreateKey("planted-operator", "eve", "key-of-eve", "planted-secret-of-eve",
			event.AllPermissions, nil))
		must[Admin](t)(r.Deposit("planted-operator", "eve", "BTC", coin, "planted-reference"))
		x := v.observe("o1", nil).serves(t)
		x.verifies()
		x.key = x.Commands.Key([]byte("key-of-eve"))
		eventually(t, "the material of eve's key is there", func() bool {
			m, err := x.Commands.Material(x.key)
			return err == nil && m.(*portable).sum == sha256.Sum256([]byte("planted-secret-of-eve"))
		})
		must[Admin](t)(r.Deposit("planted-operator", "eve", "BTC", coin, "planted-another"))
		x.sameAs(r, v.cluster)
		var whole []byte
		err := x.node.onSide(func() { whole = x.node.committed.State().AppendTo(nil) })
		succeeds(t, err)
		if !v.cables.has("key-of-eve") || !bytes.Contains(whole, []byte("key-of-eve")) {
			t.Error("nothing is seen of what crosses")
		}
		for _, text := range []string{"planted", "mail.example"} {
			if v.cables.has(text) || bytes.Contains(whole, []byte(text)) {
				t.Errorf("an observer is told a text with %q", text)
			}
		}
		if !x.key.Account.HasEmail() {
			t.Error("that there is an address is lost")
		}
		must[Admin](t)(r.RevokeKey("planted-operator", "key-of-eve"))
		x.sameAs(r, v.cluster)
		if k := x.Commands.Key([]byte("key-of-eve")); k != nil {
			t.Error("a revoked key is known")
		}
		if _, err := x.Commands.Material(x.key); !errors.Is(err, committed.ErrKeyRevoked) {
			t.Errorf("the material of a revoked key: %v", err)
		}
		x.lent.mu.Lock()
		defer x.lent.mu.Unlock()
		if x.lent.of[x.key.Number] != nil {
			t.Error("the material of a revoked key is kept")
		}
	})
}
