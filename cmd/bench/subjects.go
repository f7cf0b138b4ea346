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
	"time"

	"github.com/valyala/fasthttp"

	"exchange/gateway/sign"
)

// A server is a server process and whoever works for it, under the generator's load.
type server struct {
	title       string
	options     options
	start       func(s *server, dir string) error // sets what follows, as far as it gets
	rate        *row
	cpu         *row
	refused     *row   // nil for the yardstick: it knows no orders
	settings    string // of the exchange, beside those of all
	address     string // of the exchange's API
	operator    string // of its operator's interface
	pids        []int
	stops       []func()
	connections []*connection
}

// Groups of rows: what is not of the servers is first.
const (
	groupRate = 1 + iota
	groupCPU
	groupRefused
	groupReads
	groupStream
)

func allServers(o options) []subject {
	noop := newServer("no-op handler", o, startNoop, nil, 0)
	pebble := newServer("Pebble", o, func(s *server, dir string) error { return startExchange(s, dir, nil) }, noop, 0.40)
	redis := newServer("Redis, appendfsync always", o, startOnRedis, noop, 0.30)
	return append([]subject{noop, pebble, redis, newReads(o)}, streamSubjects(o)...)
}

// newServer makes the rows too; leastRatio is the aim of the rate.
func newServer(title string, o options, start func(*server, string) error, yardstick *server, leastRatio float64) *server {
	s := &server{title: title, options: o, start: start,
		rate: &row{subject: "HTTP: " + title, unit: "requests/s", group: groupRate, aim: aim{leastRatio: leastRatio}},
		cpu:  &row{subject: "CPU: " + title, unit: "us/request", group: groupCPU},
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
	_, err := run(s.connections, s.options.length)
	return err
}

func (s *server) measure(context.Context) error {
	before, err := cpuOf(s.pids)
	if err != nil {
		return err
	}
	r, err := run(s.connections, s.options.length)
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

// cpuOf is the user and system time that processes have used.
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
	cmd.Env = append(os.Environ(), "EXCHANGE_OPERATOR_TOKEN="+token)
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

const token = "token-of-the-benchmark"

func await(what string, ready func() bool) error {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
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

// startNoop starts this program again, as the yardstick.
func startNoop(s *server, _ string) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := s.child(os.Stderr, self, "-noop", address); err != nil {
		return err
	}
	users := make([]*user, s.options.connections)
	for i := range users {
		users[i] = &user{"00000000000000000000000000000000", sign.New([]byte("secret"))}
	}
	if err := await("the no-op handler", func() bool { return dials(address) }); err != nil {
		return err
	}
	s.connections, err = dial(address, users)
	return err
}

// noop starts a yardstick that answers with a body of that length.
func (s *server) noop(length int) (address string, err error) {
	if address, err = freeAddress(); err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if err := s.child(os.Stderr, self, "-noop", address, "-length", strconv.Itoa(length)); err != nil {
		return "", err
	}
	return address, await("the yardstick", func() bool { return dials(address) })
}

// serveNothing answers every request with the same order, or with a body of that length.
func serveNothing(address string, length int) {
	status, body := 201, []byte(`{"success":true,"type":"sell","date":1795241513.443573,"oid":1,"price":50000,"amount":0.5,"amount_filled":0,"amount_original":0.5,"trades":[]}`)
	if length > 0 {
		status, body = 200, bytes.Repeat([]byte{'x'}, length)
	}
	s := &fasthttp.Server{NoDefaultServerHeader: true, Handler: func(ctx *fasthttp.RequestCtx) {
		ctx.SetStatusCode(status)
		ctx.SetContentType("application/json")
		ctx.Response.SetBodyRaw(body)
	}}
	fmt.Fprintln(os.Stderr, s.ListenAndServe(address))
	os.Exit(1)
}

// startOnRedis starts a Redis and an exchange that keeps everything there.
func startOnRedis(s *server, dir string) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	_, port, _ := strings.Cut(address, ":")
	err = s.child(io.Discard, "redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "yes",
		"--appendfsync", "always", "--maxmemory-policy", "noeviction", "--auto-aof-rewrite-min-size", "256mb")
	if err != nil {
		return fmt.Errorf("redis-server (install it to measure this): %w", err)
	}
	if err := await("Redis", func() bool { return dials(address) }); err != nil {
		return err
	}
	return startExchange(s, dir, []string{"--store", "redis://" + address + "/0"})
}

// settings have patience with connections that wait for their turn.
const settings = `
timing: {idle_timeout_ms: 600000, read_timeout_ms: 600000}
currencies: [{code: BTC}, {code: USDT}]
pairs: [{name: BTC_USDT, price_precision: 2, amount_precision: 8, minimum_order_size: 0.00001, maximum_order_size: 1000000}]
`

// startExchange starts an exchange in a folder of its own, on Pebble when no store is given, and funds an
// account for each connection.
func startExchange(s *server, dir string, store []string) error {
	dir, err := os.MkdirTemp(dir, "exchange-")
	if err != nil {
		return err
	}
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
	args := []string{"serve", "--config", file, "--no-rate-limits", "--listen", address, "--operator", operator, "--data", data}
	if err := s.child(log, filepath.Join(filepath.Dir(dir), "exchange"), append(args, store...)...); err != nil {
		return err
	}
	if err := await("the exchange", func() bool { return answers("http://" + address + "/readyz") }); err != nil {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w\n%s", err, text)
	}
	users := make([]*user, s.options.connections)
	for i := range users {
		if users[i], err = account(operator, fmt.Sprintf("user-%d", i)); err != nil {
			return err
		}
	}
	s.address, s.operator = address, operator
	s.connections, err = dial(address, users)
	return err
}

func answers(url string) bool {
	r, err := http.Get(url)
	if err == nil {
		r.Body.Close()
	}
	return err == nil && r.StatusCode == 200
}

// account opens and funds an account, and makes a key for it.
func account(operator, name string) (*user, error) {
	var key struct{ Key, Secret string }
	for _, c := range []struct {
		path   string
		body   map[string]any
		answer any
	}{
		{"accounts", map[string]any{"name": name}, nil},
		{"deposits", map[string]any{"account": name, "currency": "BTC", "amount": "1000000"}, nil},
		{"deposits", map[string]any{"account": name, "currency": "USDT", "amount": "10000000000"}, nil},
		{"keys", map[string]any{"account": name, "permissions": []string{"read", "trade"}}, &key},
	} {
		if err := operate(operator, c.path, c.body, c.answer); err != nil {
			return nil, fmt.Errorf("%s: %w", c.path, err)
		}
	}
	return &user{key.Key, sign.New([]byte(key.Secret))}, nil
}

// operate asks the operator's interface; answer may be nil.
func operate(operator, path string, body map[string]any, answer any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequest("POST", "http://"+operator+"/operator/v1/"+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err = io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		return fmt.Errorf("%d %s %v", resp.StatusCode, b, err)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(b, answer)
}
