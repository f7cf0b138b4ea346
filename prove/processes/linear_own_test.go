//go:build prove

package processes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/fasthttp/websocket"

	"exchange/actors/lineartest"
	"exchange/prove/exchangetest"
)

// A recordedOwn is the subscriber of an account at a socket of the program. Its events are in the
// history. When its socket is lost it opens another one, and when a freeze has ended its login it
// logs in again. Each time it resumes after its newest event.
type recordedOwn struct {
	h       *recorded
	account int
	key     *trader

	mu       sync.Mutex
	conn     *websocket.Conn
	stands   bool                 // it is logged in, and has asked for the events
	seq      uint64               // of the newest event
	number   int                  // of the newest packet that is to be acknowledged
	asks     *lineartest.Recorded // a subscription; nil: it is answered
	answered *lineartest.Recorded // the newest one that was, with a snapshot
	events   int
	resumed  int   // subscriptions
	failed   error // of the newest login or subscription
}

// subscribe starts a subscriber of each account.
func (h *recorded) subscribe() {
	var all sync.WaitGroup
	h.t.Cleanup(all.Wait)
	for i := range h.own {
		s := &recordedOwn{h: h, account: i, key: h.keys[accountKey(i)]}
		h.own[i] = s
		all.Go(func() { s.run(h.t.Context()) })
	}
	h.receiveAll()
	h.history.Settle()
}

// receiveAll waits until the history has all events of the exchange. It requests a snapshot, which
// follows them; the checker refuses a snapshot that is not of the subscriber's newest event.
func (h *recorded) receiveAll() {
	h.t.Helper()
	for _, s := range h.own {
		if s == nil {
			return
		}
		var asked *lineartest.Recorded
		exchangetest.Eventually(h.t, fmt.Sprintf("the subscriber of %s receives all",
			h.name(s.account)), func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			if !s.stands || s.asks != nil {
				return false
			}
			if asked != nil && s.answered == asked {
				return true
			}
			s.ask(0)
			asked = s.asks
			return false
		})
	}
}

// leave closes the socket, if the subscriber has an event to resume after.
func (s *recordedOwn) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stands && s.seq > 0 {
		s.conn.Close()
	}
}

// run follows one socket after the other. receiveAll bounds the time without one.
func (s *recordedOwn) run(ctx context.Context) {
	for ctx.Err() == nil {
		conn, _, err := websocket.DefaultDialer.DialContext(ctx,
			"ws://"+s.key.s.Listen+"/socket.v2/?EIO=4&transport=websocket", nil)
		if err == nil {
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			err = s.follow(conn)
			stop()
			conn.Close()
		} else {
			beOff(503)
		}
		s.mu.Lock()
		s.end(err)
		s.mu.Unlock()
	}
	if s.h.t.Failed() {
		s.h.t.Logf("account %d: %d events, newest %d; last %v", s.account, s.events, s.seq,
			s.failed)
	}
}

// follow receives events until the socket is lost.
func (s *recordedOwn) follow(conn *websocket.Conn) error {
	s.mu.Lock()
	s.conn = conn
	err := s.say("40")
	s.mu.Unlock()
	for err == nil {
		if err = s.logIn(); err != nil {
			return err
		}
		s.mu.Lock()
		s.ask(s.seq)
		s.stands = true
		s.mu.Unlock()
		for over := false; err == nil && !over; {
			var b []byte
			if b, err = s.next(); err == nil {
				over, err = s.take(b)
			}
		}
	}
	return err
}

// logIn logs in once the account is no longer frozen.
func (s *recordedOwn) logIn() error {
	for {
		var c [1]struct{ Challenge string }
		if err := s.request(`["challenge"]`, &c); err != nil {
			return err
		}
		text := "login\n" + s.key.key + "\n" + c[0].Challenge
		var answer [1]struct {
			Status int
			Body   json.RawMessage
		}
		err := s.request(fmt.Sprintf(`["login",{"key":%q,"sign":%q}]`, s.key.key,
			s.key.secret.Sign(nil, []byte(text))), &answer)
		if err != nil || answer[0].Status == 200 {
			return err
		}
		s.mu.Lock()
		s.failed = fmt.Errorf("a login is answered with %d %s", answer[0].Status, answer[0].Body)
		s.mu.Unlock()
		beOff(503)
	}
}

// request sends an event while there is no login, and reads the acknowledgement.
func (s *recordedOwn) request(event string, v any) error {
	s.mu.Lock()
	s.number++
	answer := fmt.Sprintf("43%d", s.number)
	err := s.say(fmt.Sprintf("42%d%s", s.number, event))
	s.mu.Unlock()
	for err == nil {
		var b []byte
		b, err = s.next()
		switch {
		case err != nil:
		case bytes.HasPrefix(b, []byte(answer+"[")):
			return json.Unmarshal(b[len(answer):], v)
		case bytes.HasPrefix(b, []byte("42")):
			s.h.t.Errorf("account %d receives without a login: %s", s.account, b)
		}
	}
	return err
}

// ask subscribes; after is the newest received event, 0: none. The caller holds mu.
func (s *recordedOwn) ask(after uint64) {
	s.number++
	s.asks = s.h.history.Begin(recordedClients+1+s.account,
		lineartest.Operation{Kind: lineartest.Subscribe, Account: s.account})
	known := ""
	if after > 0 {
		known = fmt.Sprintf(`,{"after":%d}`, after)
	}
	// if it fails, so does the next read
	s.say(fmt.Sprintf(`42%d["own.subscribe"%s]`, s.number, known)) //nolint:errcheck
}

// say sends a packet; the caller holds mu.
func (s *recordedOwn) say(packet string) error {
	return s.conn.WriteMessage(websocket.TextMessage, []byte(packet))
}

// next returns the next packet. It answers pings.
func (s *recordedOwn) next() ([]byte, error) {
	for {
		_, b, err := s.conn.ReadMessage()
		if err != nil || string(b) != "2" {
			return b, err
		}
		s.mu.Lock()
		err = s.say("3")
		s.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
}

// end records the end of a login, or of its socket; the caller holds mu.
func (s *recordedOwn) end(err error) {
	s.stands = false
	if s.asks != nil {
		s.asks.Forget()
		s.asks = nil
	}
	if err != nil {
		s.failed = err
	}
}

// take handles a packet of a logged-in subscriber. True: the login is over.
func (s *recordedOwn) take(b []byte) (over bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, isEvent := bytes.CutPrefix(b, []byte(`42["own",`))
	answer := fmt.Sprintf("43%d", s.number)
	switch {
	case isEvent:
		err = s.note(bytes.TrimSuffix(text, []byte("]")))
	case bytes.HasPrefix(b, []byte(answer+"[")):
		err = s.begin(b[len(answer):])
	case bytes.HasPrefix(b, []byte(`42["login.end",`)):
		s.end(nil)
		return true, nil
	case bytes.HasPrefix(b, []byte("43")): // to a subscription of the login before
	default:
		s.h.t.Errorf("account %d receives %s", s.account, b)
	}
	return false, err
}

// begin handles the answer to a subscription. A snapshot follows, unless it is resumed.
func (s *recordedOwn) begin(b []byte) error {
	var answer [1]struct {
		Status int
		Body   struct{ Resumed bool }
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return err
	}
	if answer[0].Status != 200 {
		beOff(answer[0].Status)
		return fmt.Errorf("a subscription is answered with %s", b)
	}
	if answer[0].Body.Resumed {
		s.resumed++
		s.asks.Forget()
		s.asks = nil
	}
	return nil
}

// An ownRow is an event of an account, or a snapshot.
type ownRow struct {
	Snapshot       bool
	Complete       bool `json:"orders_complete"`
	Sequence, Prev uint64
	Cause          string
	Frozen         bool
	Orders         []orderRow
	Trades         []struct {
		tradeRow
		ClientID string `json:"client_order_id"`
		Maker    bool
	}
	Balances []walletRow
}

// note records an event or a snapshot.
func (s *recordedOwn) note(text []byte) error {
	var x ownRow
	err := json.Unmarshal(text, &x)
	orders, err := orderRows(x.Orders, err)
	e := lineartest.Event{Account: s.account, Sequence: x.Sequence, Prev: x.Prev, Orders: orders,
		Freezes: x.Cause == "freeze", Frozen: x.Frozen}
	for _, w := range x.Balances {
		e.Money = append(e.Money, moneyOf(w))
	}
	for _, t := range x.Trades {
		number, convErr := strconv.Atoi(t.ClientID)
		err = errors.Join(err, convErr)
		e.Trades = append(e.Trades, lineartest.OwnTrade{ID: t.ID, Order: number, Maker: t.Maker,
			Price: t.Price.IntPart(), Amount: t.Amount.IntPart()})
	}
	switch {
	case err != nil:
	case !x.Snapshot:
		s.events++
		s.h.history.Notify(s.account, e)
	case s.asks == nil || !x.Complete:
		err = errors.New("there is a snapshot that was not asked for, or lacks orders")
	default:
		result := lineartest.Result{Outcome: lineartest.Done, Sequence: x.Sequence,
			Frozen: x.Frozen, Orders: orders}
		for _, m := range e.Money {
			result.Funds[m.Currency] = m.Funds
		}
		s.asks.End(result)
		s.answered, s.asks = s.asks, nil
	}
	s.seq = x.Sequence
	if err != nil {
		s.h.t.Errorf("account %d receives %s: %v", s.account, text, err)
	}
	return err
}
