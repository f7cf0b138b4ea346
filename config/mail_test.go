package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestMail(t *testing.T) {
	f := func(change func(*Mail), want ...string) {
		t.Helper()
		c := Demo()
		c.Mail.Host, c.Mail.From, c.Mail.Username, c.Mail.Password = "mail.example.org",
			"exchange@example.org", "u", "hunter2"
		change(&c.Mail)
		err := c.Finish()
		if len(want) > 0 {
			got, _ := err.(problemList)
			expect(t, got, want...)
		} else if err != nil {
			t.Error(err)
		}
		if text := fmt.Sprint(err, c.Summary()); strings.Contains(text, "hunter2") {
			t.Errorf("the password is shown: %s", text)
		}
	}
	f(func(*Mail) {})
	f(func(m *Mail) { *m = Default().Mail })
	f(func(m *Mail) { m.Host, m.From = "", "" })
	f(func(m *Mail) { m.Username, m.Password = "", "" })
	f(func(m *Mail) { m.Username, m.Password, m.TLS = "", "", "none" })
	f(func(m *Mail) { m.From = "Börse <exchange@example.org>" })
	for _, host := range []string{"localhost", "127.0.0.1", "::1"} {
		f(func(m *Mail) { m.Host, m.TLS = host, "none" })
	}
	for _, host := range []string{"mail.example.org:587", "smtp://mail.example.org", "a b", "a\nb",
		"user@host", strings.Repeat("a", 254)} {
		f(func(m *Mail) { m.Host = host }, "write a host's name or IP address alone")
	}
	for _, from := range []string{"", "exchange", "a@b, c@d", "a@b\r\nBcc: x@y", "A\r\n <a@b>",
		"=?utf-8?q?=0A?= <a@b>", "ü@b", `"a b"@c`, strings.Repeat("a", 500) + " <a@b>"} {
		f(func(m *Mail) { m.From = from },
			"with mail.host, write an address such as exchange@example.org or")
	}
	f(func(m *Mail) { m.Username = "" },
		"mail.username is empty: mail.password is set; write the user it belongs to.")
	f(func(m *Mail) { m.Password = "" },
		"mail.password is empty: mail.username is set; write its password, best in "+
			"EXCHANGE_MAIL_PASSWORD.")
	f(func(m *Mail) { m.TLS = "none" },
		`mail.tls is "none": the password would cross the network in clear text;`)
	f(func(m *Mail) { m.TLS = "starttls" },
		`mail.tls is "starttls": write one of required, implicit, none.`)
	f(func(m *Mail) { m.Password = "hunter2\n" },
		"mail.password is wrong: write at most 255 bytes of text without control characters.")
	f(func(m *Mail) { m.Username = strings.Repeat("u", 256) },
		"mail.username is wrong: write at most 255 bytes")
	f(func(m *Mail) { m.Port, m.TimeoutMs = 65_536, 99 }, "mail.port is 65,536: write",
		"mail.timeout_ms is 99: write")
}

func TestTheMailPasswordIsNeverShown(t *testing.T) {
	file := write(t,
		market+
			"mail:\n  host: mail.example.org\n  username: u\n  password: hunter2\n  from: "+
			"a@example.org\n")
	c := must(Load(Sources{File: file}))
	if c.Mail.Password != "hunter2" {
		t.Fatalf("the password is %q", c.Mail.Password)
	}
	const want = "mail.host=mail.example.org, mail.username=u, mail.password=***, " +
		"mail.from=a@example.org"
	if got := c.Summary(); !strings.HasSuffix(got, want) || strings.Contains(got, "hunter2") {
		t.Errorf("the summary is\n  %s\nwithout\n  %s", got, want)
	}
	for _, text := range []string{"mail: hunter2\n", "mail: {password: [hunter2]}\n",
		"mail: {password: &a hunter2}\n", "mail: {password: 'hunter2\n"} {
		if got := problems(t, Sources{File: write(t, market+text)}); strings.Contains(got.Error(),
			"hunter2") {
			t.Errorf("%q: %v", text, got)
		}
	}
}
