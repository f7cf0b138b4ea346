package crash

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

	"exchange/cmd/exchange/exchangetest"
	"exchange/gateway/sign"
	"exchange/persistence/redistest"
)

// What the program shows and writes: no secret, nothing for others, and nothing anywhere but in its
// folders.

// forms are how a secret may appear in text or in a file.
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

// secrets are what nobody may see, by name.
type secrets map[string]string

// hidden looks for every form of every secret.
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
	raw, err := hex.DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"token=" + secret,
		base64.StdEncoding.EncodeToString([]byte("x:" + secret)),
		base64.URLEncoding.EncodeToString(append([]byte("ab"), raw...)), fmt.Sprint(raw),
		string(raw), strings.ToUpper(secret), fmt.Sprintf("%x", secret)} {
		var probe testing.T
		secrets{"it": secret}.hidden(&probe, "", []byte("before "+text+" behind"))
		if !probe.Failed() {
			t.Errorf("it is not found in %q", text)
		}
	}
}

// private looks at everything below a folder: it must be for its owner alone.
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
	if err != nil {
		t.Fatal(err)
	}
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

// noSecretIsShown has the server's own secrets in files or in the environment, on that Redis or on
// Pebble.
func noSecretIsShown(t *testing.T, environment bool, server *redistest.Server) {
	root := t.TempDir()
	if err := os.Chmod(root, 0o700); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(root, name) }
	store := "pebble:" + at("store")
	if server != nil {
		store = "redis://:" + redisPassword + "@" + server.Addr() + "/0"
	}
	s := exchangetest.New(t, store, "--archive", at("archive"), "--log-level", "debug")
	option(t, s, "--data", at("data"))
	token, key := strings.Repeat("c0ffee-of-operators-", 3), strings.Repeat("0f1e2d3c4b5a6978", 4)
	withoutToken(s)
	if environment {
		s.Env = append(s.Env, "EXCHANGE_OPERATOR_TOKEN="+token, "EXCHANGE_SECRET_KEY="+key)
	}
	empty := at("empty")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	s.Env = append(s.Env, "EXCHANGE_MAIL_HOST=127.0.0.1",
		"EXCHANGE_MAIL_PORT="+strings.Split(exchangetest.FreeAddress(t), ":")[1],
		"EXCHANGE_MAIL_FROM=exchange@example.org",
		"EXCHANGE_MAIL_USERNAME=exchange", "EXCHANGE_MAIL_PASSWORD="+mailPassword, "TMPDIR="+empty,
		"EXCHANGE_SNAPSHOT_MIN_RECORDS=1", "EXCHANGE_SNAPSHOT_MAX_RECORDS=10",
		"EXCHANGE_TIMING_SNAPSHOT_MIN_MS=0")
	mask := syscall.Umask(0) // what is private is so by the program's own doing
	s.Start()
	syscall.Umask(mask)

	keepers := map[string]*string{s.Data("operator.token"): &token, s.Data("exchange.key"): &key}
	for name, secret := range keepers {
		text, err := os.ReadFile(name)
		if environment != errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%s: %v", name, err)
		}
		if !environment {
			*secret = strings.TrimSpace(string(text))
		}
	}
	all := secrets{"the operator's token": token, "the server's key": key,
		"the password of the mails": mailPassword, "the password of the store": redisPassword}
	var shown bytes.Buffer // everything that anybody was answered
	command := func(args ...string) string {
		t.Helper()
		if !environment {
			args = append(args, "--operator-token-file", s.Data("operator.token"))
		}
		out, errOut, code := s.Command(args...)
		if code != 0 {
			t.Fatalf("%q: %d %s", args, code, errOut)
		}
		return out + errOut
	}
	command("account", "create", "alice", "--email", "alice@example.org")
	command("deposit", "alice", "BTC", "10")
	made := strings.Fields(command("key", "create", "alice", "--permissions",
		"read,trade,withdraw"))
	var public, secret string
	for i, word := range made {
		if word == "key" && public == "" {
			public = made[i+1]
		}
		if word == "secret" {
			secret = made[i+1]
			break
		}
	}
	if len(public) != 32 || len(secret) != 64 {
		t.Fatalf("%q", made)
	}
	all["the secret of an API key"] = secret

	signer, nonce := sign.New([]byte(secret)), 0
	ask := func(address, text string) (status string) {
		t.Helper()
		c, err := net.DialTimeout("tcp", address, 20*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // then the rest fails too
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		from := shown.Len()
		if _, err := io.Copy(&shown, c); err != nil &&
			!strings.Contains(err.Error(), "reset by peer") {
			t.Fatal(err)
		}
		status, _, _ = strings.Cut(strings.TrimPrefix(string(shown.Bytes()[from:]), "HTTP/1.1 "),
			" ")
		return status
	}
	api := func(method, path, form string, more ...string) {
		t.Helper()
		nonce++
		signature := string(signer.Sign(nil, []byte(public+form)))
		all[fmt.Sprint("the signature of request ", nonce)] = signature
		ask(s.Listen,
			fmt.Sprintf(
				"%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-KEY: %s\r\nX-SIGN: "+
					"%s\r\nX-NONCE: %d\r\nContent-Type: "+
					"application/x-www-form-urlencoded\r\nContent-Length: %d\r\n%s\r\n%s",
				method, path, public, signature, nonce, len(form), strings.Join(more, ""), form))
	}
	operator := func(method, path, body string, more ...string) (status string) {
		t.Helper()
		return ask(s.Operator, fmt.Sprintf(
			"%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer "+
				"%s\r\nContent-Length: %d\r\n%s\r\n%s", method, path, token, len(body),
			strings.Join(more, ""), body))
	}
	api("POST", "/api/v1/order/", "amount=1&pair=BTC_USDT&price=100&type=sell")
	api("POST", "/api/v1/withdraw/", "address=somewhere&amount=1&currency=BTC")
	for _, path := range []string{"wallets", "orders/own", "order/1", "exchanges/own", "deposits",
		"withdraws", "fees", "nothing", "wallets?a=%zz", "wallets?secret=" + secret} {
		api("GET", "/api/v1/"+path, "")
	}
	api("POST", "/api/v1/order/", "amount=x&pair=x&price=x&type="+secret)
	api("POST", "/api/v1/order/", "a=1&a=1")
	api("POST", "/api/v1/withdraw-confirm/", "code=wrong&withdraw=1")
	api("POST", "/api/v1/order/", "amount=1&pair=BTC_USDT&price=100&type=sell", "broken\r\n")
	api("POST", "/api/v1/order/", "amount=1&pair=BTC_USDT&price=100&type=sell",
		"Transfer-Encoding: chunked\r\n")
	api("POST", "/api/v1/order/", "x="+strings.Repeat("x", 70_000))
	api("GET", "/api/v1/wallets", "", "X-Pad: "+strings.Repeat("x", 20_000)+"\r\n")
	ask(s.Listen, "GET /api/v1/wallets HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-KEY: "+public+
		"\r\nX-SIGN: "+strings.Repeat("ab", 32)+"\r\nX-NONCE: 1\r\n\r\n")
	ask(s.Listen, "GET /socket.v2/?EIO=4&transport=polling&token="+url.QueryEscape(token)+
		" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	exchangetest.Eventually(t, "the mail has failed", func() bool {
		return strings.Contains(s.Log(), "mail")
	})
	for _, path := range []string{"/metrics", "/debug/pprof/goroutine?debug=2",
		"/debug/pprof/goroutine?debug=1", "/debug/pprof/heap?debug=1", "/debug/pprof/allocs",
		"/debug/pprof/",
		"/operator/v1/accounts", "/operator/v1/account?name=alice",
		"/operator/v1/keys?account=alice", "/operator/v1/withdraws", "/operator/v1/actions",
		"/operator/v1/statement?account=alice",
		"/operator/v1/trades?pair=BTC_USDT"} {
		if status := operator("GET", path, ""); status != "200" {
			t.Errorf("GET %s is answered with %s", path, status)
		}
	}
	for _, path := range []string{"/debug/pprof/cmdline", "/operator/v1/nothing?token=x"} {
		if status := operator("GET", path, ""); status != "404" {
			t.Errorf("GET %s is answered with %s", path, status)
		}
	}
	operator("POST", "/operator/v1/keys", `{"account":"alice","permissions":["`+secret[:10]+`"]}`)
	operator("POST", "/operator/v1/keys", "{")
	operator("POST", "/operator/v1/keys/revoke", `{"key":"nothing"}`)
	operator("POST", "/operator/v1/audit", `{}`)
	operator("GET", "/operator/v1/accounts", "", "broken\r\n")
	operator("GET", "/operator/v1/accounts", "", "X-Pad: "+strings.Repeat("x", 20_000)+"\r\n")
	operator("POST", "/operator/v1/accounts", strings.Repeat("x", 70_000))
	ask(s.Operator,
		"GET /operator/v1/accounts HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: "+
			"Bearer "+token[:20]+"x\r\n\r\n")
	if err := os.Mkdir(at("backups"), 0o700); err != nil {
		t.Fatal(err)
	}
	shown.WriteString(command("backup", at("backups")))
	shown.WriteString(command("key", "list", "alice"))
	shown.WriteString(command("account", "show", "alice"))
	shown.WriteString(command("actions"))
	exported := at("exported.csv")
	command("export", "trades", "--pair", "BTC_USDT", "--output", exported)
	out, errOut, _ := s.Command(append([]string{"config", "check"}, s.Args[1:]...)...)
	shown.WriteString(out + errOut)

	exchangetest.Eventually(t, "a part of the journal is archived", func() bool {
		parts, err := filepath.Glob(at("archive/journal-*.zst"))
		api("POST", "/api/v1/order/", "amount=0.1&pair=BTC_USDT&price=100&type=sell")
		return err == nil && len(parts) > 0
	})
	if runtime.GOOS == "linux" {
		least := 3
		if server != nil {
			least = 1
		}
		writesOnlyBelow(t, s.Pid(), least, root, filepath.Dir(s.Args[2]))
	}
	// A dump of everything that goes on, as of a crash.
	s.Signal(syscall.SIGQUIT)
	<-s.Exited()
	if !strings.Contains(s.Log(), "SIGQUIT") || !strings.Contains(s.Log(), "goroutine ") {
		t.Error("there is no dump")
	}
	if shown.Len() < 100_000 {
		t.Errorf("only %d bytes were answered: was everything asked?", shown.Len())
	}
	// Then the mail that could not be sent is.
	s.Env = append(s.Env, s.Mails.Env()...)
	s.Start()
	var code string
	exchangetest.Eventually(t, "the code is mailed",
		func() bool { code = s.Mails.Code(1); return code != "" })
	s.Terminate()
	all["a code"], all["a code without dashes"] = code, strings.ReplaceAll(code, "-", "")
	all.hidden(t, "an answer", shown.Bytes())
	all.hidden(t, "the log", []byte(s.Log()))

	unpack, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unpack.Close()
	packed := map[string]int{}
	files := private(t, root, func(name string, text []byte) {
		if keepers[name] != nil {
			return
		}
		text = bytes.TrimRight(text, "\x00") // logs are allocated ahead
		all.hidden(t, name, text)
		if kind := filepath.Ext(name); kind == ".backup" || kind == ".zst" {
			packed[kind]++
			plain, err := unpack.DecodeAll(text, nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all.hidden(t, name+", unpacked", plain)
		}
	})
	if packed[".backup"] != 1 || packed[".zst"] == 0 || server == nil && files < 8 {
		t.Errorf("there are %d files, packed ones: %v", files, packed)
	}
	if server != nil {
		server.Kill()
		written := 0
		err := filepath.WalkDir(server.Dir(), func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(name)
			written += len(text)
			all.hidden(t, name, text)
			return err
		})
		if err != nil || written < 4_000 {
			t.Errorf("Redis has written %d bytes: %v", written, err)
		}
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
		t.Errorf("the system's folder for temporary files was used: %v, %v", left, err)
	}
}

// writesOnlyBelow looks at what a process has open for writing, and mapped shared: it must be below
// a folder, or the log that the test gave it.
func writesOnlyBelow(t *testing.T, pid, least int, folders ...string) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d", pid)
	entries, err := os.ReadDir(dir + "/fd")
	if err != nil {
		t.Fatal(err)
	}
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
