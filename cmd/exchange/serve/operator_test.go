package serve

import (
	"strings"
	"testing"

	"exchange/cmd/exchange/cli"
	"exchange/gateway/listen"
)

// If the system cannot name the user of a socket, no socket is made, and the start names the
// remedy.
func TestASocketIsForUsersThatTheSystemCanName(t *testing.T) {
	if !listen.Peers {
		t.Skip("this system names no users")
	}
	for _, x := range []struct {
		path string
		user int
		want string // "": a socket is possible
	}{
		{"/x/operator.sock", 0, ""},
		{"/x/operator.sock", 65532, ""},
		{"/" + strings.Repeat("x", maxSocketPath), 1000, "its path has 104 bytes"},
		{"/x/operator.sock", listen.OverflowUser(),
			"run it as another user, or set operator to an address"},
	} {
		err := mayHaveSocket(x.path, x.user)
		if (err == nil) != (x.want == "") ||
			err != nil && (!strings.Contains(err.Error(), x.want) ||
				cli.ExitCode(err) != cli.ExitUsage) {
			t.Errorf("user %d, %s: %v", x.user, x.path, err)
		}
	}
}
