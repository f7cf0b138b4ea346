package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	netmail "net/mail"
	"net/netip"
	"net/textproto"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/wneessen/go-mail/smtp"
)

// How a connection is encrypted: Options.TLS.
const (
	tlsRequired = "required" // STARTTLS before anything else; no mail without it
	tlsImplicit = "implicit" // from the first byte
	tlsNone     = "none"     // never; a password then goes to a server on this machine only
)

// usualPort is the port of Options.Port 0.
var usualPort = map[string]int{tlsRequired: 587, tlsImplicit: 465, tlsNone: 25}

// Options configure the server and the sender of the mails. Printed, they show no password.
type Options struct {
	Host string // name or IP address, as in the server's certificate
	Port int    // 0: 587, with tlsImplicit 465, with tlsNone 25
	TLS  string // tlsRequired (also ""), tlsImplicit or tlsNone

	Username string // empty: no authentication
	Password string `json:"-"`

	// address in ASCII, with or without a name: "Example <exchange@example.org>"
	From    string
	Timeout time.Duration // of one Send in all; above 0
	// PEM file of the trusted authorities; empty: those of the system
	CAFile string
}

// onThisMachine reports whether host is a loopback address or localhost.
func onThisMachine(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// String returns the options for logs.
func (o Options) String() string {
	return fmt.Sprintf("mail server %s port %d, tls %q, user %q, from %q", o.Host, o.Port, o.TLS,
		o.Username, o.From)
}

// GoString keeps the password out of %#v too.
func (o Options) GoString() string { return "mail.Options{" + o.String() + "}" }

// SMTP sends mails over SMTP, each over a connection of its own. Any goroutine may use it.
type SMTP struct {
	host    string
	server  string // host:port
	tls     string
	config  *tls.Config
	login   *login // nil: no authentication
	from    *netmail.Address
	timeout time.Duration
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

// login is behind a pointer so that printing an SMTP does not show it.
type login struct{ username, password string }

// NewSMTP checks the options and reads CAFile. It does not contact the server, because the exchange
// must start even when that server is down.
func NewSMTP(o Options) (*SMTP, error) {
	if o.TLS == "" {
		o.TLS = tlsRequired
	}
	if o.Port == 0 {
		o.Port = usualPort[o.TLS]
	}
	from, err := parseFrom(o.From)
	if err != nil {
		return nil, fmt.Errorf("mail: %w", err)
	}
	switch {
	case o.Host == "" || strings.ContainsFunc(o.Host, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}):
		return nil, fmt.Errorf("mail: %q is not the name of a server", o.Host)
	case usualPort[o.TLS] == 0:
		return nil, fmt.Errorf("mail: tls is %q, not %s, %s or %s", o.TLS, tlsRequired, tlsImplicit,
			tlsNone)
	case o.Port < 1 || o.Port > 65535:
		return nil, fmt.Errorf("mail: there is no port %d", o.Port)
	case o.Timeout <= 0:
		return nil, fmt.Errorf("mail: the timeout is %v", o.Timeout)
	case (o.Username == "") != (o.Password == ""):
		return nil, errors.New("mail: user name and password go together, and one is missing")
	case strings.ContainsFunc(o.Username+o.Password, unicode.IsControl):
		return nil, errors.New("mail: user name or password has control characters")
	case o.Username != "" && o.TLS == tlsNone && !onThisMachine(o.Host):
		return nil,
			fmt.Errorf("mail: without TLS a password is not sent to %s, which is not this machine",
				o.Host)
	}
	s := &SMTP{host: o.Host, server: net.JoinHostPort(o.Host, strconv.Itoa(o.Port)), tls: o.TLS,
		from: from, timeout: o.Timeout, dial: new(net.Dialer).DialContext,
		config: &tls.Config{ServerName: o.Host, MinVersion: tls.VersionTLS12}}
	if o.Username != "" {
		s.login = &login{o.Username, o.Password}
	}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("mail: the certificates cannot be read: %w", err)
		}
		s.config.RootCAs = x509.NewCertPool()
		if !s.config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("mail: %s holds no certificate in PEM form", o.CAFile)
		}
	}
	return s, nil
}

// Send submits m to the server, once. nil means that the server has accepted m. An error names the
// server and the step that failed. errors.As finds the server's answer in it as a *textproto.Error,
// whose Code is 4xx for "later" and 5xx for "never". A "never" about the recipient is ErrNever. At
// any other step the server's state or settings are wrong, which is temporary. When ctx ends or the
// timeout passes Send returns at once with the cause: context.Canceled, context.DeadlineExceeded or
// the caller's own.
func (s *SMTP) Send(ctx context.Context, m Message) error {
	data, err := m.encode(s.from)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout,
		fmt.Errorf("not done after %v: %w", s.timeout, context.DeadlineExceeded))
	defer cancel()
	step, err := s.deliver(ctx, m.To, data)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("mail server %s, %s: %w", s.server, step, s.explain(ctx, err))
	if isPermanent(step, err) {
		return fmt.Errorf("%w: %w", err, ErrNever)
	}
	return err
}

// The steps that concern the recipient alone.
const (
	stepRecipient = "RCPT TO"
	stepUTF8      = "SMTPUTF8"
)

// isPermanent reports whether the server will never accept a mail for the recipient. A server that
// requires authentication first (530) may report it only now, so the mail is retried.
func isPermanent(step string, err error) bool {
	var answer *textproto.Error
	return step == stepUTF8 || step == stepRecipient && errors.As(err, &answer) &&
		answer.Code/100 == 5 && answer.Code != 530
}

// deliver runs the whole dialogue. With an error it returns the step that failed.
func (s *SMTP) deliver(ctx context.Context, to string, data []byte) (step string, err error) {
	conn, err := s.dial(ctx, "tcp", s.server)
	if err != nil {
		return "connecting", err
	}
	defer conn.Close()
	// go-mail uses ctx only while it dials: closing the connection ends its waits.
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	c, step, err := s.open(ctx, &bounded{Conn: conn, left: maxAnswers})
	if err != nil {
		return step, err
	}
	if step, err = s.submit(c, to, data); err != nil {
		return step, err
	}
	// The message is accepted, so it must not be sent again, even if QUIT fails.
	if conn.SetDeadline(time.Now().Add(quitTimeout)) == nil {
		_ = c.Quit()
	}
	return "", nil
}

// quitTimeout is the server's time limit for answering QUIT.
const quitTimeout = 2 * time.Second

// open prepares a new connection for a mail.
func (s *SMTP) open(ctx context.Context, conn net.Conn) (c *smtp.Client, step string, err error) {
	if s.tls == tlsImplicit {
		encrypted := tls.Client(conn, s.config)
		if err := encrypted.HandshakeContext(ctx); err != nil {
			return nil, "TLS", err
		}
		conn = encrypted
	}
	if c, err = smtp.NewClient(conn, s.host); err != nil {
		return nil, "greeting", err
	}
	if err := c.Hello(literal(conn.LocalAddr())); err != nil {
		return nil, "EHLO", err
	}
	if s.tls == tlsRequired {
		if ok, _ := c.Extension("STARTTLS"); !ok {
			return nil, "STARTTLS", errors.New(
				"the server does not offer it, and nothing is sent without TLS")
		}
		if err := c.StartTLS(s.config); err != nil {
			return nil, "STARTTLS", err
		}
	}
	if s.login != nil {
		if err := s.authenticate(c); err != nil {
			return nil, "AUTH", err
		}
	}
	return c, "", nil
}

// authenticate uses PLAIN or LOGIN, one of which every server has. Both send the password in the
// clear, so TLS must protect it.
func (s *SMTP) authenticate(c *smtp.Client) error {
	_, offered := c.Extension("AUTH")
	mechanisms := strings.Fields(strings.ToUpper(offered))
	local := s.tls == tlsNone // NewSMTP checked it
	switch {
	case slices.Contains(mechanisms, "PLAIN"):
		return c.Auth(smtp.PlainAuth("", s.login.username, s.login.password, s.host, local))
	case slices.Contains(mechanisms, "LOGIN"):
		return c.Auth(smtp.LoginAuth(s.login.username, s.login.password, s.host, local))
	}
	return fmt.Errorf("the server offers neither PLAIN nor LOGIN, only %q", offered)
}

// submit sends one message to a server that is ready for it.
func (s *SMTP) submit(c *smtp.Client, to string, data []byte) (step string, err error) {
	// Requested only when needed: a mail with this mark cannot pass servers without the extension.
	c.SkipSMTPUTF8(ascii(to))
	if ok, _ := c.Extension("SMTPUTF8"); !ok && !ascii(to) {
		return stepUTF8,
			errors.New("the server takes only addresses in ASCII, and the recipient's is none")
	}
	if err := c.Mail("<" + s.from.Address + ">"); err != nil {
		return "MAIL FROM", err
	}
	if err := c.Rcpt("<" + to + ">"); err != nil {
		return stepRecipient, err
	}
	w, err := c.Data()
	if err != nil {
		return "DATA", err
	}
	if _, err := w.Write(data); err != nil {
		return "the message", err
	}
	if err := w.Close(); err != nil {
		return "the message", err
	}
	return "", nil
}

// maxReason bounds the part of a server's answer in an error, in bytes.
const maxReason = 300

// explain returns an error that a log may show.
func (s *SMTP) explain(ctx context.Context, err error) error {
	var answer *textproto.Error
	switch {
	case ctx.Err() != nil: // then err is only the closed connection
		return context.Cause(ctx)
	case errors.As(err, &answer):
		return &textproto.Error{Code: answer.Code, Msg: s.clean(answer.Msg)}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the server closed the connection: %w", io.ErrUnexpectedEOF)
	}
	if text := err.Error(); s.clean(text) != text {
		return errors.New(s.clean(text))
	}
	return err
}

// clean makes text one bounded line without the password, which an answer may repeat.
func (s *SMTP) clean(text string) string {
	if s.login != nil {
		for _, secret := range []string{s.login.password,
			base64.StdEncoding.EncodeToString([]byte(s.login.password)),
			base64.StdEncoding.EncodeToString(
				[]byte("\x00" + s.login.username + "\x00" + s.login.password))} {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return line(text, maxReason)
}

// maxAnswers bounds a server's bytes in one connection, certificates included: a usual dialogue
// takes less than a tenth of it.
const maxAnswers = 64 << 10

// bounded is a connection through which a server cannot exhaust memory. Without the bound go-mail
// would read an answer of any length to its end.
type bounded struct {
	net.Conn
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, fmt.Errorf("the server says more than %d bytes", maxAnswers)
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// literal returns the name of this machine in EHLO: its address, because servers often do not
// accept its name (RFC 5321 section 4.1.4).
func literal(a net.Addr) string {
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return "localhost"
	}
	ip := p.Addr().Unmap().WithZone("")
	if ip.Is6() {
		return "[IPv6:" + ip.String() + "]"
	}
	return "[" + ip.String() + "]"
}
