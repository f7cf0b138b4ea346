package edge

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"exchange/gateway/listen"
)

func TestForwardedNamesTheFirstThatIsNoProxyFromTheEnd(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("fd00::/8")}
	peer := netip.MustParseAddr("10.0.0.1")
	f := func(want string, lines ...string) {
		t.Helper()
		var b [][]byte
		for _, l := range lines {
			b = append(b, []byte(l))
		}
		if got := forwarded(b, trusted, peer); got.String() != want {
			t.Errorf("%.100q: got %s, want %s", lines, got, want)
		}
	}
	f("10.0.0.1")
	f("10.0.0.1", "")
	f("10.0.0.1", " , ,, ")
	f("192.0.2.1", "192.0.2.1")
	f("192.0.2.1", "\t192.0.2.1 ")
	f("192.0.2.1", ",192.0.2.1,, ")
	f("192.0.2.2", "192.0.2.1,192.0.2.2")
	f("192.0.2.2", "192.0.2.1", "192.0.2.2")
	f("192.0.2.1", "192.0.2.1,10.2.2.2", "fd00::1", "10.3.3.3")
	f("192.0.2.1", "192.0.2.1:0")
	f("2001:db8::1", "[2001:db8::1]:65535")
	f("192.0.2.1", "::ffff:192.0.2.1, ::ffff:10.0.0.2")
	f("fd00::1", "fd00::1, 10.9.9.9")
	f("10.9.9.9", "10.9.9.9")
	for _, garbage := range []string{"x", "192.0.2.1 192.0.2.2", "192.0.2", "192.0.2.256",
		"192.0.2.01", "192.0.2.1:", "192.0.2.1:65536", "[2001:db8::1", "fe80::1%eth0",
		"[fe80::1%eth0]:1",
		"192.0.2.1/32", "\"192.0.2.1\"", "192.0.2.1;", "for=192.0.2.1", "\x00", "\xff\xfe",
		strings.Repeat("1", 10_000)} {
		f("10.0.0.1", garbage)
		f("10.0.0.1", "192.0.2.1, "+garbage)
		f("10.0.0.1", "192.0.2.1", garbage+",10.0.0.2")
		f("192.0.2.9", garbage+",192.0.2.9")
		f("192.0.2.9", garbage, "192.0.2.9")
	}
	// Only a bounded part of its end is read, in all lines together.
	chain := strings.Repeat("10.0.0.2,", (maxForwarded-len("192.0.2.1,"))/len("10.0.0.2,"))
	f("192.0.2.1", "192.0.2.1,"+chain)
	f("192.0.2.1", "192.0.2.1", chain)
	f("10.0.0.1", "192.0.2.1,"+chain+chain)
	f("10.0.0.1", "192.0.2.1", chain, chain)
	f("10.0.0.1", "192.0.2.1,"+strings.Repeat(" ", maxForwarded))
	// cut before a comma
	f("10.0.0.1", "192.0.2.1,"+strings.Repeat(" ", maxForwarded-len("10.0.0.2")-1)+"10.0.0.2")
	for pad := range 40 { // a truncated address is not mistaken for another
		f := forwarded([][]byte{[]byte(
			"6.6.6.6,192.0.2.123" + strings.Repeat(" ", pad) + "," + chain)}, trusted,
			peer).String()
		if f != "192.0.2.123" && f != "10.0.0.1" {
			t.Errorf("%d blanks: %s", pad, f)
		}
	}
}

// The client that a chain of proxies names is one of the list, or the peer, and only trusted
// proxies are believed.
func FuzzForwarded(f *testing.F) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("fd00::/8")}
	peer := netip.MustParseAddr("10.1.1.1")
	for _, s := range []string{"", "1.2.3.4", "1.2.3.4, 10.0.0.1", "1.2.3.4:80, [::1]:80", ",,",
		"::ffff:1.2.3.4", "fe80::1%eth0", "x, 10.0.0.1", "10.0.0.1,10.0.0.2",
		strings.Repeat("1.2.3.4,", 200)} {
		f.Add([]byte(s), []byte("9.9.9.9"))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		lines := [][]byte{bytes.Clone(first), bytes.Clone(second)}
		got := forwarded(lines, trusted, peer)
		if !bytes.Equal(lines[0], first) || !bytes.Equal(lines[1], second) {
			t.Fatal("the lines are changed")
		}
		if !got.IsValid() || got.Is4In6() || got.Zone() != "" {
			t.Fatalf("%q and %q name %v", first, second, got)
		}
		// Text before an untrusted address is that client's own, and changes nothing.
		if !listen.Within(trusted, got) {
			prefixed := [][]byte{append([]byte("6.6.6.6, "), first...), second}
			if again := forwarded(prefixed, trusted, peer); again != got && again != peer {
				t.Fatalf("%q and %q name %v, and with an address before them %v", first, second,
					got, again)
			}
		}
	})
}
