package web

import (
	"bytes"
	"fmt"
	"html"
	"strings"
	"time"
)

// MailsAddress is that of the page with the demo's mails, in a demo only.
const MailsAddress = "/demo/mails"

const mailsPage = "mails.html"

// A Mail is shown on the page with the demo's mails.
type Mail struct {
	Time              time.Time
	To, Subject, Text string
}

// MailsPage returns the page with the demo's mails, in their order.
func MailsPage(l Look, list []Mail) *File {
	var b strings.Builder
	if len(list) == 0 {
		b.WriteString("<p>There are none yet. The code of a withdrawal is mailed.</p>\n")
	}
	for _, m := range list {
		fmt.Fprintf(&b, "<h2>%s</h2>\n<p>To %s, <time>%s</time></p>\n"+
			"<pre tabindex=\"0\">%s</pre>\n", html.EscapeString(m.Subject), html.EscapeString(m.To),
			m.Time.UTC().Format("2006-01-02 15:04:05 UTC"), html.EscapeString(m.Text))
	}
	return newFile(htmlType, bytes.Replace(made().mails[l], []byte("{{mails}}"),
		[]byte(b.String()), 1))
}
