package actors

import (
	"net/netip"
	"testing"
)

// An address scope is the network of its text, without host bits. Its stored form reads the same
// after a restart.
func FuzzParsePrefix(f *testing.F) {
	for _, s := range []string{"", "10.0.0.0/8", "10.1.2.3/8", "10.0.0.1", "::1", "2001:db8::/32",
		"::ffff:10.0.0.0/104", "::ffff:10.0.0.1", "::ffff:10.0.0.0/95", "fe80::1%eth0",
		"fe80::%eth0/64", "1.2.3.4/33",
		"01.2.3.4", "0.0.0.0/0", "::/0", "10.0.0.0/08"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePrefix(text)
		if err != nil {
			return
		}
		stored, err := netip.ParsePrefix(p.String())
		if err != nil || stored != p {
			t.Fatalf("%q is stored as %q, which is %v, %v", text, p, stored, err)
		}
		if p.Addr().Is4In6() || p.Addr().Zone() != "" {
			t.Fatalf("%q is %v, in which no address of a client lies", text, p)
		}
		if !p.Contains(p.Addr()) {
			t.Fatalf("%q is %v, which has not even its own address", text, p)
		}
	})
}
