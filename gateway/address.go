package gateway

import (
	"bytes"
	"net/netip"
	"unsafe"

	"github.com/valyala/fasthttp"
)

// address is where the request comes from: its peer, or whom a trusted proxy speaks for. Rate
// limits, the allow-lists of keys and the log go by it.
func (r *request) address() netip.Addr {
	if !r.from.IsValid() {
		r.from = r.g.address(r.ctx)
	}
	return r.from
}

func (g *Gateway) address(ctx *fasthttp.RequestCtx) netip.Addr {
	from, _ := netip.AddrFromSlice(ctx.RemoteIP())
	from = from.Unmap()
	if trusted := g.opts.TrustedProxies; within(trusted, from) {
		return forwarded(ctx.Request.Header.PeekAll("X-Forwarded-For"), trusted, from)
	}
	return from
}

func within(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// maxForwarded is how many bytes of X-Forwarded-For are looked at, counted from its end: a dozen of
// the longest addresses. No chain of proxies is that long.
const maxForwarded = 512

// forwarded is the client that a chain of proxies names; peer is the last of them. Each appends the
// address it was asked from, to the line it got or as a line of its own. So the list is read from
// its end: what a trusted proxy wrote is believed, and the first address that is no trusted proxy
// is the client. What stands before it is the client's own and may be anything. If all are trusted,
// it is the first of them. If there are none, or what a trusted proxy passed on is no address, it
// is the peer.
func forwarded(lines [][]byte, trusted []netip.Prefix, peer netip.Addr) netip.Addr {
	client, left := peer, maxForwarded
	for i := len(lines) - 1; i >= 0; i-- {
		line := lines[i]
		cut := len(line) > left
		line = line[max(0, len(line)-left):]
		left -= len(line)
		for len(line) > 0 {
			comma := bytes.LastIndexByte(line, ',')
			if comma < 0 && cut {
				return peer
			}
			entry := bytes.TrimSpace(line[comma+1:])
			line = line[:max(0, comma)]
			if len(entry) == 0 {
				continue // lists may have empty entries, which mean nothing
			}
			a, ok := parseForwarded(entry)
			if !ok {
				return peer
			}
			if client = a; !within(trusted, a) {
				return client
			}
		}
		if cut {
			return peer
		}
	}
	return client
}

// parseForwarded reads an address, with or without the port that some proxies add.
func parseForwarded(entry []byte) (netip.Addr, bool) {
	s := unsafe.String(unsafe.SliceData(entry), len(entry)) // nothing keeps it
	a, err := netip.ParseAddr(s)
	if err != nil {
		withPort, err := netip.ParseAddrPort(s)
		if err != nil {
			return netip.Addr{}, false
		}
		a = withPort.Addr()
	}
	return a.Unmap(), a.Zone() == ""
}
