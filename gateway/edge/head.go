package edge

import (
	"bytes"
	"net/netip"

	"github.com/valyala/fasthttp"
)

// The server below compares some values of a head case-sensitively, reads a list only in its last
// field, and needs a Host that it understands. HTTP is more lenient.

// asMeant normalises a head to HTTP's rules, before the server acts on it.
func asMeant(h *fasthttp.RequestHeader) (unchanged fasthttp.RequestConfig) {
	keepOrClose(h)
	if expected := listOf(h, "Expect"); len(expected) > 0 {
		if h.Del("Expect"); h.IsHTTP11() && hasMember(expected, expectContinue) {
			h.SetBytesV("Expect", expectContinue) // a client of 1.0 would not understand the answer
		}
	}
	if host := h.Host(); len(host) == 0 || isBareIPv6(host) && isStream(pathOf(h)) {
		h.SetHost("exchange") // no answer depends on it
	}
	return unchanged
}

var (
	expectContinue = []byte("100-continue")
	optionClose    = []byte("close")
	optionKeep     = []byte("keep-alive")
)

// keepOrClose decides whether the client wants the connection closed after the answer. The fields
// are read as they came, because the server forgets a close before another field.
func keepOrClose(h *fasthttp.RequestHeader) {
	if h.IsHTTP11() && (h.ConnectionClose() || len(h.Peek("Connection")) == 0) {
		return // there is nothing else to decide
	}
	closes, keeps := false, h.IsHTTP11()
	for line := range bytes.SplitSeq(h.RawHeaders(), []byte{'\n'}) {
		name, options, _ := bytes.Cut(line, []byte{':'})
		if len(name) == len("Connection") && bytes.EqualFold(name, []byte("Connection")) {
			closes = closes || hasMember(options, optionClose)
			keeps = keeps || hasMember(options, optionKeep)
		}
	}
	if closes || !keeps {
		h.SetConnectionClose()
	} else {
		h.ResetConnectionClose()
	}
}

// isBareIPv6 reports whether a Host is an address of IPv6 without brackets, with a port or without:
// Engine.IO's polling sends it so. No reader can distinguish the two.
func isBareIPv6(host []byte) bool {
	if bytes.Count(host, []byte{':'}) < 2 || host[0] == '[' {
		return false
	}
	address, err := netip.ParseAddr(string(host))
	if err != nil { // eight groups, and the port
		address, err = netip.ParseAddr(string(host[:bytes.LastIndexByte(host, ':')]))
	}
	return err == nil && address.Is6()
}

// pathOf returns the path of a head that was not parsed further.
func pathOf(h *fasthttp.RequestHeader) []byte {
	path, _, _ := bytes.Cut(h.RequestURI(), []byte{'?'})
	return unescaped(path)
}

// isHost reports whether the server takes a Host.
func isHost(host []byte) bool {
	var u fasthttp.URI
	return u.Parse(host, []byte{'/'}) == nil
}

// listOf joins the fields of a name into one list.
func listOf(h *fasthttp.RequestHeader, name string) []byte {
	lines := h.PeekAll(name)
	if len(lines) == 1 {
		return lines[0]
	}
	return bytes.Join(lines, []byte{','})
}

// has reports whether the client already has the version of a tag: it names the tag, or "*" for
// any.
func (r *request) has(tag string) bool {
	list := listOf(&r.ctx.Request.Header, "If-None-Match")
	return bytes.Contains(list, []byte(tag)) || bytes.Equal(bytes.TrimSpace(list), []byte{'*'})
}

// hasMember reports whether a list names a member, in either case.
func hasMember(list, member []byte) bool {
	for m := range bytes.SplitSeq(list, []byte{','}) {
		if bytes.EqualFold(bytes.TrimSpace(m), member) {
			return true
		}
	}
	return false
}
