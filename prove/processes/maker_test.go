//go:build prove

package processes

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/shopspring/decimal"
	"github.com/valyala/fasthttp"

	"exchange/persistence/redistest"
	"exchange/prove/exchangetest"
)

// makers returns the commands of the market makers of docs/examples.
func makers(t *testing.T) map[string][]string {
	t.Helper()
	if _, err := os.Stat("../node_modules/socket.io-client"); err != nil {
		t.Fatal("socket.io-client is not installed: `make smoke` installs it")
	}
	const examples = "../../docs/examples/"
	if out, err := exec.Command("/usr/bin/python3", "-c", "import socketio, aiohttp").
		CombinedOutput(); err != nil {
		t.Fatalf("python3-socketio and python3-aiohttp are not installed: `make prove` installs "+
			"them\n%s", out)
	}
	// an import finds packages above its file, so the script runs next to them
	script := copyBesidePackages(t, examples, "market_maker.mjs", "depth_book.mjs")
	program := t.TempDir() + "/maker"
	if out, err := exec.Command("go", "build", "-o", program, examples+"maker").
		CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return map[string][]string{
		"Python":     {"/usr/bin/python3", examples + "market_maker.py"},
		"JavaScript": {"node", script},
		"Go":         {program},
	}
}

// The market makers quote on a real exchange through kills and lost connections. Their view of
// their account and of the book equals REST's, and they end flat.
func TestMarketMakersLiveThroughKills(t *testing.T) {
	commands := makers(t)
	play := func(name, store string, kills ...func(s *exchangetest.Server)) {
		t.Run(name, func(t *testing.T) {
			s := exchangetest.New(t, store)
			s.Start()
			m := newMaker(t, &world{t: t, s: s}, "maker")
			m.start(commands[name]...)
			m.trades(8, func() {})
			m.compare()
			for _, kill := range kills {
				m.trades(4, func() { kill(s) })
				m.compare()
				m.trades(4, m.relay.cut)
				m.compare()
			}
			m.ends(5, 2)
		})
	}
	program := func(s *exchangetest.Server) { s.Kill(); s.Start() }
	for name := range commands {
		play(name, "pebble:"+t.TempDir(), program, program)
	}
	r := redistest.Start(t)
	play("Go", r.URL(), func(*exchangetest.Server) { r.Kill(); r.Restart() },
		func(s *exchangetest.Server) { r.Kill(); s.Kill(); r.Restart(); s.Start() })
}

// The observer of a connected market maker is killed, and then the node. The maker continues at
// another node, and its view equals REST's there.
func TestMarketMakersContinueAtAnotherNode(t *testing.T) {
	c := newCluster(t, "EXCHANGE_CLUSTER_OBSERVERS=o1")
	w := &world{t: t, s: c.led()}
	o := c.observer("o1")
	o.Start()
	var addresses []string
	processes := append([]*exchangetest.Server{o}, c.nodes...)
	for _, s := range processes {
		addresses = append(addresses, "http://"+s.Listen)
	}
	for name, command := range makers(t) {
		t.Run(name, func(t *testing.T) {
			w.s = c.leader(nil)
			m := newMaker(t, w, strings.ToLower(name))
			m.addresses = strings.Join(addresses, ",")
			m.start(command...)
			m.trades(4, func() {})
			for kills := range 2 {
				used := processes[slices.Index(addresses, m.line().Address)]
				if kills == 0 && used != o {
					t.Errorf("it is at %s, which is not the first address", m.line().Address)
				}
				other := c.others(used)[0]
				w.s, m.taker.s, m.watcher.s = other, other, other
				m.trades(4, used.Kill)
				m.compare()
				if now := m.line().Address; now == "http://"+used.Listen {
					t.Errorf("it is at %s, which was killed", now)
				}
				if used == o {
					o.Start()
					continue
				}
				used.Run()
				c.follows(used, c.leader(used))
			}
			m.ends(3, 0)
		})
	}
	clean(t, c.leader(nil))
}

// copyBesidePackages copies examples to a folder from which they find the clients' packages.
func copyBesidePackages(t *testing.T, folder string, names ...string) (first string) {
	t.Helper()
	packages := must[string](t)(os.Getwd())
	dir := t.TempDir()
	succeeds(t, os.Symlink(packages+"/../node_modules", dir+"/node_modules"))
	for _, name := range names {
		b := must[[]byte](t)(os.ReadFile(folder + name))
		succeeds(t, os.WriteFile(dir+"/"+name, b, 0o600))
	}
	return dir + "/" + names[0]
}

// A maker is a market maker as a child process, with its output.
type maker struct {
	w              *world
	key            struct{ Key, Secret string }
	watcher, taker *trader
	addresses      string // that the maker gets
	relay          *relay // between the maker and the exchange, if there is but one
	process        *exec.Cmd
	ended          chan struct{} // closed after its last line

	mu         sync.Mutex
	lines      int
	last       makerLine
	bySequence map[uint64]makerLine
	byUpdate   map[uint64]uint32 // checksums
	errors     bytes.Buffer
}

// A makerLine is a maker's printed state.
type makerLine struct {
	Address  string                        `json:"address"`
	Sequence uint64                        `json:"sequence"`
	UpdateID *uint64                       `json:"update_id"`
	Checksum *uint32                       `json:"checksum"`
	Trades   int                           `json:"trades"`
	Bought   decimal.Decimal               `json:"bought"`
	Sold     decimal.Decimal               `json:"sold"`
	Connects int                           `json:"connects"`
	Resumed  int                           `json:"resumed"`
	Done     bool                          `json:"done"`
	Balances map[string][2]decimal.Decimal `json:"balances"` // balance and reserve
	Orders   map[uint64]makerOrder         `json:"orders"`
}

type makerOrder [3]string // side, price, rest

const makerBegin = "10" // its coins

// newMaker opens the accounts, and places distant orders to trade with. The accounts' names are the
// maker's, with suffixes.
func newMaker(t *testing.T, w *world, name string) *maker {
	t.Helper()
	m := &maker{w: w, relay: newRelay(t, w.s.Listen), bySequence: map[uint64]makerLine{},
		byUpdate: map[uint64]uint32{}, ended: make(chan struct{})}
	m.addresses = "http://" + m.relay.listener.Addr().String()
	random := newRandom(t)
	taker := name + "-taker"
	m.taker = w.account(taker, random)
	m.watcher = w.accountWith(name, "", []string{"read"}, random)
	w.must("/operator/v1/keys", map[string]any{"account": name,
		"permissions": []string{"read", "trade"}}, &m.key)
	for _, name := range []string{name, taker} {
		for currency, amount := range map[string]string{"BTC": makerBegin, "USDT": "1000000"} {
			w.must("/operator/v1/deposits", map[string]string{"account": name, "currency": currency,
				"amount": amount, "reference": name + currency}, nil)
		}
	}
	for _, form := range []string{"amount=5&pair=BTC_USDT&price=45000&type=buy",
		"amount=5&pair=BTC_USDT&price=55000&type=sell"} {
		if _, err := m.take(form); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// take sends an order of the taker, and returns its traded amount.
func (m *maker) take(form string) (decimal.Decimal, error) {
	m.taker.nonce++
	status, body, err := m.taker.send("POST", "/api/v1/order/", form, m.taker.nonce)
	var p placed
	if err == nil && status != 201 {
		err = fmt.Errorf("%d %s", status, body)
	}
	if err == nil {
		err = json.Unmarshal([]byte(body), &p)
	}
	return p.Filled, err
}

// start runs the maker.
func (m *maker) start(command ...string) {
	t := m.w.t
	t.Helper()
	m.process = exec.Command(command[0], append(command[1:], m.addresses, "BTC_USDT", "50000",
		"0.01")...)
	m.process.Env = append(os.Environ(), "EXCHANGE_KEY="+m.key.Key,
		"EXCHANGE_SECRET="+m.key.Secret)
	m.process.Stderr = &m.errors
	out, err := m.process.StdoutPipe()
	if err == nil {
		err = m.process.Start()
	}
	succeeds(t, err)
	t.Cleanup(func() {
		m.process.Process.Kill() //nolint:errcheck // it has ended, but after a failure
		<-m.ended
		if t.Failed() {
			m.process.Wait() //nolint:errcheck // the buffer is complete then
			t.Logf("%d lines, the last one %+v\n%s", m.lines, m.last, m.errors.String())
		}
	})
	go m.read(bufio.NewScanner(out))
}

// line returns the newest line.
func (m *maker) line() makerLine {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

func (m *maker) read(lines *bufio.Scanner) {
	defer close(m.ended)
	for lines.Scan() {
		var l makerLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			m.w.t.Errorf("%v\n%s", err, lines.Bytes())
			continue
		}
		m.mu.Lock()
		m.lines++
		m.last, m.bySequence[l.Sequence] = l, l
		if l.UpdateID != nil && l.Checksum != nil {
			m.byUpdate[*l.UpdateID] = *l.Checksum
		}
		m.mu.Unlock()
	}
}

// trades lets the taker trade with the maker n times, and calls a function meanwhile.
func (m *maker) trades(n int64, happens func()) {
	m.w.t.Helper()
	var done atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			form := "amount=0.004&pair=BTC_USDT&price=54000&time_in_force=ioc&type=buy"
			if i/3%2 == 0 { // three of a kind, so that the maker moves its price
				form = "amount=0.004&pair=BTC_USDT&price=46000&time_in_force=ioc&type=sell"
			}
			if filled, err := m.take(form); err == nil && filled.IsPositive() {
				done.Add(1)
			}
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	enough := func(n int64) func() bool { return func() bool { return done.Load() >= n } }
	exchangetest.Eventually(m.w.t, "the taker trades with the maker", enough(n))
	happens()
	exchangetest.Eventually(m.w.t, "the maker is back", enough(done.Load()+n))
	close(stop)
	<-stopped
}

// compare waits until REST and the maker show the same sequence of the account, and the same update
// of the book, and compares.
func (m *maker) compare() {
	t := m.w.t
	t.Helper()
	account, book := false, false
	exchangetest.Eventually(t, "the maker comes to what REST shows", func() bool {
		if !account {
			before := m.sequence()
			wallet, orders, trades := m.rest()
			if before == m.sequence() {
				m.mu.Lock()
				l, ok := m.bySequence[before]
				m.mu.Unlock()
				if ok {
					m.same(&l, wallet, orders, trades)
					account = true
				}
			}
		}
		if !book {
			update, checksum := m.book()
			m.mu.Lock()
			own, ok := m.byUpdate[update]
			m.mu.Unlock()
			if ok && own != checksum {
				t.Fatalf("update %d has the checksum %d, and the maker's %d", update, checksum, own)
			}
			book = ok
		}
		return account && book
	})
}

// rest reads the account.
func (m *maker) rest() (wallet []walletRow, orders []orderRow, trades []tradeRow) {
	t := m.w.t
	t.Helper()
	for path, to := range map[string]any{"/api/v1/wallets/": &wallet,
		"/api/v1/orders/own/?status=1": &orders} {
		succeeds(t, m.watcher.get(path, to))
	}
	trades, err := pages(m.watcher, "/api/v1/exchanges/own/", 1000,
		func(r tradeRow) uint64 { return r.ID })
	succeeds(t, err)
	return wallet, orders, trades
}

// same fails the test if a line differs from REST at its sequence.
func (m *maker) same(l *makerLine, wallet []walletRow, orders []orderRow, trades []tradeRow) {
	t := m.w.t
	t.Helper()
	for _, h := range wallet {
		own, ok := l.Balances[h.Currency]
		if ok && (!own[0].Equal(h.Balance) || !own[1].Equal(h.Reserve)) || !ok {
			t.Errorf("at sequence %d REST has %+v, and the maker %v", l.Sequence, h, l.Balances)
		}
	}
	open := map[uint64]string{}
	for _, o := range orders {
		open[o.ID] = fmt.Sprint(o.Side, o.Price, o.Amount)
	}
	own := map[uint64]string{}
	for id, o := range l.Orders {
		own[id] = fmt.Sprint(o[0], decimal.RequireFromString(o[1]), decimal.RequireFromString(o[2]))
	}
	if !maps.Equal(open, own) {
		t.Errorf("at sequence %d REST has %v, and the maker %v", l.Sequence, open, l.Orders)
	}
	bought, sold := decimal.Zero, decimal.Zero
	for _, r := range trades {
		if r.MySide == "buy" {
			bought = bought.Add(r.Amount)
		} else {
			sold = sold.Add(r.Amount)
		}
	}
	if len(trades) != l.Trades || !bought.Equal(l.Bought) || !sold.Equal(l.Sold) {
		t.Errorf("at sequence %d REST has %d trades, %v bought and %v sold; the maker %d, %v, %v",
			l.Sequence, len(trades), bought, sold, l.Trades, l.Bought, l.Sold)
	}
}

// book returns the update of the public book, and its checksum by the rules of docs/stream.md.
func (m *maker) book() (update uint64, checksum uint32) {
	t := m.w.t
	t.Helper()
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.SetRequestURI("http://" + m.w.s.Listen + "/api/v1/orderbook/BTC_USDT/?group=1")
	succeeds(t, m.w.s.Client.Do(req, resp))
	var sides struct {
		Buy, Sell []struct{ Price, Amount json.Number }
	}
	if err := json.Unmarshal(resp.Body(), &sides); err != nil || resp.StatusCode() != 200 {
		t.Fatalf("%v\n%s", err, resp)
	}
	var texts []string
	for i := range 10 {
		if i < len(sides.Buy) {
			texts = append(texts, sides.Buy[i].Price.String()+":"+sides.Buy[i].Amount.String())
		}
		if i < len(sides.Sell) {
			texts = append(texts, sides.Sell[i].Price.String()+":"+sides.Sell[i].Amount.String())
		}
	}
	update = must[uint64](t)(strconv.ParseUint(string(resp.Header.Peek("X-Update-Id")), 10, 64))
	return update, crc32.ChecksumIEEE([]byte(strings.Join(texts, ":")))
}

// sequence returns the sequence of the account's newest event, by a socket of its own.
func (m *maker) sequence() uint64 {
	t := m.w.t
	t.Helper()
	conn, _, err := websocket.DefaultDialer.Dial(
		"ws://"+m.w.s.Listen+"/socket.v2/?EIO=4&transport=websocket", nil)
	succeeds(t, err)
	defer conn.Close()
	// asks sends a packet, and returns the text after a prefix in a later one.
	asks := func(packet, prefix string) []byte {
		succeeds(t, conn.WriteMessage(websocket.TextMessage, []byte(packet)))
		for {
			_, b, err := conn.ReadMessage()
			succeeds(t, err)
			if rest, ok := bytes.CutPrefix(b, []byte(prefix)); ok {
				return rest
			}
		}
	}
	asks("40", "40")
	var c [1]struct{ Challenge string }
	succeeds(t, json.Unmarshal(asks(`421["challenge"]`, "431"), &c))
	text := "login\n" + m.watcher.key + "\n" + c[0].Challenge
	if answer := asks(fmt.Sprintf(`422["login",{"key":%q,"sign":%q}]`, m.watcher.key,
		m.watcher.secret.Sign(nil, []byte(text))), "432"); !bytes.Contains(answer,
		[]byte(`"status":200`)) {
		t.Fatalf("%s", answer)
	}
	var snapshot struct{ Sequence uint64 }
	event := asks(`42["own.subscribe"]`, `42["own",`)
	if err := json.Unmarshal(bytes.TrimSuffix(event, []byte("]")), &snapshot); err != nil {
		t.Fatalf("%v %s", err, event)
	}
	return snapshot.Sequence
}

// ends lets the maker end. It leaves no order, and its initial coins. By then it has connected at
// least connects times, and resumed without a snapshot.
func (m *maker) ends(connects, resumed int) {
	t := m.w.t
	t.Helper()
	succeeds(t, m.process.Process.Signal(os.Interrupt))
	select {
	case <-m.ended:
	case <-time.After(time.Minute):
		t.Fatal("the maker does not end")
	}
	if err := m.process.Wait(); err != nil {
		t.Fatalf("the maker ends with %v", err)
	}
	wallet, orders, trades := m.rest()
	l := m.last
	m.same(&l, wallet, orders, trades)
	for _, h := range wallet {
		if h.Currency == "BTC" && h.Balance.String() != makerBegin || !h.Reserve.IsZero() {
			t.Errorf("at its end the maker has %+v", h)
		}
	}
	if !l.Done || len(orders) > 0 || l.Connects < connects || l.Resumed < resumed ||
		l.Trades < 8 {
		t.Errorf("it ends with %+v, REST has the orders %v", l, orders)
	}
	t.Logf("%d lines, %d trades, %d connections, %d resumed\n%s", m.lines, l.Trades, l.Connects,
		l.Resumed, m.errors.String())
}
