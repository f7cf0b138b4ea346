package link

import (
	"errors"
	"net"
	"slices"
	"sync"
)

// maxArriving is how many connections may wait to be identified.
const maxArriving = 128

// errCrowd: a connection was closed before it was identified, because too many others came.
var errCrowd = errors.New("too many connections wait to be identified, and its host has most " +
	"of them")

// arriving are the connections that are not identified yet. Above the bound, the oldest of the host
// with most of them is closed: so a host that opens many, and sends nothing, keeps no other one
// out.
type arriving struct {
	mu   sync.Mutex
	list []arrival // the oldest first; guarded by mu
}

type arrival struct {
	conn net.Conn
	host string
}

// hostOf returns the address of the other side, without its port.
func hostOf(conn net.Conn) string {
	text := conn.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(text); err == nil {
		return host
	}
	return text
}

func (a *arriving) enter(conn net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, arrival{conn, hostOf(conn)})
	if len(a.list) <= maxArriving {
		return
	}
	of, most := map[string]int{}, ""
	for _, x := range a.list {
		if of[x.host]++; of[x.host] > of[most] {
			most = x.host
		}
	}
	i := slices.IndexFunc(a.list, func(x arrival) bool { return x.host == most })
	a.list[i].conn.Close()
	a.list = slices.Delete(a.list, i, i+1)
}

// leave removes a connection, and reports whether it was still listed.
func (a *arriving) leave(conn net.Conn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := len(a.list)
	a.list = slices.DeleteFunc(a.list, func(x arrival) bool { return x.conn == conn })
	return len(a.list) < n
}
