package mail

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	gosmtp "github.com/emersion/go-smtp"

	"exchange/mail/mailtest"
	"exchange/prove/memnet"
)

const (
	username = "exchange"
	password = "hunter2 %s ü" // with characters that could break a format or an encoding
)

// A server is an SMTP server in this process that keeps the messages it accepts.
type server struct {
	mechanisms []string // of AUTH; none: no authentication required
	refuse     error    // answer to every recipient
	refuseData error    // answer to every message
	authError  func(password string) error

	host string
	port int

	mu       sync.Mutex
	sessions int
	got      []delivery
}

// A delivery is one message as received by the server.
type delivery struct {
	from, to  string
	utf8      bool
	encrypted bool
	user      string // that authenticated
	data      string
}

func (s *server) deliveries() []delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]delivery(nil), s.got...)
}

// network connects senders and servers in memory.
var network memnet.Network

// start serves until the test ends; tune may be nil.
func (s *server) start(t *testing.T, mode string, cert *certificate,
	tune func(*gosmtp.Server)) *server {
	t.Helper()
	g, l := mailtest.New(s), network.Listen("")
	s.host, s.port = address(l)
	g.AllowInsecureAuth = mode == tlsNone
	if mode != tlsNone {
		g.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert.pair}}
	}
	if mode == tlsImplicit {
		l = tls.NewListener(l, g.TLSConfig)
	}
	if tune != nil {
		tune(g)
	}
	mailtest.Run(t, g, l)
	return s
}

func address(l net.Listener) (host string, port int) {
	a := l.Addr().(*net.TCPAddr)
	return a.IP.String(), a.Port
}

// options returns the minimal options of a sender to this server.
func (s *server) options(mode string) Options {
	return Options{Host: s.host, Port: s.port, TLS: mode,
		From: `Example Börse <exchange@example.org>`, Timeout: time.Minute}
}

func (s *server) NewSession(c *gosmtp.Conn) (gosmtp.Session, error) {
	s.mu.Lock()
	s.sessions++
	s.mu.Unlock()
	x := &session{server: s}
	_, x.now.encrypted = c.TLSConnectionState()
	if len(s.mechanisms) == 0 {
		return x, nil
	}
	return &authSession{x}, nil
}

type session struct {
	server *server
	now    delivery
}

func (x *session) Reset()        {}
func (x *session) Logout() error { return nil }

func (x *session) Mail(from string, o *gosmtp.MailOptions) error {
	if len(x.server.mechanisms) > 0 && x.now.user == "" {
		return gosmtp.ErrAuthRequired
	}
	x.now.from, x.now.utf8 = from, o.UTF8
	return nil
}

func (x *session) Rcpt(to string, _ *gosmtp.RcptOptions) error {
	x.now.to = to
	return x.server.refuse
}

func (x *session) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if x.server.refuseData != nil {
		return x.server.refuseData
	}
	x.now.data = string(data)
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	x.server.got = append(x.server.got, x.now)
	return nil
}

type authSession struct{ *session }

func (x *authSession) AuthMechanisms() []string { return x.server.mechanisms }

func (x *authSession) Auth(mechanism string) (sasl.Server, error) {
	check := func(user, pass string) error {
		if user == username && pass == password {
			x.now.user = user
			return nil
		}
		if x.server.authError != nil {
			return x.server.authError(pass)
		}
		return gosmtp.ErrAuthFailed
	}
	if mechanism == "LOGIN" {
		return &loginServer{check: check}, nil
	}
	return sasl.NewPlainServer(func(_, user, pass string) error { return check(user, pass) }), nil
}

// loginServer is the server's side of AUTH LOGIN.
type loginServer struct {
	asked int
	user  string
	check func(user, pass string) error
}

func (l *loginServer) Next(answer []byte) (challenge []byte, done bool, err error) {
	l.asked++
	switch l.asked {
	case 1:
		return []byte("Username:"), false, nil
	case 2:
		l.user = string(answer)
		return []byte("Password:"), false, nil
	}
	return nil, true, l.check(l.user, string(answer))
}

// A certificate is self-signed.
type certificate struct {
	pair tls.Certificate
	file string // PEM
}

// newCertificate is for one IP address.
func newCertificate(t *testing.T, ip string) *certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	succeeds(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1),
		Subject: pkix.Name{CommonName: "mail"}, IPAddresses: []net.IP{net.ParseIP(ip)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	succeeds(t, err)
	file := filepath.Join(t.TempDir(), "ca.pem")
	succeeds(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		0o600))
	return &certificate{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file}
}

// script plays a server without TLS that answers correctly until the command `at`, and then calls
// do. "greeting" is the connection itself, and "." the end of the message. It returns the options
// of a sender.
func script(t *testing.T, at string, do func(net.Conn)) Options {
	t.Helper()
	l := network.Listen("")
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		play(conn, at, do)
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	host, port := address(l)
	return Options{Host: host, Port: port, TLS: tlsNone, From: "exchange@example.org",
		Timeout: time.Minute}
}

func play(conn net.Conn, at string, do func(net.Conn)) {
	answers := map[string]string{"greeting": "220 hello", "EHLO": "250 hello", "MAIL": "250 ok",
		"RCPT": "250 ok",
		"DATA": "354 go on", ".": "250 taken", "QUIT": "221 bye"}
	r, inMessage := bufio.NewReader(conn), false
	for command := "greeting"; ; {
		if command == at {
			do(conn)
			return
		}
		if answer := answers[command]; answer != "" {
			if _, err := io.WriteString(conn, answer+"\r\n"); err != nil {
				return
			}
		}
		inMessage = inMessage && command != "." || command == "DATA"
		text, err := r.ReadString('\n')
		if err != nil {
			return
		}
		if command = strings.TrimSpace(text); command == "." {
			continue
		}
		if command, _, _ = strings.Cut(command, " "); inMessage {
			command = "line"
		}
	}
}

var errServer = errors.New("the test's reason to stop")

// An ender is a test, or one run of a property.
type ender interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// succeeds expects no errors.
func succeeds(t ender, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
