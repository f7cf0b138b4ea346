//go:build prove

package processes

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"exchange/gateway/sign"
	"exchange/persistence/redistest"
	"exchange/prove/exchangetest"
)

// The program's output and files contain no secret, are not accessible to other users, and are only
// in its folders.

// forms returns the forms in which a secret may appear in text or in a file.
func forms(secret string) map[string]string {
	all := map[string]string{"itself": secret, "as hexadecimal": hex.EncodeToString([]byte(secret)),
		"in an address": url.QueryEscape(secret)}
	add := func(what string, b []byte) {
		all[what+" as bytes in Go's notation"] = strings.Trim(fmt.Sprint(b[:8]), "[]")
		for skip := range 3 { // wherever in a longer text it begins
			whole := b[skip : skip+(len(b)-skip)/3*3]
			all[fmt.Sprint(what, " as base64, ", skip)] = base64.StdEncoding.EncodeToString(whole)
			all[fmt.Sprint(what, " as base64 of addresses, ",
				skip)] = base64.URLEncoding.EncodeToString(whole)
		}
	}
	add("itself", []byte(secret))
	if raw, err := hex.DecodeString(secret); err == nil {
		all["its bytes"] = string(raw)
		all["in capitals"] = strings.ToUpper(secret)
		add("its bytes", raw)
	}
	return all
}

// secrets are the texts that must not be shown, by name.
type secrets map[string]string

// hidden searches for every form of every secret.
func (s secrets) hidden(t *testing.T, where string, text []byte) {
	t.Helper()
	for name, secret := range s {
		for form, f := range forms(secret) {
			if bytes.Contains(text, []byte(f)) {
				t.Errorf("%s has %s, %s", where, name, form)
			}
		}
	}
}

func TestTheSearchFindsASecretInEveryForm(t *testing.T) {
	secret := strings.Repeat("0123456789abcdef", 4)
	raw := must[[]byte](t)(hex.DecodeString(secret))
	for _, text := range []string{"token=" + secret,
		base64.StdEncoding.EncodeToString([]byte("x:" + secret)),
		base64.URLEncoding.EncodeToString(append([]byte("ab"), raw...)), fmt.Sprint(raw),
		string(raw), strings.ToUpper(secret), fmt.Sprintf("%x", secret)} {
		var probe testing.T
		secrets{"it": secret}.hidden(&probe, "", []byte("before "+text+" after"))
		if !probe.Failed() {
			t.Errorf("it is not found in %q", text)
		}
	}
}

// private checks that everything below a folder is accessible to its owner alone.
func private(t *testing.T, folder string, visit func(name string, text []byte)) (files int) {
	t.Helper()
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %04o", name, info.Mode().Perm())
		}
		if d.Type().IsRegular() {
			files++
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			visit(name, text)
		}
		return nil
	})
	succeeds(t, err)
	return files
}

func TestNoSecretIsShownAndNoFileIsForOthers(t *testing.T) {
	t.Run("secrets in files, Pebble", func(t *testing.T) { noSecretIsShown(t, false, nil) })
	t.Run("secrets in the environment, Redis", func(t *testing.T) {
		noSecretIsShown(t, true, redistest.Start(t, "requirepass", redisPassword))
	})
}

const (
	mailPassword  = "password-of-the-mails-4711"
	redisPassword = "password-of-the-store-4711"
)

const apiSecret = "the secret of an API key"

// A secretHunt is an exchange that gets every request, and the secrets that it must not show.
type secretHunt struct {
	t           *testing.T
	s           *exchangetest.Server
	root        string            // everything that the exchange writes is below it
	environment bool              // the server's own secrets are there, not in files
	server      *redistest.Server // nil: Pebble
	token, key  string            // the server's own secrets
	keepers     map[string]*string
	all         secrets
	shown       bytes.Buffer // all answers
	public      string       // an API key
	signer      *sign.Keyed
	nonce       int
}

// noSecretIsShown tests with the server's own secrets in files or in the environment, on a Redis or
// on Pebble.
func noSecretIsShown(t *testing.T, environment bool, server *redistest.Server) {
	h := &secretHunt{t: t, root: t.TempDir(), environment: environment, server: server,
		token: strings.Repeat("c0ffee-of-operators-", 3),
		key:   strings.Repeat("0f1e2d3c4b5a6978", 4)}
	empty := h.at("empty")
	h.start(empty)
	h.makeKey()
	h.askAPI()
	h.askOperator()
	h.commands()
	h.endAndStartAgain()
	h.searchFiles()
	if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
		t.Errorf("the system's folder for temporary files was used: %v, %v", left, err)
	}
}

func (h *secretHunt) at(name string) string { return filepath.Join(h.root, name) }

// start runs the exchange with an empty folder for temporary files, and reads its own secrets.
func (h *secretHunt) start(empty string) {
	succeeds(h.t, os.Chmod(h.root, 0o700))
	store := "pebble:" + h.at("store")
	if h.server != nil {
		store = "redis://:" + redisPassword + "@" + h.server.Addr() + "/0"
	}
	h.s = exchangetest.New(h.t, store, "--archive", h.at("archive"), "--log-level", "debug")
	option(h.t, h.s, "--data", h.at("data"))
	withoutToken(h.s)
	if h.environment {
		h.s.Env = append(h.s.Env, "EXCHANGE_OPERATOR_TOKEN="+h.token, "EXCHANGE_SECRET_KEY="+h.key)
	}
	succeeds(h.t, os.Mkdir(empty, 0o700))
	h.s.Env = append(h.s.Env, "EXCHANGE_MAIL_HOST=127.0.0.1",
		"EXCHANGE_MAIL_PORT="+strings.Split(exchangetest.FreeAddress(h.t), ":")[1],
		"EXCHANGE_MAIL_FROM=exchange@example.org",
		"EXCHANGE_MAIL_USERNAME=exchange", "EXCHANGE_MAIL_PASSWORD="+mailPassword, "TMPDIR="+empty,
		"EXCHANGE_SNAPSHOT_MIN_RECORDS=1", "EXCHANGE_SNAPSHOT_MAX_RECORDS=10",
		"EXCHANGE_TIMING_SNAPSHOT_MIN_MS=0")
	mask := syscall.Umask(0) // private files are so by the program's own doing
	h.s.Start()
	syscall.Umask(mask)

	h.keepers = map[string]*string{h.s.Data("operator.token"): &h.token,
		h.s.Data("exchange.key"): &h.key}
	for name, secret := range h.keepers {
		text, err := os.ReadFile(name)
		if h.environment != errors.Is(err, fs.ErrNotExist) {
			h.t.Fatalf("%s: %v", name, err)
		}
		if !h.environment {
			*secret = strings.TrimSpace(string(text))
		}
	}
	h.all = secrets{"the operator's token": h.token, "the server's key": h.key,
		"the password of the mails": mailPassword, "the password of the store": redisPassword}
}

func (h *secretHunt) command(args ...string) string {
	h.t.Helper()
	if !h.environment {
		args = append(args, "--operator-token-file", h.s.Data("operator.token"))
	}
	out, errOut, code := h.s.Command(args...)
	if code != 0 {
		h.t.Fatalf("%q: %d %s", args, code, errOut)
	}
	return out + errOut
}

// makeKey funds an account and makes an API key for it.
func (h *secretHunt) makeKey() {
	h.command("account", "create", "alice", "--email", "alice@example.org")
	h.command("deposit", "alice", "BTC", "10")
	made := strings.Fields(h.command("key", "create", "alice", "--permissions",
		"read,trade,withdraw"))
	var secret string
	for i, word := range made {
		if word == "key" && h.public == "" {
			h.public = made[i+1]
		}
		if word == "secret" {
			secret = made[i+1]
			break
		}
	}
	if len(h.public) != 32 || len(secret) != 64 {
		h.t.Fatalf("%q", made)
	}
	h.all[apiSecret] = secret
	h.signer = sign.New([]byte(secret))
}

// ask sends a text and stores the answer.
func (h *secretHunt) ask(address, text string) (status string) {
	h.t.Helper()
	c := must[net.Conn](h.t)(net.DialTimeout("tcp", address, 20*time.Second))
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // then the rest fails too
	if _, err := io.WriteString(c, text); err != nil {
		h.t.Fatal(err)
	}
	from := h.shown.Len()
	if _, err := io.Copy(&h.shown, c); err != nil &&
		!strings.Contains(err.Error(), "reset by peer") {
		h.t.Fatal(err)
	}
	status, _, _ = strings.Cut(strings.TrimPrefix(string(h.shown.Bytes()[from:]), "HTTP/1.1 "),
		" ")
	return status
}

// api sends a signed request.
func (h *secretHunt) api(method, path, form string, more ...string) {
	h.t.Helper()
	h.nonce++
	signature := string(h.signer.Sign(nil, []byte(h.public+form)))
	h.all[fmt.Sprint("the signature of request ", h.nonce)] = signature
	h.ask(h.s.Listen,
		fmt.Sprintf(
			"%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-KEY: %s\r\nX-SIGN: "+
				"%s\r\nX-NONCE: %d\r\nContent-Type: "+
				"application/x-www-form-urlencoded\r\nContent-Length: %d\r\n%s\r\n%s",
			method, path, h.public, signature, h.nonce, len(form), strings.Join(more, ""), form))
}

// operator sends a request with the token.
func (h *secretHunt) operator(method, path, body string, more ...string) (status string) {
	h.t.Helper()
	return h.ask(h.s.Operator, fmt.Sprintf(
		"%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer "+
			"%s\r\nContent-Length: %d\r\n%s\r\n%s", method, path, h.token, len(body),
		strings.Join(more, ""), body))
}

func (h *secretHunt) askAPI() {
	secret := h.all[apiSecret]
	h.api("POST", "/api/v1/order/", "amount=1&pair=BTC_USDT&price=100&type=sell")
	h.api("POST", "/api/v1/withdraw/", "address=somewhere&amount=1&currency=BTC")
	for _, path := range []string{"wallets", "orders/own", "order/1", "exchanges/own", "deposits",
		"withdraws", "fees", "nothing", "wallets?a=%zz", "wallets?secret=" + secret} {
		h.api("GET", "/api/v1/"+path, "")
	}
	h.api("POST", "/api/v1/order/", "amount=x&pair=x&price=x&type="+secret)
	h.api("POST", "/api/v1/order/", "a=1&a=1")
	h.api("POST", "/api/v1/withdraw-confirm/", "code=wrong&withdraw=1")
	h.api("POST", "/api/v1/order/", "amount=1&pair=BTC_USDT&price=100&type=sell", "broken\r\n")
	h.api("POST", "/api/v1/order/", "amount=1&pair=BTC_USDT&price=100&type=sell",
		"Transfer-Encoding: chunked\r\n")
	h.api("POST", "/api/v1/order/", "x="+strings.Repeat("x", 70_000))
	h.api("GET", "/api/v1/wallets", "", "X-Pad: "+strings.Repeat("x", 20_000)+"\r\n")
	h.ask(h.s.Listen, "GET /api/v1/wallets HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-KEY: "+
		h.public+
		"\r\nX-SIGN: "+strings.Repeat("ab", 32)+"\r\nX-NONCE: 1\r\n\r\n")
	h.ask(h.s.Listen, "GET /socket.v2/?EIO=4&transport=polling&token="+url.QueryEscape(h.token)+
		" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
}

func (h *secretHunt) askOperator() {
	secret := h.all[apiSecret]
	exchangetest.Eventually(h.t, "the mail has failed", func() bool {
		return strings.Contains(h.s.Log(), "mail")
	})
	for _, path := range []string{"/metrics", "/debug/pprof/goroutine?debug=2",
		"/debug/pprof/goroutine?debug=1", "/debug/pprof/heap?debug=1", "/debug/pprof/allocs",
		"/debug/pprof/",
		"/operator/v1/accounts", "/operator/v1/account?name=alice",
		"/operator/v1/keys?account=alice", "/operator/v1/withdraws", "/operator/v1/actions",
		"/operator/v1/statement?account=alice",
		"/operator/v1/trades?pair=BTC_USDT"} {
		if status := h.operator("GET", path, ""); status != "200" {
			h.t.Errorf("GET %s is answered with %s", path, status)
		}
	}
	for _, path := range []string{"/debug/pprof/cmdline", "/operator/v1/nothing?token=x"} {
		if status := h.operator("GET", path, ""); status != "404" {
			h.t.Errorf("GET %s is answered with %s", path, status)
		}
	}
	h.operator("POST", "/operator/v1/keys", `{"account":"alice","permissions":["`+secret[:10]+`"]}`)
	h.operator("POST", "/operator/v1/keys", "{")
	h.operator("POST", "/operator/v1/keys/revoke", `{"key":"nothing"}`)
	h.operator("POST", "/operator/v1/audit", `{}`)
	h.operator("GET", "/operator/v1/accounts", "", "broken\r\n")
	h.operator("GET", "/operator/v1/accounts", "", "X-Pad: "+strings.Repeat("x", 20_000)+"\r\n")
	h.operator("POST", "/operator/v1/accounts", strings.Repeat("x", 70_000))
	h.ask(h.s.Operator,
		"GET /operator/v1/accounts HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: "+
			"Bearer "+h.token[:20]+"x\r\n\r\n")
}

func (h *secretHunt) commands() {
	succeeds(h.t, os.Mkdir(h.at("backups"), 0o700))
	h.shown.WriteString(h.command("backup", h.at("backups")))
	h.shown.WriteString(h.command("key", "list", "alice"))
	h.shown.WriteString(h.command("account", "show", "alice"))
	h.shown.WriteString(h.command("actions"))
	exported := h.at("exported.csv")
	h.command("export", "trades", "--pair", "BTC_USDT", "--output", exported)
	out, errOut, _ := h.s.Command(append([]string{"config", "check"}, h.s.Args[1:]...)...)
	h.shown.WriteString(out + errOut)

	exchangetest.Eventually(h.t, "a part of the journal is archived", func() bool {
		parts, err := filepath.Glob(h.at("archive/journal-*.zst"))
		h.api("POST", "/api/v1/order/", "amount=0.1&pair=BTC_USDT&price=100&type=sell")
		return err == nil && len(parts) > 0
	})
}

// endAndStartAgain ends the exchange with a dump, and starts it with a working mail server.
func (h *secretHunt) endAndStartAgain() {
	if runtime.GOOS == "linux" {
		least := 3
		if h.server != nil {
			least = 1
		}
		writesOnlyBelow(h.t, h.s.Pid(), least, h.root, filepath.Dir(h.s.Args[2]))
	}
	// A dump of all goroutines, as of a crash.
	h.s.Signal(syscall.SIGQUIT)
	<-h.s.Exited()
	if !strings.Contains(h.s.Log(), "SIGQUIT") || !strings.Contains(h.s.Log(), "goroutine ") {
		h.t.Error("there is no dump")
	}
	if h.shown.Len() < 100_000 {
		h.t.Errorf("only %d bytes were answered: was everything asked?", h.shown.Len())
	}
	// Then the pending mail is sent.
	h.s.Env = append(h.s.Env, h.s.Mails.Env()...)
	h.s.Start()
	var code string
	exchangetest.Eventually(h.t, "the code is mailed",
		func() bool { code = h.s.Mails.Code(1); return code != "" })
	h.s.Terminate()
	h.all["a code"], h.all["a code without dashes"] = code, strings.ReplaceAll(code, "-", "")
	h.all.hidden(h.t, "an answer", h.shown.Bytes())
	h.all.hidden(h.t, "the log", []byte(h.s.Log()))
}

// searchFiles searches all written files.
func (h *secretHunt) searchFiles() {
	unpack := must[*zstd.Decoder](h.t)(zstd.NewReader(nil))
	defer unpack.Close()
	packed := map[string]int{}
	files := private(h.t, h.root, func(name string, text []byte) {
		if h.keepers[name] != nil {
			return
		}
		h.all.hidden(h.t, name, bytes.TrimRight(text, "\x00")) // logs are allocated ahead
		if kind := filepath.Ext(name); kind == ".backup" || kind == ".zst" {
			packed[kind]++
			plain, err := unpack.DecodeAll(text, nil)
			if err != nil {
				h.t.Fatalf("%s: %v", name, err)
			}
			h.all.hidden(h.t, name+", unpacked", plain)
		}
	})
	if packed[".backup"] != 1 || packed[".zst"] == 0 || h.server == nil && files < 8 {
		h.t.Errorf("there are %d files, packed ones: %v", files, packed)
	}
	if h.server != nil {
		h.server.Kill()
		written := 0
		err := filepath.WalkDir(h.server.Dir(), func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(name)
			written += len(text)
			h.all.hidden(h.t, name, text)
			return err
		})
		if err != nil || written < 4_000 {
			h.t.Errorf("Redis has written %d bytes: %v", written, err)
		}
	}
}

// writesOnlyBelow checks the files that a process has open for writing, or mapped shared. Each must
// be below a folder, or be the test's log.
func writesOnlyBelow(t *testing.T, pid, least int, folders ...string) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d", pid)
	entries := must[[]os.DirEntry](t)(os.ReadDir(dir + "/fd"))
	below := 0
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, "fd", e.Name()))
		// sockets, pipes; or closed meanwhile
		if err != nil || !filepath.IsAbs(target) || strings.HasPrefix(target, "/dev/") {
			continue
		}
		info, err := os.ReadFile(filepath.Join(dir, "fdinfo", e.Name()))
		if err != nil {
			continue
		}
		var flags uint64
		for line := range strings.Lines(string(info)) {
			if text, ok := strings.CutPrefix(line, "flags:"); ok {
				if flags, err = strconv.ParseUint(strings.TrimSpace(text), 8, 64); err != nil {
					t.Fatal(err)
				}
			}
		}
		if flags&(syscall.O_WRONLY|syscall.O_RDWR) == 0 {
			continue
		}
		ok := false
		for _, f := range folders {
			ok = ok || strings.HasPrefix(target, f+"/")
		}
		if !ok {
			t.Errorf("%s is open for writing", target)
		}
		below++
	}
	if below < least {
		t.Errorf("only %d files are open for writing: is that read rightly?", below)
	}
}
