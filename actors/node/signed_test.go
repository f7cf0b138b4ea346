package node

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/core/wire"
	"exchange/persistence/line"
)

// An observer receives no server secrets, neither over its connections nor in its state, even while
// clients send signed requests there.
func TestObserverReceivesNoServerSecrets(t *testing.T) {
	bubble(t, func(t *testing.T) {
		v := newObservatory(t, nil)
		r := v.next()
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": coin})
		must[actors.Admin](t)(r.CreateAccount("planted-operator", "eve", "planted@mail.example"))
		must[actors.Admin](t)(r.CreateKey("planted-operator", "eve", "key-of-eve",
			"planted-secret-of-eve",
			event.AllPermissions, nil))
		must[actors.Admin](t)(r.Deposit("planted-operator", "eve", "BTC", coin,
			"planted-reference"))
		x := v.observe("o1", nil).serves(t)
		x.does(x.placed(trading.Sell, 100e8, coin, "")).Free()
		x.key = x.Commands.Key([]byte("key-of-eve"))
		_, err := x.Commands.Verify(signed(x.key), 1)
		if a, ok := errors.AsType[*actors.RemoteAnswer](err); !ok || !a.Unproven {
			t.Errorf("a wrong signature: %v", err)
		}
		x.sameAs(r, v.cluster)
		var whole []byte
		succeeds(t, x.node.onSide(func() { whole = x.node.committed.State().AppendTo(nil) }))
		if !v.cables.has("key-of-eve") || !bytes.Contains(whole, []byte("key-of-eve")) {
			t.Error("no traffic was captured")
		}
		for _, text := range []string{"planted", "mail.example"} {
			if v.cables.has(text) || bytes.Contains(whole, []byte(text)) {
				t.Errorf("an observer receives a text with %q", text)
			}
		}
		if !x.key.Account.HasEmail() {
			t.Error("that there is an address is lost")
		}
		must[actors.Admin](t)(r.RevokeKey("planted-operator", "key-of-eve"))
		x.sameAs(r, v.cluster)
		if k := x.Commands.Key([]byte("key-of-eve")); k != nil || !x.key.Revoked() {
			t.Error("a revoked key is known")
		}
		if _, err := x.Commands.Verify(signed(x.key), 2); !errors.Is(err, committed.ErrKeyRevoked) {
			t.Errorf("a revoked key: %v", err)
		}
	})
}

// A thief has an observer's certificate, and nothing else.
type thief struct {
	*testing.T
	line    *line.Line
	seed    challenger  // of its own challenges
	answers chan []byte // kind and message
	ended   chan error
}

// steals opens a connection for commands with an observer's certificate.
func (v *observatory) steals(t *testing.T, x *observer, r *termAt) *thief {
	t.Helper()
	_, market := v.stores[r.at].Market()
	digest := sha256.Sum256(market)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, seed, err := openTo(ctx, x.store, v.list[r.at].Name, callCommands, digest[:])
	succeeds(t, err)
	w := line.New(conn, lineOptions(&x.node.opts.Timing))
	h := &thief{T: t, line: w, seed: challenger(seed), answers: make(chan []byte, 9),
		ended: make(chan error, 1)}
	go func() {
		h.ended <- h.line.Run(func(m []byte) error {
			h.answers <- bytes.Clone(m)
			return nil
		})
	}()
	t.Cleanup(h.line.Close)
	return h
}

func (h *thief) says(add func(b []byte) []byte) {
	h.Helper()
	succeeds(h.T, h.line.Send(add))
}

// refusal returns why a request was refused.
func (h *thief) refusal() error {
	h.Helper()
	p := actors.Parse(<-h.answers)
	p.Byte()
	p.Uint()
	p.Uint()
	return p.Error()
}

// passing is the message that forwards a key's signed request with that number of commands.
func passing(key *directory.Key, nonce uint64, commands int) func(b []byte) []byte {
	return func(b []byte) []byte {
		return appendSignedRequest(wire.AppendUints(append(b, forwardSigned), 1), key, nonce, false,
			commands)
	}
}

// An observer's certificate sends no command and takes no nonce of a key whose signature it has
// not: not as one that a client has signed, nor as one of a socket that has logged in, nor as one
// that the observer has verified.
func TestObserverCertificateGrantsNoAccount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		v := newObservatory(t, nil)
		r := v.next()
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": 100 * coin})
		key := r.Key([]byte("key-of-ann"))
		pair := r.Pairs()[0]
		order := actors.NewOrder(key, 9, &actors.OrderRequest{Pair: pair, Side: trading.Sell,
			Price: 100e8, Amount: coin})
		text := actors.AppendCommand(nil, order)
		x := v.observe("stolen", nil)
		h := v.steals(t, x, r)
		guessed := key.With(&directory.Signed{Text: text, Signature: []byte("guessed")})
		login := key.With(&directory.Signed{Form: directory.SignedLogin,
			Signature: []byte("secret"),
			Text:      []byte(strings.Repeat("5e", actors.ChallengeBytes))})
		unsigned := key.With(&directory.Signed{Text: text})
		for what, c := range map[string]struct {
			says func(b []byte) []byte
			want error
		}{
			"a guessed signature":             {passing(guessed, 9, 1), new(actors.RemoteAnswer)},
			"a socket without a login":        {passing(unsigned, 0, 1), actors.ErrNotLoggedIn},
			"a login over another connection": {passing(login, 0, 0), actors.ErrNotLoggedIn},
			"a session without a login": {func(b []byte) []byte {
				b = wire.AppendText(wire.AppendUints(append(b, forwardCommands), 1), key.Public)
				b = wire.AppendUints(wire.AppendFlag(wire.AppendUints(b, 0), true), 1)
				return actors.AppendCommand(b, actors.NewSession(key, &actors.Session{Number: 1,
					Seconds: 5}))
			}, actors.ErrNotLoggedIn},
		} {
			h.says(c.says)
			err := h.refusal()
			if a, is := errors.AsType[*actors.RemoteAnswer](err); !errors.Is(err, c.want) &&
				!(is && a.Unproven) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for what, says := range map[string]func(b []byte) []byte{
			"an order of its own words": func(b []byte) []byte {
				b = wire.AppendText(wire.AppendUints(append(b, forwardCommands), 1), key.Public)
				return append(wire.AppendUints(wire.AppendFlag(wire.AppendUints(b, 9), false), 1),
					text...)
			},
			"an order of a socket": func(b []byte) []byte {
				b = wire.AppendText(wire.AppendUints(append(b, forwardCommands), 1), key.Public)
				return append(wire.AppendUints(wire.AppendFlag(wire.AppendUints(b, 0), true), 1),
					text...)
			},
			"the nonce of a session": func(b []byte) []byte {
				b = wire.AppendText(wire.AppendUints(append(b, forwardCommands), 1), key.Public)
				b = wire.AppendUints(wire.AppendFlag(wire.AppendUints(b, 1<<62), false), 1)
				return actors.AppendCommand(b, actors.NewSession(key, &actors.Session{Number: 1,
					Seconds: 5}))
			},
			"the nonce of a read": func(b []byte) []byte {
				b = wire.AppendText(wire.AppendUints(append(b, forwardTake), 1), key.Public)
				return append(wire.AppendUints(b, 1<<62), 0)
			},
		} {
			h := v.steals(t, x, r)
			h.says(says)
			select {
			case err := <-h.ended:
				if err == nil || len(h.answers) > 0 {
					t.Errorf("%s: %v", what, err)
				}
			case m := <-h.answers:
				t.Errorf("%s: it is answered %x", what, m)
			}
		}
		b, err := x.store.Ask(t.Context(), appendRead(nil, guessed, 1<<62))
		a, p := new(actors.RemoteAnswer), actors.Parse(b)
		if p.Answer(a); err != nil || p.Done() != nil || a.Status != 401 || !a.Unproven {
			t.Errorf("a read with a guessed signature: %+v, %v", a, err)
		}
		for what, read := range map[string][]byte{
			"a read without a signature": appendRead(nil, unsigned, 1<<62),
			"a read by a login":          appendRead(nil, login, 1<<62),
			"a read without a nonce":     appendRead(nil, guessed, 0),
		} {
			if b, err := x.store.Ask(t.Context(), read); !errors.Is(err, line.ErrLost) {
				t.Errorf("%s: %x, %v", what, b, err)
			}
		}
		q := committed.OpenOrders{Limit: 9}
		if err := r.Ask(&q, key, 1); err != nil || len(q.Orders) > 0 {
			t.Errorf("orders %+v, %v", q.Orders, err)
		}
	})
}

// A client that logs in through a thief lends it its commands, and no nonce: neither are nonces
// taken without a signature, nor is a signed request taken again without one.
func TestLoginThroughObserverTakesNoNonce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		v := newObservatory(t, nil)
		r := v.next()
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": 100 * coin})
		key := r.Key([]byte("key-of-ann"))
		order := actors.NewOrder(key, 9, &actors.OrderRequest{Pair: r.Pairs()[0],
			Side:  trading.Sell,
			Price: 100e8, Amount: coin})
		h := v.steals(t, v.observe("stolen", nil), r)
		login := key.With(&directory.Signed{Form: directory.SignedLogin,
			Signature: []byte("secret"), Text: []byte(h.seed.challenge(1))})
		h.says(passing(login, 0, 0))
		succeeds(t, h.refusal())
		unsigned := key.With(&directory.Signed{Text: actors.AppendCommand(nil, order)})
		for what, says := range map[string]func(b []byte) []byte{
			"an order":                 passing(unsigned, 1<<62, 1),
			"a login":                  passing(login, 1<<62, 0),
			"no nonce, what is signed": passing(signed(key, order), 0, 1),
		} {
			h.says(says)
			if err := h.refusal(); !errors.Is(err, actors.ErrNotLoggedIn) {
				t.Errorf("%s: %v", what, err)
			}
		}
		q := committed.OpenOrders{Limit: 9}
		if err := r.Ask(&q, key, 1); err != nil || len(q.Orders) > 0 {
			t.Errorf("orders %+v, %v", q.Orders, err)
		}
	})
}

// A member has verified its clients' signatures, but its commands are not trusted: the key's
// permission, and the pair's minimum value.
func TestForwardedCommandsAreCheckedAgainstTheirKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, func(_ int, o *actors.Options) {
			o.Pairs[0].MinimumOrderValue = (101 * coin).Balance()
		})
		r := c.next()
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": 100 * coin})
		must[actors.Admin](t)(r.CreateKey("op", "ann", "key-that-reads", "secret",
			event.PermissionRead,
			nil))
		b := c.branch((r.at + 1) % len(c.nodes))
		if _, err := b.Commands.Do(b.placed(trading.Sell, 100e8, coin, "")); !errors.Is(err,
			actors.ErrNotConfirmed) {
			t.Errorf("an order below the minimum: %v", err)
		}
		for what, s := range map[string]actors.SpecialRequest{
			"a post-only":     {Instructions: trading.Instructions{PostOnly: true}},
			"an own mode":     {SelfTradeGiven: true},
			"one with an end": {Instructions: trading.Instructions{ExpireUs: math.MaxInt64}},
			"one that waits":  {Trigger: trading.Trigger{Price: 110e8, When: trading.Rise}},
			"one of two halves": {Instructions: trading.Instructions{
				OCO: trading.OCO{Trigger: 90e8, Price: 80e8}}},
			"a market": {Instructions: trading.Instructions{Market: true, IOC: true}},
			"a sum": {Instructions: trading.Instructions{Market: true, IOC: true,
				Quote: 100 * coin}},
		} {
			w := &actors.OrderRequest{Pair: b.Pairs()[0], Side: trading.Sell, Price: 100e8,
				Amount:  coin,
				Special: &s}
			if s.Quote != 0 {
				w.Side, w.Amount = trading.Buy, 0
			}
			_, err := b.Commands.Do(actors.NewOrder(b.key, b.next(), w))
			if !errors.Is(err, actors.ErrNotConfirmed) {
				t.Errorf("%s order below the minimum: %v", what, err)
			}
			b.connected()
		}
		b.does(b.placed(trading.Sell, 102e8, coin, "")).Free()
		for _, x := range []func(*directory.Key) *actors.Command{
			func(k *directory.Key) *actors.Command {
				return actors.NewOrder(k, 1, &actors.OrderRequest{Pair: b.Pairs()[0],
					Side:  trading.Sell,
					Price: 102e8, Amount: coin})
			},
			func(k *directory.Key) *actors.Command {
				return actors.NewCancelAll(k, 2,
					actors.CancelFilter{})
			},
			func(k *directory.Key) *actors.Command {
				return actors.NewWithdrawal(k, 3, 1, coin,
					"there")
			},
		} {
			b.connected()
			if _, err := b.Commands.Do(x(b.Commands.Key([]byte("key-that-reads")))); err == nil {
				t.Error("a key that only reads sends commands")
			}
		}
		q := committed.OpenOrders{Limit: 9}
		if err := r.Ask(&q, r.Key([]byte("key-of-ann")), 99); err != nil || len(q.Orders) != 1 {
			t.Errorf("orders %+v, %v", q.Orders, err)
		}
	})
}

// A long request takes the slots of many commands, and never more than there may be.
func TestLongSignedRequestsTakeManySlots(t *testing.T) {
	for bytes, want := range map[int]int{0: 75, bytesOfSlot: 37, forwardBody: 2} {
		f := &forwardingSession{slots: 100}
		n := 0
		for ; n < 200; n++ {
			x := new(forwardedRequest)
			x.signed.answers, x.signed.Signed = 1, &directory.Signed{Text: make([]byte, bytes)}
			if !f.hasRoom(x) {
				break
			}
		}
		if n != want {
			t.Errorf("%d requests of %d bytes have room, want %d", n, bytes, want)
		}
	}
}
