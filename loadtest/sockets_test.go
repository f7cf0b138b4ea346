//go:build prove

package loadtest

import (
	"net"
	"testing"

	"exchange/loadtest/generator"
)

func init() {
	loopback := func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }
	for name, w := range map[string]way{
		"sockets":          {loopback, generator.New, net.DialTimeout, nil},
		"portable sockets": {loopback, portable, net.DialTimeout, nil},
	} {
		otherWays = append(otherWays, func(t *testing.T, test func(t *testing.T)) {
			t.Run(name, func(t *testing.T) {
				w.use()
				defer inMemory.use()
				test(t)
			})
		})
	}
}
