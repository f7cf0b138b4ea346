//go:build prove

package socketio

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/valyala/fasthttp"
)

// loopback is a listener of the system, in place of another one.
func loopback(net.Listener) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	return smallListener{l}
}

func TestOfficialSocketIOClientWorks(t *testing.T) {
	if _, err := os.Stat("../../prove/node_modules/socket.io-client"); err != nil {
		t.Fatal("socket.io-client is not installed: run `npm ci --ignore-scripts` in prove, or " +
			"`make smoke`, which does it")
	}
	r := echo(t, Options{MessagesPerSecond: 10_000, MessagesBurst: 10_000,
		Allow: func(ctx *fasthttp.RequestCtx) error {
			if ctx.QueryArgs().Has("refuse") {
				return errors.New("refused")
			}
			return nil
		}}, loopback)
	out, err := exec.Command("node", "../../prove/clients/echo.mjs", "http://"+r.address).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
