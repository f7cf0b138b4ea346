package exchangetest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/persistence/redistest"
)

var program struct {
	sync.Once
	path string
	err  error
}

// Main runs a package's tests and removes the program that they built: for TestMain.
func Main(m *testing.M) int {
	code := m.Run()
	if program.path != "" {
		_ = os.RemoveAll(filepath.Dir(program.path)) // below the system's temporary folder
	}
	return code
}

// programVariable names a prebuilt program to test, instead of one with the race detector.
const programVariable = "EXCHANGE_TEST_PROGRAM"

// environment returns the environment without the tests' own variables. The program would use them
// as options, or warn of unknown ones in the errors of each command.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "EXCHANGE_")
	})
}

// build builds the program once for all tests, with the race detector.
func build(t testing.TB) string {
	t.Helper()
	if path := os.Getenv(programVariable); path != "" {
		return path
	}
	program.Do(func() {
		dir, err := os.MkdirTemp("", "exchange-crash-")
		if err != nil {
			program.err = err
			return
		}
		program.path = filepath.Join(dir, "exchange")
		program.err = buildIn(program.path, "-race")
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return program.path
}

// Build builds the program under test again, as of another version. It reads more additional
// formats of a cluster's log, like a later program.
func Build(t testing.TB, version string, more int) string {
	t.Helper()
	dir := t.TempDir()
	path, flags := filepath.Join(dir, "exchange"), []string{"-ldflags",
		"-X exchange/cmd/exchange/cli.commit=" + version, "-overlay", reading(t, dir, more)}
	if os.Getenv(programVariable) == "" {
		flags = append(flags, "-race")
	}
	succeeds(t, buildIn(path, flags...))
	return path
}

// reading writes an overlay for builds into dir, with more additional formats.
func reading(t testing.TB, dir string, more int) string {
	t.Helper()
	const constant = "Newest = persistence.NewestFormat"
	list, err1 := exec.Command("go", "list", "-f", "{{.Dir}}",
		"exchange/persistence/internal/machine").Output()
	file := filepath.Join(strings.TrimSpace(string(list)), "entry.go")
	text, err2 := os.ReadFile(file)
	if strings.Count(string(text), constant) != 1 {
		t.Fatalf("%s does not say %q once: %v", file, constant, errors.Join(err1, err2))
	}
	other, overlay := filepath.Join(dir, "entry.go"), filepath.Join(dir, "overlay.json")
	err3 := os.WriteFile(other, []byte(strings.Replace(string(text), constant,
		fmt.Sprint(constant, " + ", more), 1)), 0o600)
	replace, err4 := json.Marshal(map[string]any{"Replace": map[string]string{file: other}})
	err5 := os.WriteFile(overlay, replace, 0o600)
	succeeds(t, err3, err4, err5)
	return overlay
}

func buildIn(path string, flags ...string) error {
	args := slices.Concat([]string{"build", "-o", path}, flags, []string{"exchange/cmd/exchange"})
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// A Server is the exchange as a child process, on a store that outlives it. Its methods are for the
// test's goroutine, but Client and Call may be used by any.
type Server struct {
	Args     []string // of the program; may be changed between two starts
	Env      []string
	Listen   string // address of the API
	Operator string // address of the operator's listener
	Client   *fasthttp.Client
	Mails    *Mails // receives the exchange's mails

	t       testing.TB
	binary  string
	token   string
	log     *os.File
	process *exec.Cmd
	exited  chan struct{} // closed when the process has ended
}

// Settings is the configuration file of New: one pair.
const Settings = `
currencies:
  - {code: BTC}
  - {code: USDT}
pairs:
  - {name: BTC_USDT, price_precision: 2, amount_precision: 8, minimum_order_size: 0.00001, maximum_order_size: 1000000}
`

// New prepares an exchange on a store; more are further arguments of serve.
func New(t testing.TB, store string, more ...string) *Server {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "exchange.yaml")
	succeeds(t, os.WriteFile(file, []byte(Settings), 0o600))
	log, err := os.Create(filepath.Join(dir, "log"))
	succeeds(t, err)
	s := &Server{t: t, binary: build(t), Listen: FreeAddress(t), Operator: FreeAddress(t),
		token: "token-of-the-tests-0123456789abcdef", log: log,
		Client: &fasthttp.Client{ReadTimeout: 20 * time.Second, MaxIdemponentCallAttempts: 1,
			RetryIfErr: func(*fasthttp.Request, int, error) (bool, bool) { return false, false }}}
	s.Args = append([]string{"serve", "--config", file, "--listen", s.Listen, "--operator",
		s.Operator, "--store", store, "--data", filepath.Join(dir, "data"), "--no-rate-limits"},
		more...)
	s.Mails = newMails(t)
	// Built with the race detector, a program sleeps for a second at its end by default.
	s.Env = append(append(environment(), s.Mails.Env()...), "EXCHANGE_OPERATOR_TOKEN="+s.token,
		"GORACE=atexit_sleep_ms=0")
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			s.printLog()
		}
		log.Close()
	})
	return s
}

// Demo makes the next start serve the demo, without its market, instead of the configuration file.
func (s *Server) Demo() {
	s.Args = append([]string{"serve", "--demo", "--no-demo-market"}, s.Args[3:]...)
}

// DemoWithMarket is Demo with its market.
func (s *Server) DemoWithMarket() { s.Args = append([]string{"serve", "--demo"}, s.Args[3:]...) }

// FreeAddress returns an address of this machine without a listener.
func FreeAddress(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t))
}

func (s *Server) printLog() {
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

// Start runs the program and waits until it is ready.
func (s *Server) Start() {
	s.t.Helper()
	s.Run()
	Eventually(s.t, "the exchange is ready", func() bool {
		select {
		case <-s.exited:
			s.t.Fatalf("the exchange ended while starting: %v", s.process.ProcessState)
		default:
		}
		return s.Ready() == nil
	})
}

// Ready asks the program whether it takes orders.
func (s *Server) Ready() error {
	status, body, err := s.Client.GetTimeout(nil, "http://"+s.Listen+"/readyz", 5*time.Second)
	if err == nil && status != 200 {
		err = fmt.Errorf("%d %s", status, body)
	}
	return err
}

// Run starts the program and does not wait for anything.
func (s *Server) Run() {
	s.t.Helper()
	s.run(exec.Command(s.binary, s.Args...), s.log)
}

// RunLogging is Run with another file for the program's log.
func (s *Server) RunLogging(log *os.File) {
	s.t.Helper()
	s.run(exec.Command(s.binary, s.Args...), log)
}

// RunWithoutRoom is Run where no file can grow beyond 512 bytes. The program's log goes through a
// pipe, because the log is a file, too.
func (s *Server) RunWithoutRoom() {
	s.t.Helper()
	limited := []string{"-c", `ulimit -f 1 && exec "$0" "$@"`, s.binary}
	s.run(exec.Command("sh", append(limited, s.Args...)...), struct{ io.Writer }{s.log})
}

func (s *Server) run(cmd *exec.Cmd, log io.Writer) {
	s.t.Helper()
	s.Client.CloseIdleConnections() // those to the previous process
	cmd.Env, cmd.Stdout, cmd.Stderr = s.Env, log, log
	succeeds(s.t, cmd.Start())
	s.process, s.exited = cmd, make(chan struct{})
	go func(done chan struct{}) {
		cmd.Wait() //nolint:errcheck // the state is checked instead
		close(done)
	}(s.exited)
}

// Kill ends the process with SIGKILL and waits until it is gone.
func (s *Server) Kill() {
	if s.process != nil {
		s.process.Process.Kill() //nolint:errcheck // it may have ended by itself
		<-s.exited
	}
}

// Terminate asks for an orderly end and returns the exit code.
func (s *Server) Terminate() int {
	s.t.Helper()
	succeeds(s.t, s.process.Process.Signal(syscall.SIGTERM))
	<-s.exited
	return s.process.ProcessState.ExitCode()
}

// Program returns the path of the program; Use has the next start run another one.
func (s *Server) Program() string { return s.binary }

// Token returns the operator's token.
func (s *Server) Token() string { return s.token }

// Use has the next start run another program.
func (s *Server) Use(program string) { s.binary = program }

// Pid returns the number of the running process.
func (s *Server) Pid() int { return s.process.Process.Pid }

// Signal sends the process a signal.
func (s *Server) Signal(signal os.Signal) {
	s.t.Helper()
	succeeds(s.t, s.process.Process.Signal(signal))
}

// Log returns the program's log so far.
func (s *Server) Log() string {
	s.t.Helper()
	b, err := os.ReadFile(s.log.Name())
	succeeds(s.t, err)
	return string(b)
}

// Call sends an operator's request and decodes its answer into v, unless that is nil.
func (s *Server) Call(method, path string, body, v any) (int, error) {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.Header.SetMethod(method)
	req.SetRequestURI("http://" + s.Operator + path)
	req.Header.Set("Authorization", "Bearer "+s.token)
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		req.SetBody(b)
	}
	if err := s.Client.Do(req, resp); err != nil {
		return 0, err
	}
	if resp.StatusCode() != 200 {
		return resp.StatusCode(), fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode(),
			resp.Body())
	}
	if v == nil {
		return 200, nil
	}
	if last, ok := v.(*lastLine); ok {
		lines := bytes.Split(bytes.TrimSuffix(resp.Body(), []byte("\n")), []byte("\n"))
		*last = bytes.Clone(lines[len(lines)-1])
		return 200, nil
	}
	return 200, json.Unmarshal(resp.Body(), v)
}

// Metrics returns the metrics of the running process, by name and labels; none if the process
// cannot be asked.
func (s *Server) Metrics() map[string]float64 {
	s.t.Helper()
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.SetRequestURI("http://" + s.Operator + "/metrics")
	req.Header.Set("Authorization", "Bearer "+s.token)
	if s.Client.Do(req, resp) != nil || resp.StatusCode() != 200 {
		return nil
	}
	all := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(resp.Body())); lines.Scan(); {
		if text := lines.Text(); !strings.HasPrefix(text, "#") {
			at := strings.LastIndexByte(text, ' ')
			value, err := strconv.ParseFloat(text[at+1:], 64)
			if err != nil {
				s.t.Fatalf("%q: %v", text, err)
			}
			all[text[:at]] = value
		}
	}
	return all
}

// AwaitSubscribers waits until n clients of the event stream have subscribed to full trades.
func (s *Server) AwaitSubscribers(n float64) {
	s.t.Helper()
	Eventually(s.t, "the subscribers are there", func() bool {
		return s.Metrics()[`exchange_stream_subscriptions{channel="trades.full"}`] == n
	})
}

// Audit has the running exchange audit its books: an error if it cannot, or finds a difference.
func (s *Server) Audit() error {
	var body lastLine
	var err error
	Eventually(s.t, "the audit is not put off", func() bool {
		var status int
		status, err = s.Call("POST", "/operator/v1/audit", map[string]string{}, &body)
		return status != 503
	})
	if err != nil {
		return fmt.Errorf("the audit: %w", err)
	}
	var a struct {
		End *struct{ Differences []string }
	}
	if err := json.Unmarshal(body, &a); err != nil || a.End == nil || len(a.End.Differences) > 0 {
		return fmt.Errorf("the audit is not clean: %s", body)
	}
	return nil
}

// A lastLine is the last line of a streamed answer; Call drops the others.
type lastLine []byte

// Command runs the program with other arguments, as an operator of this server would, until it
// ends. It returns standard output, standard error, and the exit code.
func (s *Server) Command(args ...string) (out, errOut string, code int) {
	s.t.Helper()
	cmd := exec.Command(s.binary, args...)
	cmd.Env = append(slices.Clone(s.Env), "EXCHANGE_OPERATOR="+s.Operator)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// Eventually waits for a condition that other processes cause.
func Eventually(t testing.TB, what string, condition func() bool) {
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

// Exited returns a channel that is closed when the process has ended. From then on ExitCode is
// valid.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// Gone reports whether the process has ended.
func (s *Server) Gone() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// ExitCode returns the exit code of the process.
func (s *Server) ExitCode() int { return s.process.ProcessState.ExitCode() }

// Ends runs the program until it ends by itself, and returns the exit code and the output.
func (s *Server) Ends() (int, string) {
	s.t.Helper()
	at, err := s.log.Seek(0, 2)
	succeeds(s.t, err)
	s.Run()
	select {
	case <-s.exited:
	case <-time.After(2 * time.Minute):
		s.t.Fatal("the exchange does not end")
	}
	b, err := os.ReadFile(s.log.Name())
	succeeds(s.t, err)
	return s.ExitCode(), string(b[at:])
}

// Refuses expects an exit code, and words in the output.
func (s *Server) Refuses(code int, words ...string) {
	s.t.Helper()
	got, text := s.Ends()
	if got != code {
		s.t.Errorf("exit code %d, want %d", got, code)
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			s.t.Errorf("%q is not in the output:\n%s", w, text)
		}
	}
}

// Data returns a file in the server's data folder.
func (s *Server) Data(name string) string {
	for i, a := range s.Args {
		if a == "--data" {
			return filepath.Join(s.Args[i+1], name)
		}
	}
	s.t.Fatal("the server has no data folder")
	return ""
}

// succeeds requires that there are no errors.
func succeeds(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
