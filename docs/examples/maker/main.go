package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"
)

type maker struct {
	addresses                  []string // the next one is first
	address, pair, coin, money string
	key, secret                string
	price, size, tick, step    decimal.Decimal

	socket            *socket
	account           Account
	book              Book
	unknown           map[string]bool // client order ids of which no answer came
	names             int64
	nonce             uint64 // the last one: milliseconds
	earlier           string // id of the last socket that was logged in
	connects, resumed int
	ending            chan struct{} // closed by Ctrl-C
	done              bool
}

type fields map[string]any

// An answer is that to a command.
type answer struct {
	Status     int             `json:"status"`
	Body       json.RawMessage `json:"body"`
	RetryAfter int             `json:"retry_after"`
}

func main() {
	if len(os.Args) != 5 {
		log.Fatal("the arguments are the address, or those of nodes with commas, the pair, " +
			"a price, and an amount")
	}
	m := &maker{addresses: strings.Split(os.Args[1], ","), pair: os.Args[2],
		price: decimal.RequireFromString(os.Args[3]), size: decimal.RequireFromString(os.Args[4]),
		key: os.Getenv("EXCHANGE_KEY"), secret: os.Getenv("EXCHANGE_SECRET"),
		unknown: map[string]bool{}, names: time.Now().UnixMilli(), ending: make(chan struct{})}
	m.coin, m.money, _ = strings.Cut(m.pair, "_")
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	go func() { <-interrupted; close(m.ending) }()
	for !m.done {
		if err := m.connect(); err != nil {
			log.Printf("connecting again: %v", err)
			time.Sleep(100 * time.Millisecond)
		}
	}
}

func (m *maker) sign(text string) string {
	mac := hmac.New(sha256.New, []byte(m.secret))
	io.WriteString(mac, text) //nolint:errcheck // a hash takes everything
	return hex.EncodeToString(mac.Sum(nil))
}

// connect makes a connection and quotes until it is lost.
func (m *maker) connect() (err error) {
	host := strings.TrimPrefix(m.addresses[0], "http://")
	m.address, m.addresses = "http://"+host, append(m.addresses[1:], m.addresses[0])
	if m.socket, err = dial(host, m.event); err != nil {
		return err
	}
	defer m.socket.close()
	if err := m.login(); err != nil {
		return err
	}
	if err := m.follow(); err != nil {
		return err
	}
	for !m.done {
		err := m.resolve()
		if err == nil && m.isEnding() {
			err = m.flatten()
		} else if err == nil {
			err = m.quote()
		}
		if m.show(); err == nil && !m.done {
			err = m.socket.change(m.ending)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *maker) isEnding() bool {
	select {
	case <-m.ending:
		return true
	default:
		return false
	}
}

// event handles an event of the stream.
func (m *maker) event(name string, arg json.RawMessage) error {
	switch name {
	case "own":
		var e Own
		if err := json.Unmarshal(arg, &e); err != nil {
			return err
		}
		return m.account.Apply(&e, m.pair, m.coin)
	case "depth":
		var d Depth
		if err := json.Unmarshal(arg, &d); err != nil {
			return err
		}
		if !m.book.Apply(&d) {
			return m.socket.emit("", "subscribe", "depth."+m.pair)
		}
	case "login.end":
		return fmt.Errorf("the login has ended: %s", arg)
	}
	return nil
}

// login proves that the client has the key's secret. From the answer on nothing of the earlier
// socket is in flight.
func (m *maker) login() error {
	b, err := m.socket.ask("challenge")
	if err != nil {
		return err
	}
	var c struct{ Challenge string }
	if err := json.Unmarshal(b, &c); err != nil {
		return err
	}
	f := fields{"key": m.key, "sign": m.sign("login\n" + m.key + "\n" + c.Challenge),
		"cancel_on_disconnect": 30, "pair": m.pair} // unless it is back by then
	if m.earlier != "" {
		f["ends"] = m.earlier
	}
	a, err := m.ask("login", f)
	if err == nil && a.Status != 200 {
		err = fmt.Errorf("login: %d %s", a.Status, a.Body)
	}
	if err == nil {
		m.earlier = m.socket.id
		m.connects++
	}
	return err
}

// follow subscribes to the account, from its last event on if that is possible, and to the book.
func (m *maker) follow() error {
	var info struct {
		Pairs []struct {
			Name string
			Tick decimal.Decimal `json:"price_tick"`
			Step decimal.Decimal `json:"amount_step"`
		}
	}
	if err := m.get("exchange-info/", &info); err != nil {
		return err
	}
	for _, p := range info.Pairs {
		if p.Name == m.pair {
			m.tick, m.step = p.Tick, p.Step
		}
	}
	before, f := m.account.Snapshots, fields{}
	if m.account.Known {
		f["after"] = m.account.Sequence
	}
	a, err := m.ask("own.subscribe", f)
	if err != nil || a.Status != 200 {
		return fmt.Errorf("own.subscribe: %d %s %w", a.Status, a.Body, err)
	}
	var body struct{ Resumed bool }
	if err := json.Unmarshal(a.Body, &body); err != nil {
		return err
	}
	m.book = Book{}
	if body.Resumed {
		m.resumed++
		return m.socket.emit("", "subscribe", "depth."+m.pair)
	}
	for late := time.After(patience); m.account.Snapshots == before; {
		if err := m.socket.wait(late); err != nil {
			return err
		}
	}
	if err := m.catchUp(); err != nil {
		return err
	}
	return m.socket.emit("", "subscribe", "depth."+m.pair)
}

// catchUp reads trades that were missed, from the last one that is known to the snapshot's.
func (m *maker) catchUp() error {
	for a := &m.account; a.LastTrade < a.Newest; {
		var rows []Trade
		if err := m.get(fmt.Sprintf("exchanges/own/?pair=%s&after=%d", m.pair, a.LastTrade),
			&rows); err != nil {
			return err
		}
		rows = slices.DeleteFunc(rows, func(t Trade) bool { return t.ID > a.Newest })
		if len(rows) == 0 {
			return nil
		}
		a.Traded(rows)
	}
	return nil
}

// get reads by REST; once more if another program has used a greater nonce of the key.
func (m *maker) get(path string, to any) error {
	status, b, err := m.read(path)
	var refusal struct {
		Last uint64 // of a nonce
	}
	if status == 401 && json.Unmarshal(b, &refusal) == nil && refusal.Last > 0 {
		m.nonce = max(m.nonce, refusal.Last)
		status, b, err = m.read(path)
	}
	if err == nil && status != 200 {
		err = fmt.Errorf("%s: %d %s", path, status, b)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(b, to)
}

// read sends a request with a signature of the key alone, and returns its answer.
func (m *maker) read(path string) (status int, body []byte, err error) {
	req, err := http.NewRequest("GET", m.address+"/api/v1/"+path, nil)
	if err != nil {
		return 0, nil, err
	}
	m.nonce = max(m.nonce+1, uint64(time.Now().UnixMilli()))
	req.Header.Set("X-KEY", m.key)
	req.Header.Set("X-SIGN", m.sign(m.key))
	req.Header.Set("X-NONCE", strconv.FormatUint(m.nonce, 10))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// ask sends a command, and rests if the exchange asks for that.
func (m *maker) ask(name string, f fields) (a answer, err error) {
	b, err := m.socket.ask(name, f)
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	if err == nil && a.RetryAfter > 0 {
		time.Sleep(time.Second)
	}
	return a, err
}

// show prints the maker's state, in a line of JSON.
func (m *maker) show() {
	traded := map[string]decimal.Decimal{}
	for _, t := range m.account.Trades {
		traded[t.Side] = traded[t.Side].Add(t.Amount)
	}
	line := fields{"address": m.address, "sequence": m.account.Sequence,
		"trades": len(m.account.Trades), "bought": traded["buy"], "sold": traded["sell"],
		"connects": m.connects, "resumed": m.resumed, "done": m.done}
	if m.book.Known {
		line["update_id"], line["checksum"] = m.book.UpdateID, m.book.Checksum()
	}
	balances, orders := map[string][]any{}, map[uint64][]any{}
	for _, b := range m.account.Balances {
		balances[b.Currency] = []any{b.Balance, b.Reserve}
	}
	for _, o := range m.account.Orders {
		if o.Status == open {
			orders[o.ID] = []any{o.Side, o.Price, o.Rest}
		}
	}
	line["balances"], line["orders"] = balances, orders
	b, err := json.Marshal(line)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(b))
}
