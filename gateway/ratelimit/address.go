package ratelimit

import (
	"encoding/binary"
	"net/netip"
)

// AddressKey is the client that an address stands for.
//
// An IPv4 address is one client. An IPv6 address counts by its first 64 bits: that much is one network
// link, whoever is on it may use any of its 2^64 addresses and changes them by himself for privacy, and
// providers give at least that much to every customer. Single addresses would be no limit at all. Who
// has more than a /64 has more buckets: there is no size that fits all, and a shorter prefix would count
// strangers as one.
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
	return binary.BigEndian.Uint64(b[:8])
}

// ipv4 keeps IPv4 addresses apart from IPv6 prefixes: it is a prefix of multicast addresses, which
// nobody comes from.
const ipv4 = 0xffff_ffff << 32
