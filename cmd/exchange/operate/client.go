package operate

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"exchange/cmd/exchange/cli"
	"exchange/config"
)

// envOperatorName is the environment's variable for --as.
const envOperatorName = config.EnvOperatorName

const (
	// callTimeout bounds one request to the operator's listener. It is longer than the server's own
	// waits for its store, and for commands in flight when maintenance begins (10 s). So the
	// server's answer about the outcome arrives.
	callTimeout = 30 * time.Second
	// maxAnswer bounds an answer, in bytes: the longest is a list of 100,000 rows.
	maxAnswer = 1 << 30
	// maxTokenFile bounds the token's file, in bytes.
	maxTokenFile = 4096
	// maxOperator bounds the operator's name, in bytes, like the server.
	maxOperator = 64
)

// Commands are the commands that talk to a running exchange, with the values of their flags.
type Commands struct {
	*cli.Program

	operator   string // address of the operator's listener
	operatorCA string // file of authorities
	tokenFile  string
	as         string // the operator, for the log of actions
}

// New returns the commands of a run of the command line, whose flags name the exchange and the
// operator.
func New(p *cli.Program, flags *pflag.FlagSet) *Commands {
	c := &Commands{Program: p}
	flags.StringVar(&c.operator, "operator", "",
		"where the exchange takes commands: unix:PATH, host:port, or https://host:port if it has "+
			"TLS\n"+
			"(default ./data/operator.sock or EXCHANGE_OPERATOR)")
	flags.StringVar(&c.operatorCA, "operator-ca", "",
		"file of the authorities that https trusts (default the system's, or EXCHANGE_OPERATOR_CA)")
	flags.StringVar(&c.tokenFile, "operator-token-file", "",
		"file of the operator's token (default ./data/operator.token or "+
			"EXCHANGE_OPERATOR_TOKEN_FILE;\n"+
			"EXCHANGE_OPERATOR_TOKEN holds a token itself)")
	flags.StringVar(&c.as, "as", "",
		"your name in the log of operators' actions (default EXCHANGE_OPERATOR_NAME or the "+
			"user's name)")
	return c
}

// A client talks to the operator's listener of a running exchange.
type client struct {
	scheme  string // http or https
	address string // host:port, or unix:PATH
	socket  string // path after unix:, "" for host:port
	token   string // none for a socket: the kernel reports the user
	source  string // where the token came from, for messages
	as      string // the operator, for the log of actions
	trust   *tls.Config
	http    *http.Client
}

// maxAuthorities bounds the file of --operator-ca, in bytes.
const maxAuthorities = 1 << 20

// trust returns the authorities that a client of https trusts: those of the system, or those that
// the operator named.
func (p *Commands) trust(scheme string) (*tls.Config, error) {
	file := p.operatorCA
	if file == "" {
		file = p.Env(config.EnvOperatorCA)
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if file == "" || scheme != "https" {
		return trust, nil
	}
	var err error
	trust.RootCAs, _, err = readCertificates(file)
	return trust, err
}

// readCertificates reads a file with at least one certificate in PEM form: all of them, and the
// first.
func readCertificates(file string) (*x509.CertPool, *x509.Certificate, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, cli.Usage("certificates cannot be read: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxAuthorities))
	if err != nil {
		return nil, nil, cli.Usage("certificates cannot be read: %w", err)
	}
	pool, first := x509.NewCertPool(), (*x509.Certificate)(nil)
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, nil, cli.Usage("%s: %w", file, err)
		}
		pool.AddCert(c)
		if first == nil {
			first = c
		}
	}
	if first == nil {
		return nil, nil, cli.Usage("%s has no certificate in PEM form", file)
	}
	return pool, first, nil
}

// dial is a variable for the tests.
var dial = new(net.Dialer).DialContext

// direct returns a client without proxies and redirects, so that the token is sent only to the
// given address. trust is for https.
func direct(trust *tls.Config) *http.Client {
	return &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: trust,
			DialContext: dial},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// client finds the address and the token.
func (p *Commands) client() (*client, error) {
	c := &client{scheme: "http", address: p.operator}
	if c.address == "" {
		c.address = p.Env("EXCHANGE_OPERATOR")
	}
	if c.address == "" {
		c.address = config.Default().Operator
	}
	err := p.reach(c)
	if err != nil {
		return nil, err
	}
	if c.as, err = p.name(); err != nil {
		return nil, err
	}
	return c, nil
}

// reach prepares a client for its address.
func (p *Commands) reach(c *client) (err error) {
	if c.socket = config.SocketPath(c.address, p.dataFolder()); c.socket != "" {
		c.address = "unix:" + c.socket
		c.http = direct(nil)
		c.http.Transport.(*http.Transport).DialContext = func(ctx context.Context,
			_, _ string) (net.Conn, error) {
			return dial(ctx, "unix", c.socket)
		}
		return nil
	}
	written := c.address
	// the environment is that of serve, whose addresses have no scheme
	host, err := c.locate("the operator's address",
		"host:port, such as 127.0.0.1:8081, https://host:port, or unix:PATH",
		p.Env("EXCHANGE_OPERATOR_TLS_CERT_FILE") != "")
	if err != nil {
		return err
	}
	if c.scheme == "http" && !config.Loopback(host) {
		return cli.Usage(
			"the operator's address is %q, and the token would cross the network in clear text: "+
				"write https://%s", written, c.address)
	}
	if c.trust, err = p.trust(c.scheme); err != nil {
		return err
	}
	c.http = direct(c.trust)
	if c.token, c.source, err = p.token(); err != nil {
		return cli.WithExit(cli.ExitUsage, err)
	}
	return nil
}

// locate reads an address that is host:port, or https://host:port; with hasTLS one without a scheme
// uses TLS, too. An error quotes the address, and gives the form.
func (c *client) locate(what, written string, hasTLS bool) (host string, err error) {
	given := c.address
	if rest, ok := strings.CutPrefix(c.address, "https://"); ok {
		c.scheme, c.address = "https", strings.TrimSuffix(rest, "/")
	} else if hasTLS {
		c.scheme = "https"
	}
	host, port, err := net.SplitHostPort(c.address)
	if n, e := strconv.Atoi(port); err != nil || e != nil || n < 1 || n > 65535 ||
		strings.ContainsAny(host, "/@ ") {
		return "", cli.Usage("%s is %q: write %s", what, given, written)
	}
	return host, nil
}

// dataFolder returns the server's data folder, by the environment or the usual place.
func (p *Commands) dataFolder() string { return cmp.Or(p.Env("EXCHANGE_DATA"), "data") }

// url returns the address of a path of the operator's API.
func (c *client) url(path string) string {
	if c.socket != "" {
		return "http://operator" + path
	}
	return c.scheme + "://" + c.address + path
}

// name returns the operator's name: the flag, otherwise the variable, otherwise the user of this
// machine.
func (p *Commands) name() (string, error) {
	for _, x := range []struct{ source, name string }{{"--as", p.as},
		{envOperatorName, p.Env(envOperatorName)}} {
		if x.name == "" {
			continue
		}
		name := cleanOperator(x.name)
		if name == "" {
			return "", cli.Usage("%s is %.80q: a name needs at least one of A-Z, a-z and 0-9",
				x.source,
				x.name)
		}
		return name, nil
	}
	if u, err := user.Current(); err == nil { // in a container the user may have no name
		if name := cleanOperator(u.Username); name != "" {
			return name, nil
		}
	}
	return "operator", nil
}

var (
	notOfOperator = regexp.MustCompile(`[^A-Za-z0-9._@+-]+`)
	letterOrDigit = regexp.MustCompile(`[A-Za-z0-9]`)
)

// cleanOperator returns name without characters that the server refuses, which may leave "".
func cleanOperator(name string) string {
	name = strings.Trim(notOfOperator.ReplaceAllString(name, "-"), "-")
	name = name[:min(len(name), maxOperator)]
	if !letterOrDigit.MatchString(name) {
		return ""
	}
	return name
}

// token returns the bearer token and its source: the flag's file, otherwise the variable, otherwise
// the file named by the variables or by default.
func (p *Commands) token() (token, source string, err error) {
	file := p.tokenFile
	if file == "" {
		if token := p.Env(config.EnvOperatorToken); token != "" {
			token, err := cli.CleanToken(token, config.EnvOperatorToken)
			return token, config.EnvOperatorToken, err
		}
		file = p.Env("EXCHANGE_OPERATOR_TOKEN_FILE")
	}
	if file == "" {
		file = filepath.Join(p.dataFolder(), config.OperatorTokenName)
	}
	f, err := os.Open(file)
	if err != nil {
		hint := ""
		if errors.Is(err, fs.ErrNotExist) {
			hint = "; `exchange serve` makes it beside its data, so run this in the same folder, " +
				"or name it by --operator-token-file"
		}
		return "", "", fmt.Errorf("the operator's token cannot be read: %w%s", err, hint)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxTokenFile))
	if err != nil {
		return "", "", fmt.Errorf("the operator's token cannot be read: %w", err)
	}
	token, err = cli.CleanToken(string(text), file)
	return token, file, err
}

// An unknownError is the error of a request that may or may not have been executed.
type unknownError struct{ error }

func (e unknownError) Unwrap() error { return e.error }

func unknown(format string, args ...any) error {
	return cli.WithExit(cli.ExitUnavailable, unknownError{fmt.Errorf(format, args...)})
}

// call sends one request and returns its answer of type out. in is nil for GET.
func (c *client) call(ctx context.Context, path string, in any,
	out reflect.Type) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.send(ctx, path, in)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, unknown("the answer of the exchange at %s is incomplete: %w", c.address,
			cause(err))
	}
	if text = bytes.TrimSpace(text); !json.Valid(text) || !complete(out, text) {
		return nil, unknown("the answer from %s is not one of an exchange's operator listener",
			c.address)
	}
	return text, nil
}

// send sends one request. It returns a successful answer, whose body the caller closes.
func (c *client) send(ctx context.Context, path string, in any) (*http.Response, error) {
	method, body := http.MethodGet, []byte(nil)
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, method, c.url(path), bytes.NewReader(body))
	if err != nil {
		return nil,
			cli.Usage("the operator's address is %q: write host:port, such as 127.0.0.1:8081",
				c.address)
	}
	if c.socket == "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	r.Header.Set("X-Operator", c.as)
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := c.do(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, unknown("the answer of the exchange at %s is incomplete: %w", c.address,
			cause(err))
	}
	return nil, c.refused(response, text)
}

// do sends a request. After an unknownError it may have been executed.
func (c *client) do(r *http.Request) (*http.Response, error) {
	response, err := c.http.Do(r)
	if err == nil {
		return response, nil
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return nil, c.unreachable(cause(err))
	}
	var distrust *tls.CertificateVerificationError
	switch {
	case errors.As(err, &distrust):
		return nil, cli.WithExit(cli.ExitUsage,
			fmt.Errorf(
				"the certificate of %s is not trusted, and nothing was sent: "+
					"%w; --operator-ca names a file of other authorities", c.address, distrust.Err))
	case errors.Is(err, http.ErrSchemeMismatch):
		return nil, cli.WithExit(cli.ExitUsage,
			fmt.Errorf(
				"%s does not speak TLS, and nothing was sent: without TLS "+
					"write host:port alone", c.address))
	}
	return nil, unknown("the exchange at %s did not answer: %w", c.address, cause(err))
}

// unreachable returns the error of an exchange that accepted no request.
func (c *client) unreachable(err error) error {
	hint := "is `exchange serve` running?"
	switch {
	case c.socket != "" && errors.Is(err, fs.ErrPermission):
		return cli.WithExit(cli.ExitUsage, fmt.Errorf(
			"the exchange cannot be reached at %s: %w; the user that the exchange runs as may, "+
				"and root", c.address, err))
	case c.socket != "" && errors.Is(err, fs.ErrNotExist):
		hint += " It makes this socket in its data folder, so run this in the same folder, or " +
			"name the socket by --operator unix:PATH"
	}
	return cli.WithExit(cli.ExitUnavailable,
		fmt.Errorf("the exchange cannot be reached at %s: %w; %s", c.address, err, hint))
}

// refused returns the error of an answer that is not a success.
func (c *client) refused(response *http.Response, text []byte) error {
	var e struct {
		Error   string `json:"error"`
		Damaged bool   `json:"damaged"`
	}
	if json.Unmarshal(text, &e) != nil || e.Error == "" {
		e.Error = "the exchange answered " + response.Status
		if response.StatusCode < 500 {
			e.Error += ": is " + c.address + " the operator's listener?"
		}
	}
	switch {
	case response.StatusCode == http.StatusUnauthorized && c.socket == "":
		return cli.WithExit(cli.ExitUsage, fmt.Errorf("%s (the token is from %s)",
			strings.TrimSuffix(e.Error, "."), c.source))
	case e.Damaged:
		return cli.WithExit(cli.ExitBroken, errors.New(e.Error))
	case response.StatusCode == http.StatusTooManyRequests:
		return cli.WithExit(cli.ExitUnavailable, errors.New(e.Error))
	case response.StatusCode == http.StatusServiceUnavailable &&
		response.Header.Get("Retry-After") != "":
		// Only a request that was not accepted is answered with a Retry-After.
		return cli.WithExit(cli.ExitUnavailable, errors.New(e.Error))
	case response.StatusCode >= 500:
		return unknown("%s", e.Error)
	}
	return cli.WithExit(cli.ExitUsage, errors.New(e.Error))
}

// cause returns err without the method and address that net/http prepends.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
