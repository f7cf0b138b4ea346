package socketio

import (
	"strings"
	"testing"
	"testing/synctest"
)

// A proxy finds the server of a session by its id.
func TestTheNodeBeginsTheIDsOfItsSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{Node: "b"})
		p := r.polling()
		p.join()
		if _, o := r.open(); !strings.HasPrefix(p.sid, "b.") ||
			!strings.HasPrefix(o.Sid, "b.") || o.Sid == p.sid {
			t.Errorf("%q and %q", p.sid, o.Sid)
		}
		if alone := echo(t, Options{}).polling(); strings.Contains(alone.sid, ".") {
			t.Errorf("%q", alone.sid)
		}
	})
}
