package edge

import (
	"bytes"
	"net/netip"
	"unsafe"

	"github.com/valyala/fasthttp"

	"exchange/gateway/listen"
)

// addressOf returns the address of a request's client: the peer, or the client that a trusted proxy
// names.
func addressOf(ctx *fasthttp.RequestCtx, trusted []netip.Prefix) netip.Addr {
	from, _ := netip.AddrFromSlice(ctx.RemoteIP())
	from = from.Unmap()
	if listen.Within(trusted, from) {
		return forwarded(ctx.Request.Header.PeekAll("X-Forwarded-For"), trusted, from)
	}
	return from
}

// maxForwarded bounds the bytes of X-Forwarded-For that are read, counted from its end: a dozen of
// the longest addresses. No chain of proxies is that long.
const maxForwarded = 512

// forwarded returns the client that a chain of proxies names; peer is the last proxy. Each proxy
// appends the address of its client, to the received line or as a new line. So forwarded reads the
// list from its end. The first address that is no trusted proxy is the client; entries before it
// come from the client and may be forged. If all are trusted, the client is the first of the list.
// If the list is empty, or a trusted proxy added no address, the client is the peer.
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
				continue // lists may have empty entries, without a meaning
			}
			a, ok := parseForwarded(entry)
			if !ok {
				return peer
			}
			if client = a; !listen.Within(trusted, a) {
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
