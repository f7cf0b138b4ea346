//go:build prove

package edge_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"

	"exchange/gateway"
	"exchange/gateway/edge"
	"exchange/gateway/listen"
	"exchange/prove/harness"
)

// onSocket serves the operator's API on a socket that every user may connect to, and returns its
// path.
func onSocket(t *testing.T, g *gateway.Gateway) string {
	t.Helper()
	folder := t.TempDir()
	for _, f := range []string{folder, filepath.Dir(folder)} {
		harness.Worked(t, os.Chmod(f, 0o755))
	}
	path := filepath.Join(folder, "operator.sock")
	l := harness.Must(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}))
	t.Cleanup(func() { l.Close() })
	harness.Worked(t, os.Chmod(path, 0o777))
	go g.ServeOperator(l) //nolint:errcheck // ends with the listener
	return path
}

// askSocket sends one request over a socket.
func askSocket(t *testing.T, c net.Conn, method, path, body string) (status int, text string) {
	t.Helper()
	if _, err := fmt.Fprintf(c,
		"%s %s HTTP/1.1\r\nHost: operator\r\nX-Operator: olga\r\nContent-Length: %d\r\n\r\n%s",
		method, path, len(body), body); err != nil {
		t.Fatal(err)
	}
	var resp fasthttp.Response
	harness.Worked(t, resp.Read(bufio.NewReader(c)))
	return resp.StatusCode(), string(resp.Body())
}

func dialSocket(t *testing.T, path string) net.Conn {
	t.Helper()
	c := harness.Must(net.Dial("unix", path))
	t.Cleanup(func() { c.Close() })
	return c
}

// The kernel names the user: no token is needed, and the log of actions has the user.
func TestOverTheSocketTheUserCountsAndNoTokenIsNeeded(t *testing.T) {
	h := harness.New(t, nil)
	c := dialSocket(t, onSocket(t, h.Gateway))
	// longer than strangers may send
	body := fmt.Sprintf(`{"name":"carol","email":%q}`, strings.Repeat("x", 50)+"@example.org")
	if status, text := askSocket(t, c, "POST", "/operator/v1/accounts", body); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	if status, text := askSocket(t, c, "GET", "/operator/v1/actions", ""); status != 200 ||
		!strings.Contains(text, fmt.Sprintf("olga from user id %d", os.Geteuid())) {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := askSocket(t, c, "GET", edge.MetricsPath, ""); status != 200 {
		t.Errorf("metrics: %d", status)
	}
}

// Only the exchange's own user and root may: other users get a refusal, and nothing is done.
func TestOverTheSocketOtherUsersMayDoNothing(t *testing.T) {
	const stranger = 65534
	for _, x := range []struct {
		user  int
		known bool
		may   bool
	}{{0, true, true}, {os.Geteuid(), true, true}, {stranger, true, false}, {0, false, false}} {
		if got := (listen.User{ID: x.user, HasID: x.known}).MayOperate(); got != x.may {
			t.Errorf("%+v: %v", x, got)
		}
	}
	if os.Geteuid() != 0 {
		t.Log(
			"this test does not run as root, so no other user connects: only the decision was " +
				"tested")
		return
	}
	h := harness.New(t, nil)
	before, path := h.Hash(), onSocket(t, h.Gateway)
	for _, token := range []string{"", harness.OperatorToken} {
		c := dialAs(t, path, stranger)
		request := "POST /operator/v1/accounts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " +
			token + "\r\nContent-Length: 16\r\n\r\n" + `{"name":"mallory"`[:16]
		if _, err := c.Write([]byte(request)); err != nil {
			t.Fatal(err)
		}
		var resp fasthttp.Response
		harness.Worked(t, resp.Read(bufio.NewReader(c)))
		if resp.StatusCode() != 403 ||
			!strings.Contains(string(resp.Body()), "user id 65534 may not operate") {
			t.Errorf("%d %s", resp.StatusCode(), resp.Body())
		}
	}
	h.StillAt(before)
}

// For other users the head of a request is read, and no body.
func TestOverTheSocketNoBodyOfOtherUsersIsRead(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can connect as another user")
	}
	h := harness.New(t, nil)
	c := dialAs(t, onSocket(t, h.Gateway), 65533)
	if _, err := fmt.Fprintf(c,
		"POST /operator/v1/accounts HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n%s",
		strings.Repeat("x", 20_000)); err != nil {
		t.Fatal(err)
	}
	var resp fasthttp.Response // the rest does not come
	harness.Worked(t, resp.Read(bufio.NewReader(c)))
	if resp.StatusCode() != 403 ||
		!strings.Contains(string(resp.Body()), "user id 65533 may not operate") {
		t.Errorf("%d %s", resp.StatusCode(), resp.Body())
	}
}

// dialAs connects as another user: the kernel records that of the thread.
func dialAs(t *testing.T, path string, user int) net.Conn {
	t.Helper()
	made := make(chan net.Conn)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		defer close(made)
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Error(err)
			return
		}
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(user), uintptr(user),
			uintptr(user)); errno != 0 {
			t.Error(errno)
			return
		}
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
			t.Error(err)
			return
		}
		file := os.NewFile(uintptr(fd), path)
		defer file.Close()
		if c, err := net.FileConn(file); err != nil {
			t.Error(err)
		} else {
			made <- c
		}
	}()
	c := <-made
	if c == nil {
		t.FailNow()
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A user of a node's socket has no token. The node shows its own.
func TestANodeShowsItsTokenForUsersOfItsSocket(t *testing.T) {
	p := harness.NewPassing(t)
	for token, status := range map[string]int{harness.OperatorToken: 200, "": 503} {
		g := p.Node(token)
		path := t.TempDir() + "/s"
		l := harness.Must(net.Listen("unix", path))
		t.Cleanup(func() { l.Close() })
		go g.ServeOperator(l) //nolint:errcheck // ends with the listener
		c := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				return net.Dial("unix", path)
			}}}
		resp := harness.Must(c.Get("http://operator/operator/v1/accounts"))
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		refused := resp.Header.Get("X-Leader") == "https://a.example.org" &&
			strings.Contains(string(body), "no operator's token")
		if err != nil || resp.StatusCode != status || refused != (status == 503) {
			t.Errorf("%d %s %v", resp.StatusCode, body, err)
		}
	}
}

// A leader whose operators use a socket refuses another node's wrong token as such, also before it
// reads a body.
func TestALeaderWithASocketRefusesAnotherNodesToken(t *testing.T) {
	p := harness.NewPassing(t)
	c := dialSocket(t, onSocket(t, p.Gateway))
	if status, text := askSocket(t, c, "GET", "/operator/v1/accounts", ""); status != 200 {
		t.Fatal(status, text)
	}
	const other = "another-token-of-the-tests"
	a := harness.AsOperator(t, p.Node(other))("POST", "/operator/v1/accounts",
		`{"name":"mallory"}`, "Authorization: Bearer "+other)
	if a.Status != 401 || !strings.Contains(a.Body, "give all nodes the same token") {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}
