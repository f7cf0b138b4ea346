package ratelimit

import (
	"encoding/binary"
	"net/netip"
)

// networkBits is the number of bits of an IPv6 address that name a client's network. A provider
// gives each customer a /64 at least, and often a /56. The customer may use any address below it,
// and changes addresses for privacy. A shorter prefix would count strangers as one client. The
// owner of a larger network has more buckets.
const networkBits = 56

// Network returns the client that an address stands for in all limits by address: the IPv4 address
// itself, or the /56 network of an IPv6 address.
func Network(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if a.Is6() {
		if p, err := a.WithZone("").Prefix(networkBits); err == nil {
			return p.Addr()
		}
	}
	return a
}

// AddressKey returns Network as a number.
func AddressKey(a netip.Addr) uint64 {
	a = a.Unmap()
	switch {
	case !a.IsValid():
		return 0
	case a.Is4():
		b := a.As4()
		return ipv4 | uint64(binary.BigEndian.Uint32(b[:]))
	}
	b := a.As16()
	return binary.BigEndian.Uint64(b[:8]) >> (64 - networkBits) << (64 - networkBits)
}

// ipv4 keeps IPv4 addresses apart from IPv6 prefixes: it is a prefix of multicast addresses, from
// which no client connects.
const ipv4 = 0xffff_ffff << 32
