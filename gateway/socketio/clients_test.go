package socketio

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/valyala/fasthttp"
)

// scripts/test installs its package.
func TestTheClientOfSocketIOsMakersWorksUnmodified(t *testing.T) {
	if _, err := os.Stat("clients/node_modules/socket.io-client"); err != nil {
		t.Fatal(
			"socket.io-client is not installed: run `npm ci --ignore-scripts` in " +
				"gateway/socketio/clients, or all tests by `make test`, which does it")
	}
	r := echo(t, Options{MessagesPerSecond: 10_000, MessagesBurst: 10_000,
		Allow: func(ctx *fasthttp.RequestCtx) error {
			if ctx.QueryArgs().Has("refuse") {
				return errors.New("refused")
			}
			return nil
		}})
	out, err := exec.Command("node", "clients/echo.mjs", "http://"+r.address).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
