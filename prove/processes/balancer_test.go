//go:build prove && linux

package processes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/gateway/sign"
	"exchange/loadtest"
	"exchange/prove/exchangetest"
)

// The load balancers of docs/examples, in front of nodes.

// A balancer is a load balancer with its file of docs/examples, and the arguments to run it on a
// copy; folder holds its output.
type balancer struct {
	file string
	args func(t *testing.T, file, folder string) []string
}

var balancers = map[string]balancer{
	"nginx": {"nginx.conf", func(t *testing.T, file, folder string) []string {
		main := filepath.Join(folder, "main.conf")
		text := fmt.Sprintf("daemon off;\nmaster_process off;\npid %[1]s/pid;\n"+
			"error_log stderr;\nevents {}\nhttp {\n\taccess_log off;\n\t"+
			"client_body_temp_path %[1]s/body;\n\tproxy_temp_path %[1]s/proxy;\n\t"+
			"fastcgi_temp_path %[1]s/fastcgi;\n\tuwsgi_temp_path %[1]s/uwsgi;\n\t"+
			"scgi_temp_path %[1]s/scgi;\n\tinclude %[2]s;\n}\n", folder, file)
		succeeds(t, os.WriteFile(main, []byte(text), 0o600))
		return []string{"-c", main, "-p", folder, "-e", "stderr"}
	}},
	"haproxy": {"haproxy.cfg", func(_ *testing.T, file, _ string) []string {
		return []string{"-db", "-f", file}
	}},
	"caddy": {"Caddyfile", func(t *testing.T, file, folder string) []string {
		t.Setenv("HOME", folder) // it keeps its state there
		return []string{"run", "--config", file, "--adapter", "caddyfile"}
	}},
}

// balance runs a load balancer on its file of docs/examples in front of three nodes, and returns
// its address. It changes only the addresses in the file.
func balance(t *testing.T, name string, nodes []string) (address string) {
	t.Helper()
	example := balancers[name]
	b := must[[]byte](t)(os.ReadFile(filepath.Join("../../docs/examples", example.file)))
	folder, text := t.TempDir(), string(b)
	address = exchangetest.FreeAddress(t)
	for old, now := range map[string]string{"10.0.0.1:8080": nodes[0], "10.0.0.2:8080": nodes[1],
		"10.0.0.3:8080": nodes[2], "listen 80;": "listen " + address + ";",
		"bind :80\n": "bind " + address + "\n", "\n:80 {": "\nhttp://" + address + " {"} {
		text = strings.ReplaceAll(text, old, now)
	}
	if strings.Contains(text, "10.0.0.") || !strings.Contains(text, address) {
		t.Fatalf("not all addresses are put in:\n%s", text)
	}
	file := filepath.Join(folder, example.file)
	succeeds(t, os.WriteFile(file, []byte(text), 0o600))
	program, err := exec.LookPath(name)
	if err != nil {
		program = "/usr/sbin/" + name // where Debian has it, and not all users look
	}
	cmd := exec.Command(program, example.args(t, file, folder)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s does not run; `make prove` installs it: %v", name, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s says:\n%s", name, log.String())
		}
	})
	exchangetest.Eventually(t, name+" listens", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return address
}

// A fakeNode accepts any number of orders, and answers each as configured.
type fakeNode struct {
	listener net.Listener
	mu       sync.Mutex
	orders   []string // bodies that came
	used     map[net.Conn]bool
	dies     bool   // it reads an order, and closes the connection
	refuses  string // the body of a 503; "": it takes orders
}

func newFakeNode(t *testing.T) *fakeNode {
	t.Helper()
	l := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	n := &fakeNode{listener: l, used: map[net.Conn]bool{}}
	s := &fasthttp.Server{Handler: n.handle}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() { l.Close(); <-served })
	return n
}

func (n *fakeNode) handle(ctx *fasthttp.RequestCtx) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !ctx.IsPost() {
		return
	}
	n.orders = append(n.orders, string(ctx.PostBody()))
	n.used[ctx.Conn()] = true
	switch {
	case n.dies:
		ctx.HijackSetNoResponse(true)
		ctx.Hijack(func(net.Conn) {}) // which is closed then
	case n.refuses != "":
		ctx.SetStatusCode(503)
		ctx.Response.Header.Set("Retry-After", "1")
		ctx.SetBodyString(n.refuses)
	}
}

// becomes changes how the node answers.
func (n *fakeNode) becomes(dies bool, refuses string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dies, n.refuses = dies, refuses
}

// got returns the number of received orders, and of their connections.
func (n *fakeNode) got() (orders, connections int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.orders), len(n.used)
}

// An order received by a node is never sent to another one, even if the node fails. An order that
// could not be sent goes to another node. A node's answer reaches the client.
func TestABalancerSendsNoOrderTwice(t *testing.T) {
	for name := range balancers {
		t.Run(name, func(t *testing.T) { sendsNoOrderTwice(t, name) })
	}
}

func sendsNoOrderTwice(t *testing.T, name string) {
	f := &front{t: t, client: &fasthttp.Client{MaxIdemponentCallAttempts: 1,
		RetryIfErr: func(*fasthttp.Request, int, error) (bool, bool) { return false, false }}}
	var addresses []string
	for range 3 {
		n := newFakeNode(t)
		f.nodes, addresses = append(f.nodes, n), append(addresses, n.listener.Addr().String())
	}
	f.at = "http://" + balance(t, name, addresses)
	f.keepsConnections()
	f.passesAnswersOn()
	f.losesAnswersOnly()

	f.nodes[0].listener.Close() // now it takes no connection, either
	before, lost := f.taken(0), 0
	for range 30 {
		switch status, body, _ := f.post(); status {
		case 200:
		case 0, 502, 504:
			lost++
		default:
			t.Errorf("with a node that is gone: %d %s", status, body)
		}
	}
	// the node received an order over an open connection of the balancer, and died of it
	if got := f.taken(0) - before; lost != got || got > 3 {
		t.Errorf("a node that is gone died of %d orders, and the client lost %d answers", got, lost)
	}
	seen := map[string]bool{}
	for _, n := range f.nodes {
		for _, order := range n.orders {
			if seen[order] {
				t.Errorf("%s was sent twice", order)
			}
			seen[order] = true
		}
	}
	if len(seen) != f.sent {
		t.Errorf("%d orders were sent, and %d came", f.sent, len(seen))
	}
}

// A front is a balancer before fake nodes, and a client that sends orders one by one.
type front struct {
	t      *testing.T
	at     string
	client *fasthttp.Client
	nodes  []*fakeNode
	sent   int
}

// post sends an order; later reports whether the answer asks for a retry. A status of 0 is a broken
// connection, equivalent to 502: the order's outcome is unknown.
func (f *front) post() (status int, body string, later bool) {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	f.sent++
	req.SetRequestURI(f.at + "/api/v1/order/")
	req.Header.SetMethod("POST")
	req.SetBodyString(fmt.Sprintf("client_order_id=%d", f.sent))
	if err := f.client.Do(req, resp); err != nil {
		return 0, "", false
	}
	return resp.StatusCode(), string(resp.Body()), len(resp.Header.Peek("Retry-After")) > 0
}

// taken returns the number of orders that a node has received.
func (f *front) taken(node int) int {
	n, _ := f.nodes[node].got()
	return n
}

func (f *front) keepsConnections() {
	f.t.Helper()
	exchangetest.Eventually(f.t, "all nodes get orders", func() bool {
		if status, body, _ := f.post(); status != 200 {
			f.t.Fatalf("an order is answered with %d %s", status, body)
		}
		return min(f.taken(0), f.taken(1), f.taken(2)) >= 10
	})
	for i, n := range f.nodes {
		if orders, connections := n.got(); connections > 3 {
			f.t.Errorf("node %d got %d orders over %d connections", i, orders, connections)
		}
	}
}

func (f *front) passesAnswersOn() {
	f.t.Helper()
	const says = `{"detail":"The outcome is unknown.","code":"outcome_unknown"}`
	f.nodes[1].becomes(false, says)
	unavailable := 0
	for before := f.taken(1); f.taken(1) < before+5; {
		switch status, body, later := f.post(); {
		case status == 503 && body == says && later:
			unavailable++
		case status != 200:
			f.t.Fatalf("%d %s", status, body)
		}
	}
	if unavailable != 5 {
		f.t.Errorf("of 5 answers with 503 the client got %d", unavailable)
	}
	f.nodes[1].becomes(false, "")
}

func (f *front) losesAnswersOnly() {
	f.t.Helper()
	f.nodes[0].becomes(true, "")
	before, lost := f.taken(0), 0
	exchangetest.Eventually(f.t, "a node dies of orders", func() bool {
		switch status, body, _ := f.post(); status {
		case 0, 502, 504:
			lost++
		case 200:
		default:
			f.t.Fatalf("%d %s", status, body)
		}
		return f.taken(0) >= before+2
	})
	if got := f.taken(0) - before; lost != got {
		f.t.Errorf("a node died of %d orders, and the client lost %d answers", got, lost)
	}
}

// Clients trade over one address and receive events, by websockets and by polling alone, while a
// node is killed.
func TestClientsUseThreeNodesThroughABalancer(t *testing.T) {
	if _, err := os.Stat("../node_modules/socket.io-client"); err != nil {
		t.Fatalf("%v: `make smoke` installs it", err)
	}
	c := prepareCluster(t, nil)
	var addresses []string
	for _, s := range c.nodes {
		addresses = append(addresses, s.Listen)
	}
	c.runs("EXCHANGE_TRUSTED_PROXIES=[127.0.0.1/32]")
	led := c.led()
	killed := c.others(led)[0]
	for name := range balancers {
		t.Run(name, func(t *testing.T) {
			at := balance(t, name, addresses)
			addressesAreTheClients(t, led, "of-"+name, at)
			python := exchangetest.Listen(t, "/usr/bin/python3", "../clients/polling.py",
				"http://"+at, "BTC_USDT")
			python.Says("connected")
			o := testOf(led)
			o.Addresses, o.Accounts, o.Connections = []string{at}, 6, 12
			o.Duration = time.Second
			o.Subscribers = map[string]int{"diff": 3, "trades": 3, "own": 3}
			r := must[*loadtest.Report](t)(loadtest.Run(context.Background(), o))
			if v := r.Verification; r.Differs() || r.Unknown > 0 || v.Orders < 50 ||
				v.Audit != "clean" {
				t.Errorf("%+v", v)
			}
			python.ReceivedTrades()

			node := exchangetest.Listen(t, "node", "../clients/stream.mjs", "http://"+at,
				"BTC_USDT")
			r = loaded(t, o, killed.Kill)
			if v := r.Verification; r.Differs() || v.Orders < 50 || v.Audit != "clean" {
				t.Errorf("%+v", v)
			}
			var s struct{ Compared, Trades, Connects int }
			if err := json.Unmarshal(node.Ends(), &s); err != nil || s.Compared == 0 ||
				s.Trades == 0 || s.Connects < 4 {
				t.Errorf("%+v %v", s, err)
			}
			killed.Run()
			c.follows(killed, led)
		})
	}
}

// addressesAreTheClients checks that a key's allow-list applies to the client that the balancer
// names, and not to the client's own claims.
func addressesAreTheClients(t *testing.T, s *exchangetest.Server, account, at string) {
	t.Helper()
	w := &world{t: t, s: s}
	w.must("/operator/v1/accounts", map[string]string{"name": account}, nil)
	var key struct{ Key, Secret string }
	w.must("/operator/v1/keys", map[string]any{"account": account,
		"permissions": []string{"read"}, "allow": []string{"127.0.0.2"}}, &key)
	nonce := 0
	from := func(ip string) int {
		nonce++
		client := &fasthttp.Client{Dial: (&fasthttp.TCPDialer{
			LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}).Dial}
		req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		req.SetRequestURI("http://" + at + "/api/v1/wallets/")
		req.Header.Set("X-Forwarded-For", "127.0.0.2")
		req.Header.Set("X-KEY", key.Key)
		req.Header.Set("X-NONCE", strconv.Itoa(nonce))
		req.Header.Set("X-SIGN", string(sign.New([]byte(key.Secret)).Sign(nil, []byte(key.Key))))
		succeeds(t, client.Do(req, resp))
		client.CloseIdleConnections()
		return resp.StatusCode()
	}
	if a, b := from("127.0.0.2"), from("127.0.0.3"); a != 200 || b/100 != 4 {
		t.Errorf("a key of 127.0.0.2 is answered with %d there, and with %d at 127.0.0.3", a, b)
	}
}
