package mail

import (
	"bytes"
	"errors"
	"fmt"
	netmail "net/mail"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"
)

// Bounds of a message, in bytes.
const (
	maxID      = 80
	maxAddress = 254 // RFC 5321 with RFC 3696's erratum 1690
	maxSubject = 200
	maxText    = 16 << 10
)

// ErrNever wraps the errors of a Send that is useless to repeat: the message can never be sent, or
// the server will never accept it for this recipient.
var ErrNever = errors.New("it can never be sent")

// Message is one mail to one recipient.
//
// Send refuses a message that breaks a bound, or has control characters other than newlines and
// tabs in Text. So no value can start its own header or command. Such a message will never be sent:
// ErrNever.
type Message struct {
	// ID is unique for each message and the same for each retry: it and the sender's domain make
	// the Message-ID. It has 1 to maxID of a-z and 0-9, with single '.' and '-' between them.
	ID string
	// To is a bare address, at most maxAddress bytes.
	To string
	// Subject is one line of 1 to maxSubject bytes of printable UTF-8. Blanks are single and not at
	// the ends, because others do not survive the folding of a long header.
	Subject string
	// Text is plain UTF-8 text of at most maxText bytes; lines end with "\n".
	Text string
}

// encode returns the message in its form on the wire: headers, an empty line and the encoded text.
// Lines end with CR LF.
func (m Message) encode(from *netmail.Address) ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("mail %q: %w: %w", m.ID, ErrNever, err)
	}
	g := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	g.FromMailAddress(from)
	g.ToMailAddress(&netmail.Address{Address: m.To})
	g.Subject(m.Subject)
	g.SetMessageIDWithValue(fmt.Sprintf("exchange-mail.%s@%s", m.ID, domain(from.Address)))
	g.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: suppresses absence notes
	g.SetBodyString(gomail.TypeTextPlain, m.Text)
	var b bytes.Buffer
	if _, err := g.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("mail %q: %w", m.ID, err)
	}
	return b.Bytes(), nil
}

func (m Message) check() error {
	if err := checkAddress(m.To); err != nil {
		return fmt.Errorf("the recipient %w", err)
	}
	switch {
	case len(m.ID) > maxID || !idForm.MatchString(m.ID):
		return fmt.Errorf(
			"the id is not 1 to %d of a-z and 0-9 with single '.' and '-' between them", maxID)
	case m.Subject == "" || m.Subject != line(m.Subject, maxSubject):
		return fmt.Errorf(
			"the subject %.80q is not one line of 1 to %d bytes of printable text with single "+
				"blanks", m.Subject, maxSubject)
	case len(m.Text) > maxText:
		return fmt.Errorf("the text has %d bytes, more than %d", len(m.Text), maxText)
	case !utf8.ValidString(m.Text) || strings.ContainsFunc(m.Text, controlInText):
		// it may hold a code: never shown
		return fmt.Errorf("the text has control characters or is not UTF-8")
	}
	return nil
}

var idForm = regexp.MustCompile(`^[a-z0-9]+([.-][a-z0-9]+)*$`)

func controlInText(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }

// checkAddress accepts bare addresses in the simple form only: no name, no comment, no quotes.
func checkAddress(s string) error {
	a, err := netmail.ParseAddress(s)
	if err != nil || a.Address != s || len(s) > maxAddress || strings.ContainsAny(s, "<>") ||
		strings.ContainsFunc(s, func(r rune) bool {
			return unicode.IsControl(r) || unicode.IsSpace(r)
		}) {
		return fmt.Errorf("%.80q is not an e-mail address", s)
	}
	return nil
}

// parseFrom reads an address with or without a name in front.
func parseFrom(s string) (*netmail.Address, error) {
	a, err := netmail.ParseAddress(s)
	if err != nil || !ascii(a.Address) || checkAddress(a.Address) != nil ||
		len(a.Name) > maxSubject || strings.ContainsFunc(a.Name, unicode.IsControl) {
		return nil,
			fmt.Errorf(
				`the sender %.80q is not an e-mail address in ASCII, such as exchange@example.org or "Example Exchange <exchange@example.org>"`,
				s)
	}
	return a, nil
}

func domain(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}
