//go:build prove

package clients

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"exchange/prove/exchangetest"
)

// example returns the first example in a language that contains some text, of the README or of its
// linked pages.
func example(t *testing.T, language, text string) string {
	t.Helper()
	for _, file := range []string{"README.md", "docs/operations/run.md"} {
		page, err := os.ReadFile("../../" + file)
		succeeds(t, err)
		for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(
			string(page), -1) {
			if strings.Contains(m[1], text) {
				return m[1]
			}
		}
	}
	t.Fatalf("there is no example in %s with %q", language, text)
	return ""
}

// market serves a new demo with its market.
func market(t *testing.T) *exchangetest.Server {
	t.Helper()
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	s.DemoWithMarket()
	s.Start()
	return s
}

// asking returns an example for an exchange's address instead of that of `make demo`.
func asking(t *testing.T, s *exchangetest.Server, example string) string {
	t.Helper()
	changed := strings.ReplaceAll(example, "http://127.0.0.1:8080", "http://"+s.Listen)
	if changed == example {
		t.Fatal("the example does not ask the address of the demo")
	}
	return changed
}

// needs skips the test, which scripts/test lists at its end, unless the machine has the tools.
func needs(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s: this example of the README is read, and not run", tool)
		}
	}
}

// output runs an example, which must succeed, and returns its output.
func output(t *testing.T, text, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Stdin = strings.NewReader(text)
	var faults strings.Builder
	c.Stderr = &faults
	out, err := c.Output()
	if err != nil || faults.Len() > 0 {
		t.Fatalf("%v\n%s\n%s", err, out, faults.String())
	}
	return string(out)
}

// has fails the test for each missing text.
func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q in\n%s", part, text)
		}
	}
}

var shellExample = []string{"call() {", `-H "X-KEY: demo-$1"`, `-H "X-SIGN: $sign"`,
	"nonce=$(date +%s%3N)", `-H "X-NONCE: $nonce"`,
	"openssl dgst -sha256 -hmac"}

func TestTheShellExampleTrades(t *testing.T) { shellTrades(t, market(t)) }

// The README's shell example makes a trade.
func shellTrades(t *testing.T, s *exchangetest.Server) {
	t.Helper()
	text := example(t, "sh", "call()")
	has(t, text, shellExample...)
	if out, err := exec.Command("date", "+%s%3N").Output(); err != nil ||
		len(strings.TrimSpace(string(out))) != 13 {
		t.Skip(
			"`date` gives no milliseconds here: the shell example of the README is read, and " +
				"not run")
	}
	needs(t, "sh", "openssl", "curl")
	out := output(t, asking(t, s, text), "sh", "-e")
	if strings.Contains(out, "detail") || strings.Contains(out, "rror") {
		t.Error("a call was refused")
	}
	has(t, out, `"trades":[]`, `"trades":[{`, `"amount":0.01,`, `"currency":"BTC"`, `"sell":[{`)
}

func TestThePythonExampleTradesAndShowsErrors(t *testing.T) {
	pythonTrades(t, market(t))
}

// The Python example sends an order, lists it, and prints the body of a refusal.
func pythonTrades(t *testing.T, s *exchangetest.Server) {
	t.Helper()
	file, err := os.ReadFile("../../docs/examples/signed_requests.py")
	succeeds(t, err)
	text := string(file)
	has(t, text, "last[key] = max(last.get(key, 0) + 1, time.time_ns() // 1_000_000)",
		`"X-NONCE": str(last[key])`, "except urllib.error.HTTPError as error",
		"json.load(error)",
		"hmac.new(secret.encode(), (key + body).encode(), hashlib.sha256).hexdigest()")
	needs(t, "python3")
	lines := strings.Split(strings.TrimSpace(output(t, asking(t, s, text), "python3", "-")), "\n")
	if len(lines) != 3 {
		t.Fatalf("it printed %q", lines)
	}
	has(t, lines[0], "'oid':", "'success': True")
	has(t, lines[1], "'price': 90500")
	has(t, lines[2], "'status': 400", "Out of balance")
}

func TestTheStreamExampleReceivesOrders(t *testing.T) {
	streamHears(t, market(t))
}

// The README's example of the event stream receives an order.
func streamHears(t *testing.T, s *exchangetest.Server) {
	t.Helper()
	text := asking(t, s, example(t, "js", "io("))
	text += `let n = 0; socket.on("subscribe.success", () => { if (++n === 2) console.log("subscribed"); });` +
		"\n"
	lines := runInNode(t, text)
	for until := range strings.SplitSeq("subscribed 90500", " ") {
		for {
			if !lines.Scan() {
				t.Fatalf("node ended before it printed %q: %v", until, lines.Err())
			}
			if strings.Contains(lines.Text(), until) {
				break
			}
		}
		if until == "subscribed" {
			order(t, s, "amount=0.1&pair=BTC_USDT&price=90500&type=sell")
		}
	}
}

// runInNode runs a program of socket.io-client, and returns the lines that it prints.
func runInNode(t *testing.T, text string) *bufio.Scanner {
	t.Helper()
	installed(t, "socket.io-client")
	node := exec.Command("node", "--input-type=module", "-")
	node.Stdin = strings.NewReader(text)
	node.Stderr = os.Stderr
	out, err := node.StdoutPipe()
	if err == nil {
		err = node.Start()
	}
	succeeds(t, err)
	watchdog := time.AfterFunc(time.Minute, func() { _ = node.Process.Kill() })
	t.Cleanup(func() {
		watchdog.Stop()
		node.Process.Kill() //nolint:errcheck // it may have ended
		node.Wait()         //nolint:errcheck // it was killed
	})
	return bufio.NewScanner(out)
}

// order sends an order of the demo's account alice.
func order(t *testing.T, s *exchangetest.Server, form string) {
	t.Helper()
	signed(t, s, http.MethodPost, "/api/v1/order/", form, time.Now().UnixMilli())
}

// signed sends a request with the plain key of the demo's account alice.
func signed(t *testing.T, s *exchangetest.Server, method, path, form string, nonce int64) {
	t.Helper()
	mac := hmac.New(sha256.New, []byte("demo-alice-secret"))
	fmt.Fprint(mac, "demo-alice", form)
	r, err := http.NewRequest(method, "http://"+s.Listen+path, strings.NewReader(form))
	succeeds(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-KEY", "demo-alice")
	r.Header.Set("X-SIGN", hex.EncodeToString(mac.Sum(nil)))
	r.Header.Set("X-NONCE", strconv.FormatInt(nonce, 10))
	response, err := http.DefaultClient.Do(r)
	succeeds(t, err)
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || response.StatusCode >= 300 {
		t.Fatalf("%d, %v: %s", response.StatusCode, err, body)
	}
}

// The documented commands create, fill and back up an operator's first exchange, also with Redis;
// its key is used where permitted.
func TestAnExchangeOfYourOwnRuns(t *testing.T) {
	needs(t, "sh", "redis-server")
	s := exchangetest.New(t, "pebble:"+t.TempDir()) // for its program
	folder, redis := t.TempDir(), exchangetest.FreeAddress(t)
	succeeds(t, os.Mkdir(folder+"/bin", 0o700), os.Symlink(s.Program(), folder+"/bin/exchange"))
	shell := func(text string) *exec.Cmd {
		c := exec.Command("sh", "-e", "-c", text)
		c.Dir, c.Env = folder, append(os.Environ(), "EXCHANGE_LISTEN="+s.Listen)
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return c
	}
	port := redis[strings.LastIndexByte(redis, ':')+1:]
	serve := shell(strings.NewReplacer("redis-server ", "redis-server --port "+port+" ", "6379",
		port).Replace(example(t, "sh", "redis-server")))
	var log bytes.Buffer
	serve.Stdout, serve.Stderr = &log, &log
	succeeds(t, serve.Start())
	t.Cleanup(func() {
		syscall.Kill(-serve.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
		serve.Wait()                                      //nolint:errcheck // it was killed
		if t.Failed() {
			t.Log(log.String())
		}
	})
	exchangetest.Eventually(t, "it serves", func() bool { return s.Ready() == nil })
	out, err := shell("umask 077\n" + strings.Replace(example(t, "sh", "account create carol"),
		"127.0.0.0/8\n", "127.0.0.0/8 > carol.key\n", 1) +
		"bin/exchange call carol /api/v1/wallets/ --key-file carol.key\n").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	has(t, string(out), "200 OK", `"balance": 1.5`)
}

// succeeds requires that there are no errors.
func succeeds(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
