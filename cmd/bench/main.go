// Command bench measures the exchange against yardsticks in the same run: signed durable orders over
// HTTP, on Pebble and on Redis, beside a fasthttp handler that does nothing, all driven by the same
// generator in turns. On a shared machine absolute rates say little; the ratios, and the CPU that each
// order costs, say more. Results are medians over rounds.
//
//	go run ./cmd/bench [-rounds 7] [-seconds 2] [-connections 64]
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/gateway/sign"
)

func main() {
	rounds := flag.Int("rounds", 7, "rounds; each measures everything once")
	seconds := flag.Float64("seconds", 2, "length of one measurement")
	connections := flag.Int("connections", 64, "connections, each with an account of its own")
	noop := flag.String("noop", "", "serve the yardstick on this address (the program does that to itself)")
	flag.Parse()
	if *noop != "" {
		serveNothing(*noop)
		return
	}
	if err := bench(*rounds, time.Duration(*seconds*float64(time.Second)), *connections); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// serveNothing answers every request with the same order.
func serveNothing(address string) {
	body := []byte(`{"success":true,"type":"sell","date":1795241513.443573,"oid":1,"price":50000,"amount":0.5,"amount_filled":0,"amount_original":0.5,"trades":[]}`)
	s := &fasthttp.Server{NoDefaultServerHeader: true, Handler: func(ctx *fasthttp.RequestCtx) {
		ctx.SetStatusCode(201)
		ctx.SetContentType("application/json")
		ctx.SetBody(body)
	}}
	fmt.Fprintln(os.Stderr, s.ListenAndServe(address))
	os.Exit(1)
}

// A subject is one thing that is measured: a server process and whoever works for it.
type subject struct {
	name    string
	address string
	pids    []int // whose CPU counts
	stop    func()
	conns   []*connection

	rates, cpu []float64
	refused    int
	requests   int
}

func bench(rounds int, d time.Duration, connections int) error {
	dir, err := os.MkdirTemp("", "exchange-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "exchange")
	build := exec.Command("go", "build", "-o", binary, "exchange/cmd/exchange")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building the exchange: %w", err)
	}
	var subjects []*subject
	defer func() {
		for _, s := range subjects {
			s.stop()
		}
	}()
	for _, begin := range []func() (*subject, error){
		func() (*subject, error) { return beginNoop(connections) },
		func() (*subject, error) { return beginExchange("pebble", binary, dir, connections, nil) },
		func() (*subject, error) {
			redis, err := beginRedis(dir)
			if err != nil {
				return nil, err
			}
			return beginExchange("redis, appendfsync always", binary, dir, connections, redis)
		},
	} {
		s, err := begin()
		if err != nil {
			return err
		}
		subjects = append(subjects, s)
	}
	for round := range rounds + 1 { // the first one warms up and does not count
		for _, s := range subjects {
			if err := s.measure(d, round > 0); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		if round > 0 {
			fmt.Fprintf(os.Stderr, "round %d of %d\r", round, rounds)
		}
	}
	report(subjects, connections)
	return nil
}

func (s *subject) measure(d time.Duration, counts bool) error {
	before, err := cpuOf(s.pids)
	if err != nil {
		return err
	}
	r, err := run(s.conns, d)
	if err != nil {
		return err
	}
	after, err := cpuOf(s.pids)
	if err != nil || !counts {
		return err
	}
	s.rates = append(s.rates, r.rate())
	s.cpu = append(s.cpu, (after-before).Seconds()*1e6/float64(r.requests))
	s.refused += r.refused
	s.requests += r.requests
	return nil
}

// report prints the table; ratios are medians of the ratios of each round.
func report(subjects []*subject, connections int) {
	base := subjects[0]
	fmt.Printf("%d connections, 60 %% orders and 40 %% cancels, medians of %d rounds (lowest to highest)\n\n", connections, len(base.rates))
	fmt.Printf("%-28s %10s %20s %14s %12s %10s %9s\n", "", "requests/s", "", "x of no-op", "CPU us/req", "x of no-op", "refused")
	for _, s := range subjects {
		rate, cpu := make([]float64, len(s.rates)), make([]float64, len(s.rates))
		for i := range s.rates {
			rate[i], cpu[i] = s.rates[i]/base.rates[i], s.cpu[i]/base.cpu[i]
		}
		fmt.Printf("%-28s %10.0f %20s %14.2f %12.1f %10.2f %8.1f%%\n", s.name, median(s.rates),
			fmt.Sprintf("(%.0f-%.0f)", slices.Min(s.rates), slices.Max(s.rates)), median(rate), median(s.cpu), median(cpu), 100*float64(s.refused)/float64(s.requests))
	}
	fmt.Println("\nCPU is that of the server's processes, Redis included. Refused are cancels of orders that were filled before.")
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
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

// child runs a program until stop.
func child(output io.Writer, name string, args ...string) (pid int, stop func(), err error) {
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.Env = append(os.Environ(), "EXCHANGE_OPERATOR_TOKEN="+token)
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	return cmd.Process.Pid, func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck
	}, nil
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

func beginNoop(connections int) (*subject, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	pid, stop, err := child(os.Stderr, self, "-noop", address)
	if err != nil {
		return nil, err
	}
	s := &subject{name: "no-op handler", address: address, pids: []int{pid}, stop: stop}
	users := make([]*user, connections)
	for i := range users {
		users[i] = &user{"00000000000000000000000000000000", sign.New([]byte("secret"))}
	}
	if err := await("the no-op handler", func() bool { return dials(address) }); err != nil {
		return s, err
	}
	s.conns, err = dial(address, users)
	return s, err
}

type redisServer struct {
	address string
	pid     int
	stop    func()
}

func beginRedis(dir string) (*redisServer, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, port, _ := strings.Cut(address, ":")
	pid, stop, err := child(io.Discard, "redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "yes",
		"--appendfsync", "always", "--maxmemory-policy", "noeviction", "--auto-aof-rewrite-min-size", "256mb")
	if err != nil {
		return nil, fmt.Errorf("redis-server (install it to measure this): %w", err)
	}
	return &redisServer{address, pid, stop}, await("Redis", func() bool { return dials(address) })
}

const settings = `
currencies: [{code: BTC}, {code: USDT}]
pairs: [{name: BTC_USDT, price_precision: 2, amount_precision: 8, minimum_order_size: 0.00001, maximum_order_size: 1000000}]
`

func beginExchange(name, binary, dir string, connections int, redis *redisServer) (*subject, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	operator, err := freeAddress()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
	file := data + ".yaml"
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		return nil, err
	}
	store := "pebble:" + data
	if redis != nil {
		store = "redis://" + redis.address + "/0"
	}
	log, err := os.Create(data + ".log")
	if err != nil {
		return nil, err
	}
	pid, stop, err := child(log, binary, "serve", "--config", file, "--no-rate-limits", "--listen", address, "--operator", operator, "--store", store, "--data", data)
	if err != nil {
		return nil, err
	}
	s := &subject{name: name, address: address, pids: []int{pid}, stop: stop}
	if redis != nil {
		s.pids = append(s.pids, redis.pid)
		s.stop = func() { stop(); redis.stop() }
	}
	err = await("the exchange on "+name, func() bool {
		r, err := http.Get("http://" + address + "/readyz")
		if err == nil {
			r.Body.Close()
		}
		return err == nil && r.StatusCode == 200
	})
	if err != nil {
		text, _ := os.ReadFile(data + ".log")
		return s, fmt.Errorf("%w\n%s", err, text)
	}
	users := make([]*user, connections)
	for i := range users {
		if users[i], err = account(operator, fmt.Sprintf("user-%d", i)); err != nil {
			return s, err
		}
	}
	s.conns, err = dial(address, users)
	return s, err
}

// account opens and funds an account, and makes a key for it.
func account(operator, name string) (*user, error) {
	var key struct{ Key, Secret string }
	for _, c := range []struct {
		path string
		body map[string]any
	}{
		{"accounts", map[string]any{"name": name}},
		{"deposits", map[string]any{"account": name, "currency": "BTC", "amount": "1000000"}},
		{"deposits", map[string]any{"account": name, "currency": "USDT", "amount": "10000000000"}},
		{"keys", map[string]any{"account": name, "permissions": []string{"read", "trade"}}},
	} {
		b, err := json.Marshal(c.body)
		if err != nil {
			return nil, err
		}
		req, err := http.NewRequest("POST", "http://"+operator+"/operator/v1/"+c.path, bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 {
			return nil, fmt.Errorf("%s: %d %s %v", c.path, resp.StatusCode, answer, err)
		}
		if c.path == "keys" {
			if err := json.Unmarshal(answer, &key); err != nil {
				return nil, err
			}
		}
	}
	return &user{key.Key, sign.New([]byte(key.Secret))}, nil
}
