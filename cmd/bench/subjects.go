package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"exchange/gateway/sign"
)

// A server is a server process and its helpers, under the generator's load.
type server struct {
	title    string
	options  options
	start    func(s *server, dir string) error // sets the fields below, as far as it gets
	rate     *row
	cpu      *row
	refused  *row   // nil for yardsticks: they know no orders
	settings string // of the exchange, beside those of all
	// synthetic pairs of the exchange, for accounts to trade; 0: all trade the same pair
	pairs    int
	accounts int    // 0: one for each connection
	address  string // of the exchange's API
	operator string // of its operator's interface
	pids     []int
	stops    []func()
	clients  *clients
}

// Groups of rows. Rows of no server have no group, and are first.
const (
	groupRate = 1 + iota
	groupCPU
	groupRefused
	groupReads
	groupStream
	groupProcess
	groupOpen
	groupOverload
	groupFailover
)

func allServers(o options) []subject {
	pebbleStore := func(s *server, dir string) error { return startExchange(s, dir, nil) }
	noop := newServer("no-op handler", o, startNoop, nil, 0)
	durable := newServer("no-op and fdatasync", o, startDurable, noop, 0)
	durable.refused = nil
	pebble := newServer("Pebble", o, pebbleStore, noop, 0.50)
	wide := newServer(fmt.Sprintf("Pebble, %d pairs and %s accounts", manyPairs,
		show(manyAccounts)), o, pebbleStore, pebble, 0.80)
	wide.pairs, wide.accounts = manyPairs, manyAccounts
	few := newServer("Pebble, "+show(fewResting)+" resting orders", o, startResting(fewResting),
		noop, 0)
	many := newServer("Pebble, "+show(manyResting)+" resting orders", o, startResting(manyResting),
		few, 0.90)
	redis := newServer("Redis, appendfsync always", o, startOnRedis, noop, 0.40)
	for _, s := range []*server{pebble, redis} {
		s.cpu.aim.mostRatio = 2
	}
	crowd := o
	crowd.connections = 512
	crowded := newServer(fmt.Sprintf("Pebble, %d connections", crowd.connections), crowd,
		pebbleStore, nil, 0)
	list := []subject{newStart(o), newRedisStart(o), noop, durable, pebble, wide, few, many, redis,
		newReads(o)}
	list = append(list, streamSubjects(o)...)
	return append(list, newIDs(o, "Pebble", "", pebbleStore), newIDs(o, "Redis", "", startOnRedis),
		newTaking(o, pebbleStore), newResting(o, pebbleStore), newStops(o, pebble), newCascade(o),
		newWays(o), newProcess(o), newTester(o), newOpenLoop(o), newImages(o),
		newOverload(o, noop.cpu), newFairness(o), crowded,
		newClusterLoad(o, o.connections, pebble, 1.5),
		newClusterLoad(o, crowd.connections, crowded, 1.25), newEntering(o), newObserved(o),
		newFailover(o, 1_000, 1.5),
		newFailover(o, 100_000, 2))
}

// The sizes of larger exchanges.
const (
	manyPairs    = 200
	manyAccounts = 10_000
	fewResting   = 1_000
	manyResting  = 1_000_000
)

// startResting starts an exchange with this many orders in its book, on which the mix leaves about
// as many.
func startResting(orders int) func(*server, string) error {
	return func(s *server, dir string) error {
		if err := startExchange(s, dir, nil); err != nil {
			return err
		}
		return deepen(s.clients, orders)
	}
}

// newServer makes the rows too; leastRatio is the aim of the rate.
func newServer(title string, o options, start func(*server, string) error, yardstick *server,
	leastRatio float64) *server {
	s := &server{title: title, options: o, start: start,
		rate: &row{subject: "HTTP: " + title, unit: "requests/s", group: groupRate,
			aim: aim{leastRatio: leastRatio}},
		cpu: &row{subject: "CPU: " + title, unit: "us/request", group: groupCPU},
	}
	if yardstick != nil {
		s.rate.yardstick, s.cpu.yardstick = yardstick.rate, yardstick.cpu
		s.refused = &row{subject: "refused: " + title, unit: "%", group: groupRefused}
	}
	return s
}

func (s *server) name() string { return s.title }

func (s *server) rows() []*row {
	if s.refused == nil {
		return []*row{s.rate, s.cpu}
	}
	return []*row{s.rate, s.cpu, s.refused}
}

// begin starts the server and warms it up.
func (s *server) begin(_ context.Context, dir string) error {
	if err := s.start(s, dir); err != nil {
		return err
	}
	_, err := s.clients.run(s.options.length)
	return err
}

func (s *server) measure(context.Context) error {
	before, err := cpuOf(s.pids)
	if err != nil {
		return err
	}
	r, err := s.clients.run(s.options.length)
	if err != nil {
		return err
	}
	after, err := cpuOf(s.pids)
	if err != nil {
		return err
	}
	s.rate.values = append(s.rate.values, r.rate())
	s.cpu.values = append(s.cpu.values, (after-before).Seconds()*1e6/float64(r.requests))
	if s.refused != nil {
		s.refused.values = append(s.refused.values, 100*float64(r.refused)/float64(r.requests))
	}
	return nil
}

func (s *server) end() {
	for _, stop := range s.stops {
		stop()
	}
}

// clockTick is the unit of /proc/PID/stat on Linux.
const clockTick = 10 * time.Millisecond

// cpuOf returns the user and system time that processes have used.
func cpuOf(pids []int) (sum time.Duration, err error) {
	for _, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, err
		}
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		user, err1 := strconv.Atoi(f[11])
		system, err2 := strconv.Atoi(f[12])
		if err := errors.Join(err1, err2); err != nil {
			return 0, err
		}
		sum += time.Duration(user+system) * clockTick
	}
	return sum, nil
}

// settled waits until the server has nothing to do any more.
func (s *server) settled() error {
	const look = time.Second
	for last := time.Duration(0); ; {
		used, err := cpuOf(s.pids)
		if err != nil || used-last < look/50 {
			return err
		}
		last = used
		time.Sleep(look)
	}
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// child runs a program until the server ends. Its CPU is the server's.
func (s *server) child(output io.Writer, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.Env = append(os.Environ(), "EXCHANGE_OPERATOR_TOKEN="+token, manyOrders)
	if err := cmd.Start(); err != nil {
		return err
	}
	s.pids = append(s.pids, cmd.Process.Pid)
	s.stops = append(s.stops, func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck
	})
	return nil
}

// manyOrders lets the few accounts of a benchmark have all orders of a deep book.
const manyOrders = "EXCHANGE_LIMITS_OPEN_ORDERS_PER_ACCOUNT_AND_BOOK=10000000"

const token = "token-of-the-benchmark-0123456789"

func await(what string, ready func() bool) error {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(
		5 * time.Millisecond) {
		if ready() {
			return nil
		}
	}
	return fmt.Errorf("%s is not ready", what)
}

func dials(address string) bool {
	c, err := net.Dial("tcp", address)
	if err == nil {
		c.Close()
	}
	return err == nil
}

// startOnRedis starts a Redis and an exchange that keeps everything there.
func startOnRedis(s *server, dir string) error {
	url, err := s.startRedis(dir)
	if err != nil {
		return err
	}
	return startExchange(s, dir, []string{"--store", url})
}

// startRedis starts a Redis as operators run it, and returns its URL.
func (s *server) startRedis(dir string) (url string, err error) {
	address, err := freeAddress()
	if err != nil {
		return "", err
	}
	_, port, _ := strings.Cut(address, ":")
	if dir, err = os.MkdirTemp(dir, "redis-"); err != nil { // another subject's has its data
		return "", err
	}
	err = s.child(io.Discard, "redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", dir,
		"--save", "", "--appendonly", "yes",
		"--appendfsync", "always", "--maxmemory-policy", "noeviction",
		"--auto-aof-rewrite-min-size", "256mb")
	if err != nil {
		return "", fmt.Errorf("redis-server (install it to measure this): %w", err)
	}
	return "redis://" + address + "/0",
		await("Redis", func() bool { return dials(address) })
}

// settings have patience with connections that wait for their turn.
const settings = `
timing: {idle_timeout_ms: 600000, read_timeout_ms: 600000}
currencies: [{code: BTC}, {code: USDT}]
pairs: [{name: BTC_USDT, price_precision: 2, amount_precision: 8, minimum_order_size: 0.00001, maximum_order_size: 1000000}]
`

// startExchange starts an exchange in a folder of its own, on Pebble when no store is given, and
// funds an account for each connection.
func startExchange(s *server, dir string, store []string) error {
	dir, err := os.MkdirTemp(dir, "exchange-")
	if err != nil {
		return err
	}
	if err := s.launch(dir, store); err != nil {
		return err
	}
	return s.populate()
}

// populate funds an account for each connection, and connects.
func (s *server) populate() error {
	users, err := makeAccounts(s.operator, max(s.accounts, s.options.connections), s.base)
	if err != nil {
		return err
	}
	s.clients, err = dial(s.address, s.options.connections,
		users, func(i int) string { return s.base(i) + "_USDT" })
	return err
}

// launch starts an exchange in a folder, on the Pebble in its folder "data" when no store is given,
// and waits until it is ready.
func (s *server) launch(dir string, store []string) error {
	address, err1 := freeAddress()
	operator, err2 := freeAddress()
	file := filepath.Join(dir, "settings.yaml")
	err3 := os.WriteFile(file, []byte(settings+s.settings), 0o600)
	log, err4 := os.Create(filepath.Join(dir, "log"))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	defer log.Close()
	data := filepath.Join(dir, "data")
	if store == nil {
		store = []string{"--store", "pebble:" + data}
	}
	args := []string{"serve", "--config", file, "--no-rate-limits", "--listen", address,
		"--operator", operator, "--data", data,
		"--synthetic-pairs", strconv.Itoa(s.pairs)}
	if err := s.child(log, filepath.Join(filepath.Dir(dir), "exchange"),
		append(args, store...)...); err != nil {
		return err
	}
	if err := await("the exchange", func() bool {
		return answers("http://" + address + "/readyz")
	}); err != nil {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w\n%s", err, text)
	}
	s.address, s.operator = address, operator
	return nil
}

// base returns the currency whose pair with USDT an account trades.
func (s *server) base(account int) string {
	if s.pairs == 0 {
		return "BTC"
	}
	return fmt.Sprintf("SYN%04d", account%s.pairs+1)
}

// makeAccounts makes accounts, many at a time: each of their steps waits for the store.
func makeAccounts(operator string, n int, base func(account int) string) ([]*user, error) {
	users, errs := make([]*user, n), make([]error, operatorConnections)
	var next atomic.Int64
	var made sync.WaitGroup
	for w := range errs {
		made.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && errs[w] == nil; i = next.Add(1) - 1 {
				users[i], errs[w] = account(operator, fmt.Sprintf("user-%d", i), base(int(i)))
			}
		})
	}
	made.Wait()
	return users, errors.Join(errs...)
}

// more makes this many connections, each with a key of its own; an account has some of the keys.
func (s *server) more(name string, n, keys int) (*clients, error) {
	var users []*user
	for i := 0; len(users) < n; i++ {
		u, err := account(s.operator, name+"-"+strconv.Itoa(i), s.base(i))
		if err != nil {
			return nil, err
		}
		users = append(users, u)
		for k := 1; k < keys && len(users) < n; k++ {
			if u, err = key(s.operator, name+"-"+strconv.Itoa(i)); err != nil {
				return nil, err
			}
			users = append(users, u)
		}
	}
	return dial(s.address, n, users, func(i int) string { return s.base(i) + "_USDT" })
}

func answers(url string) bool {
	r, err := http.Get(url)
	if err == nil {
		r.Body.Close()
	}
	return err == nil && r.StatusCode == 200
}

// account opens and funds an account, and makes a key for it.
func account(operator, name, base string) (*user, error) {
	for _, c := range []struct {
		path string
		body map[string]any
	}{
		{"accounts", map[string]any{"name": name}},
		{"deposits", map[string]any{"account": name, "currency": base, "amount": "1000000"}},
		{"deposits", map[string]any{"account": name, "currency": "USDT", "amount": "10000000000"}},
	} {
		if err := operate(operator, c.path, c.body, nil); err != nil {
			return nil, fmt.Errorf("%s: %w", c.path, err)
		}
	}
	return key(operator, name)
}

// key makes a key for an account.
func key(operator, account string) (*user, error) {
	var key struct{ Key, Secret string }
	if err := operate(operator, "keys",
		map[string]any{"account": account, "permissions": []string{"read", "trade"}},
		&key); err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	return &user{key: key.Key, text: key.Secret, secret: sign.New([]byte(key.Secret))}, nil
}

// The operator's client keeps its connections: an account takes four requests. They are half of
// the connections that an exchange has room for.
const operatorConnections = 32

var operatorClient = &http.Client{
	Transport: &http.Transport{MaxConnsPerHost: operatorConnections,
		MaxIdleConnsPerHost: operatorConnections}}

// operate has the operator's interface do something; answer may be nil.
func operate(operator, path string, body map[string]any, answer any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return askOperator("POST", operator, path, b, answer)
}

// askOperator sends a request to the operator's interface; answer may be nil.
func askOperator(method, operator, path string, body []byte, answer any) error {
	req, err := http.NewRequest(method, "http://"+operator+"/operator/v1/"+path,
		bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := operatorClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		return fmt.Errorf("%d %s %v", resp.StatusCode, b, err)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(b, answer)
}
