package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Any file, with any environment, is a valid configuration or a list of problems in plain words;
// and passwords are in neither.
func FuzzLoad(f *testing.F) {
	for _, file := range []string{"", market, Example(), "currencies: 5", "pairs: [{name: [}]",
		"a: &a [*a]", "&a a: *a", "? ", "---\n---\na: 1", "\t", "\xff", "limits: {reads: 1e3}",
		"trusted_proxies: [10.0.0.0/8, ::1]\n" + market, strings.Repeat("[", 10_000),
		strings.Repeat("a: {", 1000), "<<: {listen: x}", "listen: !!binary aGk="} {
		f.Add(file, "", "")
	}
	f.Add(market, "STORE", "redis://user:secret@host:1/0")
	f.Add(market, "STORE", "host:1/x?a=b@c")
	f.Add(market, "STORE", "a@b")
	f.Add(market, "MAIL_PASSWORD", "\n")
	f.Add(market+"mail: {host: mail.example.org, username: u, from: a@example.org}", "MAIL_TLS",
		"none")
	f.Add(market+"store: redis://%zz@host\nmail: {host: a b, password: [x]}", "MAIL_PASSWORD",
		strings.Repeat("x", 300))
	f.Add(market, "LIMITS_READS", "0x10")
	f.Add(market, "SNAPSHOT_MIN_RECORDS", "99999999999999999999")
	f.Fuzz(func(t *testing.T, file, name, value string) {
		path := filepath.Join(t.TempDir(), "exchange.yaml")
		worked(t, os.WriteFile(path, []byte(file), 0o600))
		const secret = "the-password"
		src, planted := Sources{File: path}, Sources{File: path}
		store, password := "redis://user:"+secret+"@host:1/0", secret
		if name != "" && !strings.ContainsAny(name, "=\x00") && envConfig != envPrefix+name {
			src.Environ = []string{envPrefix + name + "=" + value}
			planted.Environ = src.Environ
			switch name {
			case "STORE":
				store = "redis://user:" + value + secret + "@" + value // any text, there too
			case "MAIL_PASSWORD":
				password += value
			}
		}
		load(t, src)
		if strings.Contains(file+name+value, secret) {
			return
		}
		// The last of two with the same name counts.
		planted.Environ = append(slices.Clip(planted.Environ), envPrefix+"STORE="+store,
			envPrefix+"MAIL_PASSWORD="+password)
		if shown := load(t, planted); strings.Contains(shown, secret) {
			t.Fatalf("a password is shown: %s", shown)
		}
	})
}

// load expects a valid configuration or a list of problems, and returns the whole output of either.
func load(t *testing.T, src Sources) (shown string) {
	t.Helper()
	c, err := Load(src)
	if err == nil {
		if err := c.validate(); err != nil {
			t.Fatalf("it was loaded, and is not valid: %v", err)
		}
		return c.Summary()
	}
	var problems problemList
	if !errors.As(err, &problems) || len(problems) == 0 {
		t.Fatalf("%v is no list of problems", err)
	}
	for _, p := range problems {
		if strings.TrimSpace(p) == "" {
			t.Fatalf("a problem without words in %q", problems)
		}
	}
	return err.Error() + strings.Join(problems, "")
}

// A password is hidden in everything that resembles the address of a Redis, with anything before
// and after.
func FuzzRedactURL(f *testing.F) {
	for _, s := range [][2]string{{"user", "host:1/0"}, {"", "host"}, {"a@b", "c@d"},
		{"a?b", "host?db=1"}, {"a#/b", "host#"}, {":", "::1"}, {"\xff", "\x00"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, user, host string) {
		const password, parameter = "the-password", "the-parameter"
		if strings.Contains(user+host, "the-p") {
			return
		}
		s := RedactURL("redis://" + user + ":" + password + "@" + host + "?x=" + parameter)
		if strings.Contains(s, password) || strings.Contains(s, parameter) || RedactURL(s) != s {
			t.Fatalf("%q is left", s)
		}
	})
}
