package operate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"exchange/cmd/exchange/cli"
	"exchange/cmd/exchange/demomarket"
	"exchange/config"
	"exchange/gateway/api"
	"exchange/gateway/operator"
	"exchange/gateway/params"
	"exchange/gateway/sign"
)

// The command that sends a request of the public API like an account's client.

const callHelp = `Sends one request of the public API, signed as the client of ACCOUNT signs it, and prints the status
and the body of the answer. ACCOUNT is "-" for a request without a signature.

--key-file holds the output of ` +
	"`exchange key create ACCOUNT`" + `, with --json or without, for one
account or several. Only its owner may read it (umask 077). The newest key of the account is used.
No argument holds a secret, because all users of a machine see arguments. With --demo it is the plain
key of the demo's account.

The method is the one that the API has for PATH. If there are two, or none, it is POST with fields,
and GET without. Fields are the query of a GET and the form of a POST. The nonce is the time in
milliseconds. If the key has already used a greater one, the request is sent again with the next one.

  umask 077; exchange key create alice --json > alice.key
  exchange call alice /api/v1/wallets/ --key-file alice.key
  exchange call alice /api/v1/order/ pair=BTC_USDT type=buy amount=0.5 price=50000 --key-file alice.key
  exchange call - /api/v1/exchanges/ pair=BTC_USDT

Exits with 0 if the status is 2xx, with 75 if the request may be sent again (429, and 503 with
Retry-After) or its outcome is unknown (other 5xx of a POST), and with 64 otherwise.`

// unsigned replaces the account for a request without a signature.
const unsigned = "-"

// maxKeyFile bounds the file of --key-file, in bytes.
const maxKeyFile = 1 << 20

// An apiRequest is a request of the public API.
type apiRequest struct {
	method string
	path   string // with the query
	form   string // body of a POST
	signed string // signed text after the key
}

// An apiAnswer is the answer to an apiRequest.
type apiAnswer struct {
	Status     int             `json:"status"`
	RequestID  string          `json:"request_id,omitempty"` // its id in the server's log
	RetryAfter string          `json:"retry_after,omitempty"`
	Body       json.RawMessage `json:"body"` // a text that is no JSON becomes a string
}

func (p *Commands) callCommand() *cobra.Command {
	var address, method, keyFile string
	var demo bool
	c := &cobra.Command{
		Use:   "call ACCOUNT PATH [FIELD=VALUE]...",
		Short: "Send a request of the public API as an account's client would",
		Long:  callHelp,
		Args: func(c *cobra.Command, args []string) error {
			return cli.Takes("ACCOUNT", "PATH")(c, args[:min(len(args), 2)])
		},
	}
	c.Flags().StringVar(&address, "address", "",
		"of the public listener: host:port, or https://host:port if it has TLS\n"+
			"(default 127.0.0.1:8080 or EXCHANGE_LISTEN)")
	c.Flags().StringVar(&method, "method", "", "GET or POST (default the one that PATH has)")
	c.Flags().StringVar(&keyFile, "key-file", "",
		"file of the account's key and secret (default EXCHANGE_API_KEY_FILE)")
	c.Flags().BoolVar(&demo, "demo", false,
		"sign with the public key of the demo's account, demo-ACCOUNT")
	c.RunE = cli.Run(func(ctx context.Context, args []string) error {
		if args[0] != unsigned {
			if err := checkAccount(args[0]); err != nil {
				return err
			}
		}
		r, err := readRequest(method, args[1], args[2:])
		if err != nil {
			return err
		}
		key, err := p.keyOf(args[0], keyFile, demo)
		if err != nil {
			return err
		}
		server, err := p.publicClient(address, key != nil)
		if err != nil {
			return err
		}
		return p.call(ctx, server, r, key)
	})
	return c
}

// readRequest makes a request of the arguments.
func readRequest(method, path string, fields []string) (*apiRequest, error) {
	u, err := url.ParseRequestURI(path)
	if err != nil || path[0] != '/' || strings.Contains(path, "#") {
		return nil, cli.Usage("PATH is %q: write a path of the API, such as /api/v1/wallets/", path)
	}
	switch method {
	case http.MethodGet, http.MethodPost:
	case "":
		method = methodOf(u.Path)
		if method == "" && len(fields) > 0 {
			method = http.MethodPost
		}
		method = cmp.Or(method, http.MethodGet)
	default:
		return nil, cli.Usage("--method is %q: write GET or POST", method)
	}
	text, err := readFields(fields)
	if err != nil {
		return nil, err
	}
	if method == http.MethodPost {
		return &apiRequest{method: method, path: path, form: text, signed: text}, nil
	}
	r := &apiRequest{method: method, path: path, signed: u.RawQuery}
	if text != "" {
		r.path += cli.Either(u.RawQuery == "" && !u.ForceQuery, "?", "&") + text
		_, r.signed, _ = strings.Cut(r.path, "?")
	}
	return r, nil
}

// readFields returns the sent and signed text of fields such as pair=BTC_USDT.
func readFields(fields []string) (string, error) {
	var form []string
	for _, f := range fields {
		name, value, ok := strings.Cut(f, "=")
		if !ok || name == "" {
			return "", cli.Usage("%q is no field: write its name and value, such as pair=BTC_USDT",
				f)
		}
		form = append(form, url.QueryEscape(name)+"="+url.QueryEscape(value))
	}
	var set params.Set
	if err := set.ParseForm([]byte(strings.Join(form, "&"))); err != nil {
		return "", cli.Usage("the fields cannot be sent: %w", err)
	}
	return string(sign.AppendMessage(nil, nil, &set, false)), nil
}

// methodOf returns the method of a path with only one; "": a path with two, or an unknown one.
func methodOf(path string) (method string) {
	parts := strings.Split(strings.TrimSuffix(path, "/"), "/")
	for i := range api.Operations {
		o := &api.Operations[i]
		if !slices.EqualFunc(strings.Split(o.Path, "/"), parts, func(pattern, part string) bool {
			return pattern == part || strings.HasPrefix(pattern, "{") && part != ""
		}) {
			continue
		}
		if method != "" {
			return ""
		}
		method = o.Method
	}
	return method
}

// keyOf returns the key that signs the requests of an account; nil: requests are not signed.
func (p *Commands) keyOf(account, file string, demo bool) (*operator.NewKeyAnswer, error) {
	file = cmp.Or(file, p.Env(config.EnvAPIKeyFile))
	switch {
	case account == unsigned:
		return nil, nil
	case demo && !slices.Contains(demomarket.Accounts, account):
		return nil, cli.Usage("the demo has no account %q, only %s", account,
			strings.Join(demomarket.Accounts, " and "))
	case demo:
		key := demomarket.Key(account)
		return &operator.NewKeyAnswer{KeyAnswer: operator.KeyAnswer{Key: key},
			Secret: demomarket.Secret(key)}, nil
	case file == "":
		return nil, cli.Usage("call needs --key-file FILE, with the output of `exchange key "+
			"create %s --json`; or --demo, if this is the demo", account)
	}
	keys, err := readKeys(file)
	if err != nil {
		return nil, cli.WithExit(cli.ExitUsage, fmt.Errorf("the keys cannot be read: %w", err))
	}
	for _, k := range slices.Backward(keys) {
		if k.Account == account {
			return &k, nil
		}
	}
	return nil, cli.WithExit(cli.ExitUsage, fmt.Errorf("%s has no key of account %s", file,
		account))
}

// readKeys reads a file of keys, as `exchange key create` prints them.
func readKeys(file string) (keys []operator.NewKeyAnswer, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() &&
		info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %04o and can be read by others: chmod 600 it", file,
			info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	switch text = bytes.TrimSpace(text); {
	case err != nil:
		return nil, err
	case len(text) > maxKeyFile:
		return nil, fmt.Errorf("%s has more than %d bytes", file, maxKeyFile)
	case bytes.HasPrefix(text, []byte("{")):
		keys, err = keysOfJSON(text)
	default:
		keys = keysOfText(string(text))
	}
	if err != nil || len(keys) == 0 ||
		slices.ContainsFunc(keys, func(k operator.NewKeyAnswer) bool {
			return k.Key == "" || k.Secret == "" || k.Account == ""
		}) {
		// the text may contain a secret, so it is not shown
		return nil, fmt.Errorf("%s is not the output of `exchange key create`: account, "+
			"key and secret", file)
	}
	return keys, nil
}

func keysOfJSON(text []byte) (keys []operator.NewKeyAnswer, err error) {
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var k operator.NewKeyAnswer
		if err := d.Decode(&k); err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

func keysOfText(text string) (keys []operator.NewKeyAnswer) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 2 && words[0] == "account" {
			keys = append(keys, operator.NewKeyAnswer{KeyAnswer: operator.KeyAnswer{
				Account: words[1]}})
		}
		if len(words) != 2 || len(keys) == 0 {
			continue
		}
		switch k := &keys[len(keys)-1]; words[0] {
		case "key":
			k.Key = words[1]
		case "secret":
			k.Secret = words[1]
		}
	}
	return keys
}

// publicClient returns a client of the public listener.
func (p *Commands) publicClient(address string, signs bool) (*client, error) {
	c := &client{scheme: "http", address: cmp.Or(address, p.Env("EXCHANGE_LISTEN"),
		config.Default().Listen)}
	host, err := c.locate("the address of the public listener",
		"host:port, such as 127.0.0.1:8080, or https://host:port",
		p.Env("EXCHANGE_TLS_CERT_FILE") != "")
	if err != nil {
		return nil, err
	}
	if own := thisMachine(host); own != host {
		c.address = net.JoinHostPort(own, c.address[strings.LastIndexByte(c.address, ':')+1:])
		host = own
	}
	if signs && c.scheme == "http" && !config.Loopback(host) {
		return nil,
			cli.Usage("the address of the public listener is %q, and a signed request would "+
				"cross the network in clear text: write https://%s", c.address, c.address)
	}
	if c.trust, err = p.trust(c.scheme); err != nil {
		return nil, err
	}
	c.http = direct(c.trust)
	return c, nil
}

// call sends a request and prints its answer. If the answer is a refusal with a greater last nonce,
// nothing was done, and call sends the request once more. If it has the request's own nonce, a
// proxy may have sent the request twice, so a POST may have been executed.
func (p *Commands) call(ctx context.Context, server *client, r *apiRequest,
	key *operator.NewKeyAnswer) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	nonce := uint64(time.Now().UnixMilli())
	a, err := r.send(ctx, server, key, nonce)
	if err == nil {
		last := a.lastNonce()
		if last > nonce || last == nonce && r.method == http.MethodGet {
			a, err = r.send(ctx, server, key, last+1)
		}
	}
	if err != nil {
		if r.method == http.MethodPost {
			err = adviseIfUnknown(err, checkFirst)
		}
		return err
	}
	if err := p.Print(a, a.write); err != nil {
		return err
	}
	return a.failure(r.method)
}

// send sends the request once; without a key it has no signature.
func (r *apiRequest) send(ctx context.Context, server *client, key *operator.NewKeyAnswer,
	nonce uint64) (*apiAnswer, error) {
	q, err := http.NewRequestWithContext(ctx, r.method, server.scheme+"://"+server.address+r.path,
		strings.NewReader(r.form))
	if err != nil {
		return nil, cli.Usage("PATH is %q: write a path of the API, such as /api/v1/wallets/",
			r.path)
	}
	if r.method == http.MethodPost {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if key != nil {
		q.Header.Set("X-KEY", key.Key)
		q.Header.Set("X-NONCE", strconv.FormatUint(nonce, 10))
		q.Header.Set("X-SIGN",
			string(sign.New([]byte(key.Secret)).Sign(nil, []byte(key.Key+r.signed))))
	}
	response, err := server.do(q)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, unknown("the answer of the exchange at %s is incomplete: %w", server.address,
			cause(err))
	}
	a := &apiAnswer{Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id"),
		RetryAfter: response.Header.Get("Retry-After"), Body: text}
	if !json.Valid(text) {
		if a.Body, err = json.Marshal(string(text)); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// lastNonce returns the key's last nonce, which a refusal of a nonce names; 0: not such a refusal.
func (a *apiAnswer) lastNonce() uint64 {
	var body struct {
		Last uint64 `json:"last"`
	}
	if a.Status != http.StatusUnauthorized || json.Unmarshal(a.Body, &body) != nil {
		return 0
	}
	return body.Last
}

// checkFirst is the advice after a request of unknown outcome.
const checkFirst = "check before you send it again, an order by its client_order_id"

func (a *apiAnswer) write(w *tabwriter.Writer) {
	fmt.Fprintf(w, "%d %s\n", a.Status, http.StatusText(a.Status))
	if a.RequestID != "" {
		fmt.Fprintf(w, "X-Request-Id: %s\n", cli.Plain(a.RequestID))
	}
	if a.RetryAfter != "" {
		fmt.Fprintf(w, "Retry-After: %s\n", cli.Plain(a.RetryAfter))
	}
	var text string
	if json.Unmarshal(a.Body, &text) != nil { // JSON, but not a text
		var body bytes.Buffer
		json.Indent(&body, a.Body, "", "  ") //nolint:errcheck // it is valid
		text = body.String()
	}
	for line := range strings.Lines(text) {
		fmt.Fprintln(w, cli.Plain(strings.TrimRight(line, "\r\n")))
	}
}

// failure returns nil for a success, and otherwise an error with its exit code.
func (a *apiAnswer) failure(method string) error {
	summary := fmt.Sprintf("the API answered %d %s", a.Status, http.StatusText(a.Status))
	switch {
	case a.Status/100 == 2:
		return nil
	case a.Status == http.StatusTooManyRequests,
		a.Status == http.StatusServiceUnavailable && a.RetryAfter != "":
		return cli.WithExit(cli.ExitUnavailable, fmt.Errorf("%s: nothing was done, try again",
			summary))
	case a.Status >= 500 && method == http.MethodPost:
		return unknown("%s; whether it was done is unknown: %s", summary, checkFirst)
	case a.Status >= 500:
		return cli.WithExit(cli.ExitUnavailable, errors.New(summary))
	}
	return cli.WithExit(cli.ExitUsage, errors.New(summary))
}
