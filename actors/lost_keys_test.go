package actors

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/state"
	"exchange/persistence"
)

// breaking is a store that takes a few appends and no more.
type breaking struct {
	persistence.Store
	takes int
}

func (s *breaking) Append(ctx context.Context, t persistence.Token, prev, next uint64,
	batch []byte) error {
	if s.takes--; s.takes < 0 {
		return fmt.Errorf("%w: the start breaks off", persistence.ErrInvalid)
	}
	return s.Store.Append(ctx, t, prev, next, batch)
}

// A start whose server's key is lost is refused, until it is told to revoke what was sealed with
// that key. Wherever it breaks off, the next one is refused again or goes on.
func TestAStartRevokesLostKeysWhenItIsTold(t *testing.T) {
	onTeller(t, func(o *Options) { o.Limits.KeysPerAccount = appendedAtOnce },
		func(t *testing.T, b *teller) {
			more := must[Admin](t)(b.e.CreateAccount("test", "mute", ""))
			for i := range 2 * appendedAtOnce / 3 {
				for _, account := range []string{"ann", more.Account} {
					must[Admin](t)(b.e.CreateKey("test", account, fmt.Sprint(account, "-", i),
						"secret", event.AllPermissions, nil))
				}
			}
			b.expect(b.ask(coin), "withdraw 1")
			code := b.code(1)
			b.e.Abandon()

			var made *seal.Sealer
			b.o.Sealer = func(sealed bool) (*seal.Sealer, error) {
				if made == nil && sealed {
					return nil, fs.ErrNotExist
				}
				made = must[*seal.Sealer](t)(seal.New(bytes.Repeat([]byte{7}, seal.KeyBytes)))
				return made, nil
			}
			for takes := 0; ; takes++ {
				if _, err := Start(context.Background(), b.o); !errors.Is(err, fs.ErrNotExist) &&
					!errors.Is(err, seal.ErrOtherKey) {
					t.Fatalf("behind %d appends a start that was told nothing: %v", takes, err)
				}
				told := b.o
				told.Store, told.RevokeLost = &breaking{b.store, takes}, true
				told.Mail = unsent
				e, err := Start(context.Background(), told)
				if err == nil {
					e.Abandon()
					break
				}
				if !errors.Is(err, persistence.ErrInvalid) || takes > 5 {
					t.Fatalf("behind %d appends: %v", takes, err)
				}
			}
			b.e = start(t, b.o)
			if b.e.Key([]byte("key-of-ann")) != nil || b.e.Key([]byte("mute-0")) != nil {
				t.Error("a key whose secret is lost can be used")
			}
			eventually(t, "the owner is told", func() bool {
				return slices.ContainsFunc(b.post.delivered(), func(m Mail) bool {
					return m.Change.Kind == state.KeysLost && m.Change.Account != 0 &&
						m.To == "ann@example.org"
				})
			})
			eventually(t, "the outbox is empty", func() bool {
				return b.e.meter.Outbox.Load() == 0
			})
			must[Admin](t)(b.e.CreateKey("test", "ann", "key-anew", "secret",
				event.AllPermissions, nil))
			b.key = b.e.Key([]byte("key-anew"))
			b.expect(b.confirm(1, code), "code expired") // and no wrong one, which costs a try
			b.restart()
			b.key = b.e.Key([]byte("key-anew"))
		})
}
