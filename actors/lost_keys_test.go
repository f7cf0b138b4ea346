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

// breaking is a store that accepts a few appends and no more.
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

// A start whose server key is lost is refused, unless it is to revoke everything sealed with that
// key. Wherever it stops, the next one is refused again or continues.
func TestAStartRevokesLostKeysOnRequest(t *testing.T) {
	onTeller(t, func(o *Options) { o.Limits.KeysPerAccount = appendBatch },
		func(t *testing.T, b *teller) {
			more := must[Admin](t)(b.e.CreateAccount("test", "mute", ""))
			for i := range 2 * appendBatch / 3 {
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
					t.Fatalf("after %d appends a start without the option: %v", takes, err)
				}
				withOption := b.o
				withOption.Store, withOption.RevokeLost = &breaking{b.store, takes}, true
				withOption.Mail = unsent
				e, err := Start(context.Background(), withOption)
				if err == nil {
					e.Abandon()
					break
				}
				if !errors.Is(err, persistence.ErrInvalid) || takes > 5 {
					t.Fatalf("after %d appends: %v", takes, err)
				}
			}
			b.e = start(t, b.o)
			if b.e.Key([]byte("key-of-ann")) != nil || b.e.Key([]byte("mute-0")) != nil {
				t.Error("a key whose secret is lost can be used")
			}
			eventually(t, "the owner receives a mail", func() bool {
				return slices.ContainsFunc(b.post.delivered(), func(m Mail) bool {
					return m.Change.Kind == state.KeysLost && m.Change.Account != 0 &&
						m.To == "ann@example.org"
				})
			})
			eventually(t, "the outbox is empty", func() bool {
				return b.e.meter.Outbox.Load() == 0
			})
			must[Admin](t)(b.e.CreateKey("test", "ann", "key-again", "secret",
				event.AllPermissions, nil))
			b.key = b.e.Key([]byte("key-again"))
			b.expect(b.confirm(1, code), "code expired") // and no wrong one, which costs a try
			b.restart()
			b.key = b.e.Key([]byte("key-again"))
		})
}
