package api

import "exchange/core/event"

// Integer parses 1 to 19 digits.
func Integer(b []byte) (n uint64, ok bool) {
	if len(b) == 0 || len(b) > 19 {
		return 0, false
	}
	for _, c := range b {
		if c-'0' > 9 {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}

// PermissionName returns the name of one permission of a key.
func PermissionName(p uint8) string {
	switch p {
	case event.PermissionRead:
		return "read"
	case event.PermissionTrade:
		return "trade"
	case event.PermissionWithdraw:
		return "withdraw"
	}
	return "unknown"
}
