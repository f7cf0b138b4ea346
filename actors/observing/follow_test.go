package observing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange/core/event"
	"exchange/core/state"
	"exchange/core/wire"
	"exchange/persistence"
	"exchange/persistence/line"
	"exchange/persistence/memory"
)

// currencyBatch is a batch with one record.
func currencyBatch(prev uint64, code string) batch {
	r := event.Record{Kind: event.KindCurrency,
		Currency: event.Currency{Number: uint16(prev + 1), Code: code}}
	b := r.Append(event.BeginBatch(nil))
	return batch{prev, prev + 1, event.EndBatch(b, 1, prev, 1)}
}

// read reads batches up to at least a sequence, and checks that none is missing. It returns the
// newest.
func read(t *testing.T, s *Store, after, upTo uint64) uint64 {
	t.Helper()
	for after < upTo {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := s.Follow(ctx, after)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Read(t.Context(), after, func(prev, next uint64, data []byte) error {
			b, err := event.OpenBatch(data)
			if err != nil || prev != after || b.Prev != prev || next != prev+1 {
				t.Fatalf("(%d, %d] comes after %d: %v", prev, next, after, err)
			}
			after = next
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return after
}

// An observer with batches resumes after them at another member, without gaps or duplicates. It
// waits for a member that lags behind.
func TestObserverResumesAtAnotherMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newRealm(t)
		a, _ := v.add("a", nil)
		for seq := range uint64(10) {
			a.append(currencyBatch(seq, "C"))
		}
		s := v.open("a", "b", "c")
		at := read(t, s, 0, 5)
		c, _ := v.add("c", nil)
		for seq := range uint64(20) {
			if seq == 10 {
				at = read(t, s, at, 10)
				v.remove("a")
			}
			c.append(currencyBatch(seq, "C"))
		}
		read(t, s, at, 20)
		bytes := 0
		for seq := range uint64(20) {
			bytes += len(currencyBatch(seq, "C").data)
		}
		if n, got := s.Fed(); n != 20 || got < uint64(bytes) || got > uint64(2*bytes) {
			t.Errorf("the feeds have %d batches in %d bytes, 20 in %d have arrived", n, got, bytes)
		}
	})
}

// An observer reports the applied market part before Open returns.
func TestObserverReceivesAppliedMarketPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newRealm(t)
		v.add("a", nil)
		agreed := make(chan string, 100)
		s, err := Open(t.Context(), Options{Name: "o1", Nodes: []string{"a"}, Dial: v.dial,
			Log:    slog.New(slog.DiscardHandler),
			Agreed: func(market []byte) { agreed <- string(market) }})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if got := <-agreed; got != "next" {
			t.Errorf("it gets %q", got)
		}
	})
}

// A leader without news sends heartbeats: the observer does not take it for dead.
func TestQuietLeaderIsNotTakenForDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newRealm(t)
		a, _ := v.add("a", nil)
		a.mu.Lock()
		a.leads, a.leader = true, "a"
		a.mu.Unlock()
		s := v.open("a")
		link := s.Link()
		time.Sleep(10 * silence)
		if now := s.Link(); now != link {
			t.Errorf("connection %d has become %d", link, now)
		}
	})
}

// A connected member that no longer answers is left for another one.
func TestObserverLeavesMemberWithoutLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newRealm(t)
		a, _ := v.add("a", nil)
		s := v.open("a", "b")
		a.mu.Lock()
		a.reach = func(context.Context) (uint64, error) { return 0, errors.New("no majority") }
		a.mu.Unlock()
		v.add("b", nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for {
			if _, err := s.Reach(ctx); err == nil {
				return
			}
			if ctx.Err() != nil {
				t.Fatal("it stays with a member that answers nothing")
			}
			time.Sleep(statusInterval)
		}
	})
}

// Of two processes with one name one is served without interruption, and the other one gets the
// reason of its refusal. After the end of the first, the other one is served.
func TestObserverNameIsUnique(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newRealm(t)
		a, _ := v.add("a", nil)
		a.append(currencyBatch(0, "C"))
		first := v.open("a")
		link := first.Link()
		logged := make(chan string, 100)
		second := &Store{o: Options{Name: "o1", Nodes: []string{"a"}, Dial: v.dial,
			Log: slog.New(slog.NewTextHandler(writes{logged}, nil)), Silence: silence,
			buffer: usualBuffer}, process: first.process + 1, changed: make(chan struct{}),
			done: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		go second.run(ctx)
		defer func() { cancel(); <-second.done }()
		late := time.After(30 * time.Second)
		for text := ""; !strings.Contains(text, "another process is observer o1"); {
			select {
			case text = <-logged:
			case <-late:
				t.Fatal("the second process is not refused")
			}
		}
		for range 3 {
			if _, err := first.Reach(t.Context()); err != nil || first.Link() != link {
				t.Errorf("the first process: %v, connection %d", err, first.Link())
			}
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		if err := second.until(t.Context(), func() (bool, error) {
			return second.hasImage, nil
		}); err != nil {
			t.Error(err)
		}
	})
}

// writes sends written text to a channel.
type writes struct{ to chan<- string }

func (w writes) Write(b []byte) (int, error) {
	w.to <- string(b)
	return len(b), nil
}

// Batches waiting for the fold survive a change of the member, and are bounded: the feed waits.
func TestBatchesWaitingForFoldAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newRealm(t)
		a, _ := v.add("a", nil)
		s := v.open("a", "b")
		s.change(func() { s.o.buffer = 200 })
		for seq := range uint64(50) {
			a.append(currencyBatch(seq, "C"))
		}
		err := s.until(t.Context(), func() (bool, error) { return s.end >= 3, nil })
		if err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		bytes := s.bytes
		s.mu.Unlock()
		if bytes > 200 {
			t.Errorf("%d bytes wait", bytes)
		}
		b, _ := v.add("b", nil)
		for seq := range uint64(60) {
			b.append(currencyBatch(seq, "C"))
		}
		v.remove("a")
		if err := s.until(t.Context(), func() (bool, error) {
			return s.link == nil || s.link.node == "b", nil
		}); err != nil {
			t.Fatal(err)
		}
		read(t, s, 0, 60)
	})
}

// An observer that no member's journal continues fails with errStartOver.
func TestObserverTooFarBehindStartsOver(t *testing.T) {
	for name, other := range map[string]func(b *member){
		"another batch": func(b *member) {
			for seq := range uint64(7) {
				b.append(currencyBatch(seq, "D"))
			}
		},
		"a journal that ends earlier, and all that is acknowledged": func(b *member) {
			for seq := range uint64(3) {
				b.append(currencyBatch(seq, "C"))
			}
		},
		"a journal that begins later": func(b *member) {
			for seq := range uint64(3) {
				b.append(currencyBatch(5+seq, "C"))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newRealm(t)
				a, _ := v.add("a", nil)
				for seq := range uint64(5) {
					a.append(currencyBatch(seq, "C"))
				}
				s := v.open("a", "b")
				read(t, s, 0, 5)
				b, _ := v.add("b", nil)
				other(b)
				v.remove("a")
				_, err := s.Follow(t.Context(), 100)
				if !errors.Is(err, errStartOver) {
					t.Errorf("it continues: %v", err)
				}
			})
		})
	}
}

// The first image arrives complete, without secrets, followed by the batches after it.
func TestObserverStartsFromNewestImage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newRealm(t)
		a, h := v.add("a", nil)
		rows := uint64(4)
		h.watermark = &rows
		fold := state.Fold{State: state.New()}
		for seq := range uint64(4) {
			b := currencyBatch(seq, string(rune('A'+seq)))
			if err := fold.Batch(b.prev, b.next, b.data); err != nil {
				t.Fatal(err)
			}
			if seq == 3 {
				a.append(b)
			}
		}
		a.image, a.imageAt = fold.State.AppendTo(nil), 4
		a.append(currencyBatch(4, "E"))
		s := v.open("a")
		image, seq, err := persistence.ReadSnapshot(t.Context(), s, 0)
		if err != nil || seq != 4 || !slices.Equal(image, a.image) { // without secrets
			t.Fatalf("the image is of %d: %v", seq, err)
		}
		if _, _, err := s.LoadSnapshot(t.Context(), 0); !errors.Is(err, persistence.ErrNoSnapshot) {
			t.Errorf("the image is kept: %v", err)
		}
		if w, err := s.Watermark(t.Context()); err != nil || w != 4 {
			t.Errorf("the watermark is %d: %v", w, err)
		}
		read(t, s, 4, 5)
	})
}

// Rows are dropped only when the followed member has them.
func TestRowsAreDroppedOnceMemberHasThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newRealm(t)
		_, h := v.add("a", nil)
		at := uint64(6)
		h.watermark = &at
		s := v.open("a")
		reported := func(seq uint64) {
			h.mu.Lock()
			at = seq
			h.mu.Unlock()
			if err := s.until(t.Context(), func() (bool, error) {
				return s.link != nil && s.link.watermark >= seq, nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		reported(6)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Apply(t.Context(), "", 0, 6, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(ended, "", 6, 7, nil); err == nil {
			t.Error("rows are dropped that the member lacks")
		}
		if w, _ := s.Watermark(t.Context()); w != 6 {
			t.Errorf("the dropped rows end at %d", w)
		}
		reported(7)
		if err := s.Apply(t.Context(), "", 6, 7, nil); err != nil {
			t.Error(err)
		}
		if err := s.Apply(ended, "", 7, 7, nil); err != nil {
			t.Errorf("nonces alone: %v", err)
		}
	})
}

// reaches lets the test answer a member's Reach; 0: with an error.
func (m *member) reaches() (asked chan struct{}, answer chan uint64) {
	asked, answer = make(chan struct{}, 100), make(chan uint64)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reach = func(ctx context.Context) (uint64, error) {
		asked <- struct{}{}
		select {
		case seq := <-answer:
			if seq == 0 {
				return 0, errors.New("no majority")
			}
			return seq, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return asked, answer
}

// Each call of Reach is answered by a request that started after it. Calls during a request share
// the next one.
func TestEachReachIsAnsweredByALaterRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newRealm(t)
		m, _ := v.add("a", nil)
		s := v.open("a")
		if seq, err := s.Reach(t.Context()); err != nil || seq != 0 {
			t.Fatal(seq, err)
		}
		asked, answer := m.reaches()
		type got struct {
			seq uint64
			err error
		}
		ask := func() chan got {
			c := make(chan got, 1)
			go func() {
				seq, err := s.Reach(t.Context())
				c <- got{seq, err}
			}()
			return c
		}
		first := ask()
		select {
		case <-asked:
		case g := <-first:
			t.Fatalf("the member was not asked, and %+v returned", g)
		}
		var later []chan got
		for range 5 {
			later = append(later, ask())
		}
		m.append(currencyBatch(0, "A"))
		answer <- 1
		if g := <-first; g.err != nil || g.seq != 1 {
			t.Errorf("the first: %+v", g)
		}
		<-asked
		m.append(currencyBatch(1, "B"))
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			for _, c := range later {
				if g := <-c; g.err != nil || g.seq != 2 {
					t.Errorf("a later one: %+v", g)
				}
			}
		}()
		for done := false; !done; { // some may have arrived after the start of the second request
			select {
			case answer <- 2:
			case <-answered:
				done = true
			}
		}
		failed := ask()
		for {
			select {
			case answer <- 0:
				continue
			case g := <-failed:
				if g.err == nil {
					t.Errorf("the member failed, and %d was returned", g.seq)
				}
			}
			break
		}
	})
}

// hostile sends a member messages as an observer, and expects to be disconnected.
func hostile(t *testing.T, v *realm, what string, says []byte) {
	t.Helper()
	conn, err := v.dial(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(says); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(silence / 2)); err != nil {
		t.Fatal(err)
	}
	for b := make([]byte, 4096); ; {
		if _, err := conn.Read(b); err != nil {
			var late net.Error
			if errors.As(err, &late) && late.Timeout() {
				t.Errorf("%s is accepted", what)
			}
			return
		}
	}
}

func framed(message ...byte) []byte {
	return append([]byte{0, 0, 0, byte(len(message))}, message...)
}

// asks is a request with a number.
func asks(number, kind byte, body ...byte) []byte {
	return framed(append([]byte{1, number, kind, 1}, body...)...)
}

// Malformed or excessive requests end the connection, and nothing else.
func TestHostileObserverIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newRealm(t)
		held := make(chan struct{})
		defer close(held)
		m, _ := v.add("a", slow{memory.Open(memory.NewDisk(), persistence.Retention{}), held})
		m.reach = func(ctx context.Context) (uint64, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}
		begins := func(kind, version byte) []byte {
			return framed(append([]byte{kind, version}, make([]byte, 8)...)...)
		}
		greets := begins(Call, Version)
		order := asks(9, askOrder, wire.AppendValue(wire.AppendValue(nil, everything),
			&orderQuery{1, 1})...)
		for what, says := range map[string][]byte{
			"another kind":             begins(99, Version),
			"another version":          begins(Call, Version+1),
			"no process":               framed(Call, Version),
			"a greeting of 1 GB":       {64, 0, 0, 0},
			"a feed that begins oddly": slices.Concat(greets, asks(1, askFeed, 0, 0, 2)),
			"two feeds": slices.Concat(greets, asks(1, askFeed, 0, 0, 0),
				asks(2, askFeed, 0, 0, 0)),
			"a message that is none":  slices.Concat(greets, framed(77, 1)),
			"talk with more":          slices.Concat(greets, asks(1, askControl, 0)),
			"two questions at a time": slices.Concat(greets, asks(1, askReach), asks(2, askReach)),
			"a question with more":    slices.Concat(greets, asks(1, askReach, 0)),
			"a question for a key":    slices.Concat(greets, asks(1, 99, 1, 0)),
			"a message of 1 GB":       slices.Concat(greets, []byte{64, 0, 0, 0}),
			"a query that is none":    slices.Concat(greets, asks(1, 0, 0, 0, 0)),
			"half a query":            slices.Concat(greets, asks(1, askOrders)),
			"a page":                  slices.Concat(greets, framed(2, 1, 1)),
			"more taken than sent":    slices.Concat(greets, order, framed(4, 9, 1)),
			"a number that is used":   slices.Concat(greets, order, order),
			"a list of many": slices.Concat(greets,
				asks(1, askOrders, 0, 255, 255, 3)),
		} {
			hostile(t, v, what, says)
		}
		s := v.open("a")
		if s.Link() == 0 {
			t.Error("it follows no member")
		}
	})
}

// The refusal of an observer of another version contains both versions.
func TestVersionMismatchNamesBothVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newRealm(t)
		v.add("a", memory.Open(memory.NewDisk(), persistence.Retention{}))
		conn, err := v.dial(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = line.Greet(ctx, conn, Call, Version-1, make([]byte, 8))
		want := fmt.Sprintf("of version %d and this program reads version %d; run the newer "+
			"program", Version, Version-1)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it gets %v", err)
		}
	})
}

// slow is a store whose orders take their time.
type slow struct {
	persistence.Store
	held chan struct{}
}

func (s slow) Order(ctx context.Context, _ uint32, _ uint64) (persistence.Order, error) {
	select {
	case <-s.held:
	case <-ctx.Done():
	}
	return persistence.Order{}, persistence.ErrNotFound
}
