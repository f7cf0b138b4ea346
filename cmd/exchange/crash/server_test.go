package crash

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

var program struct {
	sync.Once
	path string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if program.path != "" {
		os.RemoveAll(filepath.Dir(program.path))
	}
	os.Exit(code)
}

// build makes the program once for all tests, with the race detector.
func build(t testing.TB) string {
	t.Helper()
	program.Do(func() {
		dir, err := os.MkdirTemp("", "exchange-crash-")
		if err != nil {
			program.err = err
			return
		}
		program.path = filepath.Join(dir, "exchange")
		out, err := exec.Command("go", "build", "-race", "-o", program.path, "exchange/cmd/exchange").CombinedOutput()
		if err != nil {
			program.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return program.path
}

// A server is the exchange as a child process, on a store that outlives it.
type server struct {
	t        testing.TB
	binary   string
	args     []string
	env      []string
	listen   string
	operator string
	token    string
	log      *os.File
	process  *exec.Cmd
	exited   chan struct{} // closed when the process has ended
	client   *fasthttp.Client
}

const settings = `
currencies:
  - {code: BTC}
  - {code: USDT}
pairs:
  - {name: BTC_USDT, price_precision: 2, amount_precision: 8, minimum_order_size: 0.00001, maximum_order_size: 1000000}
`

// newServer prepares an exchange on a store; more are further arguments of serve.
func newServer(t testing.TB, store string, more ...string) *server {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "exchange.yaml")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, binary: build(t), listen: freeAddress(t), operator: freeAddress(t), token: "token-of-the-crash-tests", log: log,
		client: &fasthttp.Client{ReadTimeout: 20 * time.Second, MaxIdemponentCallAttempts: 1, RetryIfErr: func(*fasthttp.Request, int, error) (bool, bool) { return false, false }}}
	s.args = append([]string{"serve", "--config", file, "--listen", s.listen, "--operator", s.operator, "--store", store, "--data", filepath.Join(dir, "data")}, more...)
	s.env = append(os.Environ(), "EXCHANGE_OPERATOR_TOKEN="+s.token)
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			s.printLog()
		}
		log.Close()
	})
	return s
}

func freeAddress(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (s *server) printLog() {
	b, err := os.ReadFile(s.log.Name())
	if err != nil {
		s.t.Log(err)
		return
	}
	lines := bufio.NewScanner(bytes.NewReader(b))
	var last []string
	for lines.Scan() {
		last = append(last, lines.Text())
	}
	s.t.Logf("the end of the exchange's log:\n%s", strings.Join(last[max(0, len(last)-40):], "\n"))
}

// start runs the program and waits until it is ready.
func (s *server) start() {
	s.t.Helper()
	s.client.CloseIdleConnections() // those to the process before
	s.run()
	eventually(s.t, "the exchange is ready", func() bool {
		select {
		case <-s.exited:
			s.t.Fatalf("the exchange ended while starting: %v", s.process.ProcessState)
		default:
		}
		return s.ready() == nil
	})
}

// ready asks the program whether it takes orders.
func (s *server) ready() error {
	status, body, err := s.client.GetTimeout(nil, "http://"+s.listen+"/readyz", 5*time.Second)
	if err == nil && status != 200 {
		err = fmt.Errorf("%d %s", status, body)
	}
	return err
}

func (s *server) run() {
	s.t.Helper()
	cmd := exec.Command(s.binary, s.args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, s.log, s.log
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.process, s.exited = cmd, make(chan struct{})
	go func(done chan struct{}) {
		cmd.Wait() //nolint:errcheck // the state is looked at instead
		close(done)
	}(s.exited)
}

// kill ends the process with SIGKILL and waits until it is gone.
func (s *server) kill() {
	if s.process != nil {
		s.process.Process.Kill() //nolint:errcheck // it may have ended by itself
		<-s.exited
	}
}

// terminate asks for an orderly end and returns the exit code.
func (s *server) terminate() int {
	s.t.Helper()
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	<-s.exited
	return s.process.ProcessState.ExitCode()
}

// call sends an operator's request and decodes its answer into v, unless that is nil.
func (s *server) call(method, path string, body, v any) (int, error) {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.Header.SetMethod(method)
	req.SetRequestURI("http://" + s.operator + path)
	req.Header.Set("Authorization", "Bearer "+s.token)
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		req.SetBody(b)
	}
	if err := s.client.Do(req, resp); err != nil {
		return 0, err
	}
	if resp.StatusCode() != 200 {
		return resp.StatusCode(), fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode(), resp.Body())
	}
	if v == nil {
		return 200, nil
	}
	return 200, json.Unmarshal(resp.Body(), v)
}

// eventually waits for a condition that other processes bring about.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("it did not happen: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}
