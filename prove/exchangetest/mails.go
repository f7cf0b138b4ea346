package exchangetest

import (
	"bytes"
	"fmt"
	"io"
	"mime/quotedprintable"
	"net"
	netmail "net/mail"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	gosmtp "github.com/emersion/go-smtp"

	"exchange/mail/mailtest"
)

// Mails is a mail server. It stores the newest code mailed for each withdrawal, and the text of
// other mails. Its methods may be called from any goroutine.
type Mails struct {
	address *net.TCPAddr

	mu    sync.Mutex
	codes map[uint64]string
	other []string
}

// newMails serves until the test ends.
func newMails(t testing.TB) *Mails {
	t.Helper()
	m := &Mails{codes: map[uint64]string{}}
	m.address = mailtest.Serve(t, gosmtp.BackendFunc(
		func(*gosmtp.Conn) (gosmtp.Session, error) { return mailSession{m}, nil }), nil)
	return m
}

// Env configures an exchange that sends its mails here.
func (m *Mails) Env() []string {
	return []string{"EXCHANGE_MAIL_HOST=" + m.address.IP.String(),
		fmt.Sprintf("EXCHANGE_MAIL_PORT=%d", m.address.Port),
		"EXCHANGE_MAIL_TLS=none", "EXCHANGE_MAIL_FROM=exchange@example.org",
		"EXCHANGE_MAIL_USERNAME=", "EXCHANGE_MAIL_PASSWORD="}
}

// Code returns the newest code mailed for a withdrawal; "": none yet.
func (m *Mails) Code(withdrawal uint64) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.codes[withdrawal]
}

// HasNotice reports whether a mail without a code contains all of the words.
func (m *Mails) HasNotice(words ...string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.other, func(text string) bool {
		return !slices.ContainsFunc(words, func(w string) bool {
			return !strings.Contains(text, w)
		})
	})
}

// Forget drops the codes so far.
func (m *Mails) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.codes)
}

var mailedCode = regexp.MustCompile(`(?s)Withdrawal  (\d+)\n.*Your code is\n\n  (\S+)\n`)

type mailSession struct{ mails *Mails }

func (mailSession) Reset()                                 {}
func (mailSession) Logout() error                          { return nil }
func (mailSession) Mail(string, *gosmtp.MailOptions) error { return nil }
func (mailSession) Rcpt(string, *gosmtp.RcptOptions) error { return nil }

func (s mailSession) Data(r io.Reader) error {
	message, err := netmail.ReadMessage(r)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(quotedprintable.NewReader(message.Body))
	if err != nil {
		return err
	}
	found := mailedCode.FindSubmatch(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))
	if found == nil {
		s.mails.mu.Lock()
		defer s.mails.mu.Unlock()
		s.mails.other = append(s.mails.other, string(text))
		return nil
	}
	id, err := strconv.ParseUint(string(found[1]), 10, 64)
	if err != nil {
		return err
	}
	s.mails.mu.Lock()
	defer s.mails.mu.Unlock()
	s.mails.codes[id] = string(found[2])
	return nil
}
