package mail

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	netmail "net/mail"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gosmtp "github.com/emersion/go-smtp"
)

var example = Message{ID: "42", To: "alice@example.com", Subject: "Überweisung 7 – please confirm",
	Text: "Grüße, 你好\n\n.a line with a dot in front\nFrom here on\tmore\n" +
		strings.Repeat("long ", 300) + "\n"}

func newSMTP(t *testing.T, o Options) *SMTP {
	t.Helper()
	s, err := NewSMTP(o)
	succeeds(t, err)
	s.dial = network.Dial
	return s
}

// A parsed mail as its reader's program shows it.
type parsed struct {
	header  netmail.Header
	subject string
	text    string // lines end with "\n"
}

func parse(t ender, data string) parsed {
	t.Helper()
	m, err := netmail.ReadMessage(strings.NewReader(data))
	succeeds(t, err)
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	succeeds(t, err)
	if got := m.Header.Get("Content-Type") + " " + m.Header.Get("Content-Transfer-Encoding"); got !=
		"text/plain; charset=UTF-8 quoted-printable" {
		t.Fatal("content is", got)
	}
	text, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	succeeds(t, err)
	return parsed{m.Header, subject, strings.ReplaceAll(string(text), "\r\n", "\n")}
}

// headers are the names of all headers of every mail.
var headers = []string{"Auto-Submitted", "Content-Transfer-Encoding", "Content-Type", "Date",
	"From", "Message-Id", "Mime-Version", "Subject", "To"}

// is checks that a mail is m, and has the usual headers once each and no other.
func (p parsed) is(t interface{ Errorf(string, ...any) }, m Message, from, domain string) {
	var names []string
	for name, values := range p.header {
		for range values {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, headers) {
		t.Errorf("headers are %q", names)
	}
	for name, want := range map[string]string{"From": from, "To": "<" + m.To + ">",
		"Message-Id":     fmt.Sprintf("<exchange-mail.%s@%s>", m.ID, domain),
		"Auto-Submitted": "auto-generated", "Mime-Version": "1.0"} {
		if got := p.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if _, err := p.header.Date(); err != nil {
		t.Errorf("date: %v", err)
	}
	if p.subject != m.Subject {
		t.Errorf("subject is %q, want %q", p.subject, m.Subject)
	}
	if p.text != m.Text {
		t.Errorf("text is %q, want %q", p.text, m.Text)
	}
}

const exampleFrom = "=?utf-8?q?Example_B=C3=B6rse?= <exchange@example.org>"

func TestAMailArrivesWholeInEveryModeOfEncryptionAndAuthentication(t *testing.T) {
	cert := newCertificate(t, "127.0.0.1")
	for _, x := range []struct {
		tls        string
		mechanisms []string
	}{
		{tlsNone, nil}, {tlsNone, []string{"PLAIN"}}, {tlsNone, []string{"LOGIN"}},
		{tlsRequired, nil}, {tlsRequired, []string{"LOGIN", "PLAIN"}},
		{tlsRequired, []string{"CRAM-MD5", "LOGIN"}},
		{tlsImplicit, nil}, {tlsImplicit, []string{"PLAIN"}}, {tlsImplicit, []string{"LOGIN"}},
	} {
		t.Run(fmt.Sprint(x.tls, x.mechanisms), func(t *testing.T) {
			s := (&server{mechanisms: x.mechanisms}).start(t, x.tls, cert, nil)
			o := s.options(x.tls)
			o.CAFile = cert.file
			want := delivery{from: "exchange@example.org", to: "alice@example.com",
				encrypted: x.tls != tlsNone}
			if x.mechanisms != nil {
				o.Username, o.Password, want.user = username, password, username
			}
			succeeds(t, newSMTP(t, o).Send(t.Context(), example))
			got := s.deliveries()
			if len(got) != 1 {
				t.Fatalf("%d mails arrived", len(got))
			}
			parse(t, got[0].data).is(t, example, exampleFrom, "example.org")
			got[0].data = ""
			if got[0] != want {
				t.Errorf("got %+v, want %+v", got[0], want)
			}
		})
	}
}

func TestManyMailsAtOnceDoNotMix(t *testing.T) {
	s := (&server{}).start(t, tlsNone, nil, nil)
	c := newSMTP(t, s.options(tlsNone))
	const n = 50
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			m := Message{ID: fmt.Sprint(i), To: fmt.Sprintf("user%d@example.com", i),
				Subject: fmt.Sprint("mail ", i), Text: fmt.Sprintf("text %d\n", i)}
			if err := c.Send(t.Context(), m); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, d := range s.deliveries() {
		var i int
		if _, err := fmt.Sscanf(d.to, "user%d@example.com", &i); err != nil {
			t.Fatal(err)
		}
		seen[d.to] = true
		parse(t, d.data).is(t, Message{ID: fmt.Sprint(i), To: d.to, Subject: fmt.Sprint("mail ", i),
			Text: fmt.Sprintf("text %d\n", i)}, exampleFrom, "example.org")
	}
	if len(seen) != n {
		t.Errorf("%d different mails arrived, want %d", len(seen), n)
	}
}

func TestHeadersAndCommandsInAMessageAreRefusedBeforeTheServerIsAsked(t *testing.T) {
	s := (&server{}).start(t, tlsNone, nil, nil)
	c, dir := newSMTP(t, s.options(tlsNone)), t.TempDir()
	files := NewFiles(dir)
	f := func(change func(*Message), want string) {
		t.Helper()
		m := example
		change(&m)
		for _, send := range []func(context.Context, Message) error{c.Send, files.Send} {
			err := send(t.Context(), m)
			if err == nil || !strings.Contains(err.Error(), want) ||
				!strings.HasPrefix(err.Error(), `mail "42": `) || len(err.Error()) > 2*maxSubject {
				t.Errorf("got %v, want %q", err, want)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("%q has more than one line", err)
			}
		}
	}
	for _, to := range []string{"", "a", "@b", "a@", "a@b\r\nBcc: x@y", "a@b\n", "\ra@b",
		"a@b, c@d", "A <a@b>", "<a@b>", "a@b>", "a b@c", `"a b"@c`, "a@b (c)",
		"a@b\x00", "a@b\u0085x", "a\u00a0@b", "a@[127.0.0.1> SIZE=1]", "a@b\xff",
		strings.Repeat("a", maxAddress) + "@b"} {
		f(func(m *Message) { m.To = to }, "is not an e-mail address")
	}
	for _, subject := range []string{"", strings.Repeat("a", maxSubject+1), "a\r\nBcc: x@y", "a\nb",
		"a\tb", "a\xff", " a", "a ", "a  b", "a\u202eb"} {
		f(func(m *Message) { m.Subject = subject }, "is not one line of 1 to 200 bytes")
	}
	f(func(m *Message) { m.Text = strings.Repeat("a", maxText+1) },
		"the text has 16385 bytes, more than 16384")
	f(func(m *Message) { m.Text = "a\r\n.\r\nMAIL FROM:<x@y>" }, "the text has control characters")
	f(func(m *Message) { m.Text = "a\x00" }, "the text has control characters")
	f(func(m *Message) { m.Text = "a\xff" }, "not UTF-8")
	if s.sessions != 0 {
		t.Errorf("the server was asked %d times", s.sessions)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// fails sends the example and checks that the error begins with the server and the step.
func fails(t *testing.T, ctx context.Context, o Options, step string) error {
	t.Helper()
	err := newSMTP(t, o).Send(ctx, example)
	if want := fmt.Sprintf("mail server %s:%d, %s: ", o.Host, o.Port, step); err == nil ||
		!strings.HasPrefix(err.Error(), want) {
		t.Fatalf("got %v, want %q", err, want)
	}
	if strings.ContainsAny(err.Error(), "\r\n") || len(err.Error()) > maxReason+200 {
		t.Errorf("%q is no short line", err)
	}
	return err
}

func contains(t *testing.T, err error, want string) {
	t.Helper()
	if !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// code checks the server's answer in err.
func code(t *testing.T, err error, want int) {
	t.Helper()
	var answer *textproto.Error
	if !errors.As(err, &answer) || answer.Code != want {
		t.Errorf("got %v, want an answer with %d", err, want)
	}
}

func TestAWrongPasswordIsReportedAndNotShown(t *testing.T) {
	cert := newCertificate(t, "127.0.0.1")
	// An answer may repeat its input, plainly or as received.
	echo := func(p string) error {
		return &gosmtp.SMTPError{Code: 535, EnhancedCode: gosmtp.EnhancedCode{5, 7, 8},
			Message: fmt.Sprintf("no: %s %s %s", p,
				base64.StdEncoding.EncodeToString([]byte(p)),
				base64.StdEncoding.EncodeToString([]byte("\x00"+username+"\x00"+p)))}
	}
	for _, mechanism := range []string{"PLAIN", "LOGIN"} {
		for _, authError := range []func(string) error{nil, echo} {
			s := (&server{mechanisms: []string{mechanism}, authError: authError}).start(t,
				tlsRequired, cert, nil)
			o := s.options(tlsRequired)
			o.CAFile, o.Username, o.Password = cert.file, username, "swordfish"
			err := fails(t, t.Context(), o, "AUTH")
			code(t, err, 535)
			contains(t, err, "5.7.8")
			for _, secret := range []string{"swordfish",
				base64.StdEncoding.EncodeToString([]byte("swordfish")), "c3dvcmRmaXNo"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%v shows the password", err)
				}
			}
			if authError != nil {
				contains(t, err, "no: *** *** ***")
			}
			if len(s.deliveries()) != 0 {
				t.Error("a mail arrived")
			}
		}
	}
}

func TestAMalformedAnswerDoesNotShowThePasswordEither(t *testing.T) {
	o := script(t, "EHLO", func(c net.Conn) {
		r := bufio.NewReader(c)
		_, _ = io.WriteString(c, "250-hello\r\n250 AUTH PLAIN\r\n")
		if _, err := r.ReadString('\n'); err == nil {
			_, _ = io.WriteString(c, "what is swordfish?\r\n")
		}
		_, _ = io.Copy(io.Discard, r)
	})
	o.Username, o.Password = username, "swordfish"
	contains(t, fails(t, t.Context(), o, "AUTH"), `what is ***?`)
}

func TestAServerWithoutUsableAuthenticationIsDistinguished(t *testing.T) {
	for mechanisms, want := range map[string]string{
		"CRAM-MD5": `offers neither PLAIN nor LOGIN, only "CRAM-MD5"`, "": `only ""`} {
		s := (&server{mechanisms: strings.Fields(mechanisms)}).start(t, tlsNone, nil, nil)
		o := s.options(tlsNone)
		o.Username, o.Password = username, password
		contains(t, fails(t, t.Context(), o, "AUTH"), want)
	}
}

func TestRefusalsOfTheServerCarryItsAnswer(t *testing.T) {
	refusal := func(code int, text string) error {
		return &gosmtp.SMTPError{Code: code, EnhancedCode: gosmtp.EnhancedCode{code / 100, 1, 1},
			Message: text}
	}
	f := func(s *server, step string, status int, text string) {
		t.Helper()
		s.start(t, tlsNone, nil, nil)
		err := fails(t, t.Context(), s.options(tlsNone), step)
		code(t, err, status)
		if want := step == stepRecipient && status == 550; errors.Is(err, ErrNever) != want {
			t.Errorf("%v is permanent: %v", err, !want)
		}
		contains(t, err, text)
		if len(s.deliveries()) != 0 {
			t.Error("a mail arrived")
		}
	}
	f(&server{mechanisms: []string{"PLAIN"}}, "MAIL FROM", 502, "Please authenticate first")
	f(&server{refuse: refusal(550, "no such user")}, "RCPT TO", 550, "5.1.1 no such user")
	f(&server{refuse: refusal(530, "authenticate first")}, "RCPT TO", 530, "authenticate first")
	f(&server{refuse: refusal(450, "come back later")}, "RCPT TO", 450, "come back later")
	f(&server{refuseData: refusal(554, strings.Repeat("spam ", 100))}, "the message", 554,
		"spam spam")
	f(&server{refuseData: refusal(451, "disk full")}, "the message", 451, "4.1.1 disk full")
}

func TestNothingIsSentWithoutTLSWhereItIsRequired(t *testing.T) {
	cert, other := newCertificate(t, "127.0.0.1"), newCertificate(t, "127.0.0.2")
	for _, mode := range []string{tlsRequired, tlsImplicit} {
		step := map[string]string{tlsRequired: "STARTTLS", tlsImplicit: "TLS"}[mode]
		plain := (&server{}).start(t, tlsNone, nil, nil)
		err := fails(t, t.Context(), plain.options(mode), step)
		contains(t, err, map[string]string{tlsRequired: "does not offer it",
			tlsImplicit: "does not look like a TLS handshake"}[mode])

		unknown := (&server{}).start(t, mode, cert, nil)
		contains(t, fails(t, t.Context(), unknown.options(mode), step), "certificate")
		o := unknown.options(mode)
		o.CAFile = other.file
		contains(t, fails(t, t.Context(), o, step), "certificate")

		wrongName := (&server{}).start(t, mode, other, nil)
		o = wrongName.options(mode)
		o.CAFile = other.file
		contains(t, fails(t, t.Context(), o, step), "valid for 127.0.0.2, not 127.0.0.1")
		for _, s := range []*server{plain, unknown, wrongName} {
			if len(s.deliveries()) != 0 {
				t.Error("a mail arrived")
			}
		}
	}
}

// stages are the commands of a dialogue without TLS, with the step that an error names.
var stages = []struct{ at, step string }{
	{"greeting", "greeting"}, {"EHLO", "EHLO"}, {"MAIL", "MAIL FROM"}, {"RCPT", "RCPT TO"},
	{"DATA", "DATA"}, {".", "the message"},
}

func TestAServerThatClosesTheConnectionIsAnErrorOfThatStep(t *testing.T) {
	for _, x := range stages {
		err := fails(t, t.Context(), script(t, x.at, func(net.Conn) {}), x.step)
		contains(t, err, "the server closed the connection")
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", x.at, err)
		}
	}
	fails(t, t.Context(), script(t, "line", func(net.Conn) {}), "the message")
}

func TestAServerThatNeverAnswersIsAbandonedWhenTheContextEnds(t *testing.T) {
	for _, x := range stages {
		ctx, cancel := context.WithCancelCause(t.Context())
		o := script(t, x.at, func(c net.Conn) {
			cancel(errServer)
			_, _ = io.Copy(io.Discard, c) // until the sender leaves
		})
		err := newSMTP(t, o).Send(ctx, example)
		// The server may see a connection before the sender does: then that is the step.
		if !errors.Is(err, errServer) ||
			x.at != "greeting" && !strings.Contains(err.Error(), ", "+x.step+": ") {
			t.Errorf("%s: %v", x.at, err)
		}
	}
}

func TestAServerThatNeverAnswersTheTLSHandshakeIsAbandonedToo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := script(t, "greeting", func(c net.Conn) {
		cancel()
		_, _ = io.Copy(io.Discard, c)
	})
	o.TLS = tlsImplicit
	if err := newSMTP(t, o).Send(ctx, example); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestTheTimeoutBoundsASend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := script(t, "EHLO", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
		o.Timeout = 20 * time.Millisecond
		begin := time.Now()
		err := newSMTP(t, o).Send(t.Context(), example)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != o.Timeout {
			t.Fatal(err)
		}
		contains(t, err, "not done after 20ms")
	})
}

func TestWithoutAConnectionTheStepIsConnecting(t *testing.T) {
	s := (&server{}).start(t, tlsNone, nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := fails(t, ctx, s.options(tlsNone), "connecting"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	o := Options{Host: "127.0.0.1", Port: 1, From: "exchange@example.org", Timeout: time.Minute}
	contains(t, fails(t, t.Context(), o, "connecting"), "refused")
}

func TestAMailThatTheServerTookIsSentEvenIfTheFarewellFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	for name, do := range map[string]func(net.Conn){
		"closes": func(net.Conn) {},
		"angry":  func(c net.Conn) { _, _ = io.WriteString(c, "500 what?\r\n") },
		"silent": func(c net.Conn) {
			cancel()
			_, _ = io.Copy(io.Discard, c)
		},
	} {
		ctx := ctx
		if name != "silent" {
			ctx = t.Context()
		}
		if err := newSMTP(t, script(t, "QUIT", do)).Send(ctx, example); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAServerThatAnswersWithoutEndIsAbandoned(t *testing.T) {
	for _, text := range []string{"220-again\r\n", "x"} {
		endless := bytes.Repeat([]byte(text), 1000)
		o := script(t, "greeting", func(c net.Conn) {
			for {
				if _, err := c.Write(endless); err != nil {
					return
				}
			}
		})
		err := newSMTP(t, o).Send(t.Context(), example)
		if err == nil || !strings.Contains(err.Error(),
			"greeting: the server says more than 65536 bytes") {
			t.Errorf("%.200v", err)
		}
	}
}

func TestAnAddressBeyondASCIINeedsAServerThatTakesIt(t *testing.T) {
	m := example
	m.To = "jürgen@bücher.example"
	plain := (&server{}).start(t, tlsNone, nil, nil)
	err := newSMTP(t, plain.options(tlsNone)).Send(t.Context(), m)
	if !errors.Is(err, ErrNever) ||
		!strings.Contains(err.Error(), "SMTPUTF8: the server takes only addresses in ASCII") {
		t.Error(err)
	}
	s := (&server{}).start(t, tlsNone, nil, func(g *gosmtp.Server) { g.EnableSMTPUTF8 = true })
	c := newSMTP(t, s.options(tlsNone))
	for _, m := range []Message{m, example} {
		succeeds(t, c.Send(t.Context(), m))
	}
	got := s.deliveries()
	if len(got) != 2 || got[0].to != m.To || !got[0].utf8 || got[1].utf8 {
		t.Fatalf("got %+v", got)
	}
	parse(t, got[0].data).is(t, m, exampleFrom, "example.org")
}

func TestThePasswordIsNotPrinted(t *testing.T) {
	o := Options{Host: "localhost", From: "a@b", Timeout: 1, Username: "u", Password: "hunter2"}
	s := newSMTP(t, o)
	asJSON, err := json.Marshal(o)
	succeeds(t, err)
	for _, text := range []string{fmt.Sprintf("%v %+v %#v %s", o, o, o, o),
		fmt.Sprintf("%v %+v %#v", &o, &o, &o), fmt.Sprintf("%v %+v %#v", s, s, s),
		fmt.Sprintf("%v %+v %#v", *s, *s, *s), string(asJSON)} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s shows the password", text)
		}
	}
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	dir := t.TempDir()
	noCert := filepath.Join(dir, "none.pem")
	succeeds(t, os.WriteFile(noCert, []byte("nothing"), 0o600))
	f := func(change func(*Options), want string) {
		t.Helper()
		o := Options{Host: "mail.example.org", From: "exchange@example.org", Timeout: time.Minute}
		change(&o)
		_, err := NewSMTP(o)
		switch {
		case want == "" && err != nil:
			t.Error(err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("got %v, want %q", err, want)
		case err != nil && strings.Contains(err.Error(), "hunter2"):
			t.Errorf("%v shows the password", err)
		}
	}
	login := func(o *Options) { o.Username, o.Password = "u", "hunter2" }
	f(func(*Options) {}, "")
	f(login, "")
	f(func(o *Options) { o.From = "Exchange <exchange@example.org>" }, "")
	f(func(o *Options) { o.TLS = tlsNone }, "")
	for _, host := range []string{"localhost", "127.0.0.2", "::1"} {
		f(func(o *Options) { login(o); o.Host, o.TLS = host, tlsNone }, "")
	}
	f(func(o *Options) { login(o); o.TLS = tlsNone },
		"without TLS a password is not sent to mail.example.org")
	f(func(o *Options) { o.Host = "" }, "is not the name of a server")
	f(func(o *Options) { o.Host = "a\r\nb" }, "is not the name of a server")
	f(func(o *Options) { o.TLS = "maybe" }, `tls is "maybe", not required, implicit or none`)
	f(func(o *Options) { o.Port = 65536 }, "there is no port 65536")
	f(func(o *Options) { o.Port = -1 }, "there is no port -1")
	f(func(o *Options) { o.Timeout = 0 }, "the timeout is 0s")
	f(func(o *Options) { o.Username = "u" }, "go together")
	f(func(o *Options) { o.Password = "hunter2" }, "go together")
	f(func(o *Options) { o.Username, o.Password = "u", "hunter2\r\n" }, "control characters")
	f(func(o *Options) { o.CAFile = filepath.Join(dir, "missing") }, "cannot be read")
	f(func(o *Options) { o.CAFile = noCert }, "holds no certificate in PEM form")
	for _, from := range []string{"", "a", "a@b\r\nBcc: x@y", "=?utf-8?q?=0A?= <a@b>", "ü@b", "a@ü",
		`"a b"@c`, "a@b, c@d"} {
		f(func(o *Options) { o.From = from }, "is not an e-mail address in ASCII")
	}
}

func TestTheUsualPortsAndTheNameOfThisMachine(t *testing.T) {
	for mode, want := range map[string]string{"": "h:587", tlsRequired: "h:587",
		tlsImplicit: "h:465", tlsNone: "h:25"} {
		if s := newSMTP(t, Options{Host: "h", TLS: mode, From: "a@b", Timeout: 1}); s.server !=
			want {
			t.Errorf("%q: %s, want %s", mode, s.server, want)
		}
	}
	for address, want := range map[string]string{"127.0.0.1:5": "[127.0.0.1]",
		"[::1]:5": "[IPv6:::1]", "[fe80::1%eth0]:5": "[IPv6:fe80::1]", "pipe": "localhost"} {
		if got := literal(named(address)); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

type named string

func (n named) Network() string { return "tcp" }
func (n named) String() string  { return string(n) }
