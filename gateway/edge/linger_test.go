//go:build prove

package edge_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"exchange/gateway"
	"exchange/gateway/edge"
	"exchange/gateway/listen"
	"exchange/prove/harness"
)

// A door is a listener of a gateway without an engine.
type door struct {
	gateway *gateway.Gateway
	places  *listen.Places
	address string
	secure  *tls.Config // nil: plain
	path    string
	answer  string // to a body that is too large
	headers [][2]string
}

const (
	largest  = 64 << 10
	tooLong  = 5_000_000 // bytes: a client may send all of them before it reads the answer
	fewTimes = 10
)

// doors calls f for each kind of listener.
func doors(t *testing.T, f func(t *testing.T, d *door)) {
	doorsOf(t, f, false, true)
}

// doorsOf calls f for the public listeners, the operator's, or both, with TLS and without.
func doorsOf(t *testing.T, f func(t *testing.T, d *door), operators ...bool) {
	a, _, certificate := harness.NewCertificate(t, time.Now().Add(harness.ADay), harness.Quiet())
	for _, secure := range []bool{false, true} {
		for _, operator := range operators {
			t.Run(fmt.Sprintf("operator=%v,TLS=%v", operator, secure), func(t *testing.T) {
				o := edge.Options{Log: harness.Quiet(), BodyBytes: largest, HeaderBytes: 8 << 10,
					Connections: 1000,
					ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
					OperatorToken: harness.OperatorToken}
				d := &door{path: "/api/v1/order",
					answer: harness.Detail("The body is larger than 65536 bytes.")}
				if secure {
					o.Certificate, o.OperatorCertificate = certificate, certificate
					d.secure = &tls.Config{RootCAs: a.Pool(), ServerName: "127.0.0.1"}
				}
				l := harness.Must(net.Listen("tcp", "127.0.0.1:0"))
				d.gateway, d.address = gateway.New(o), l.Addr().String()
				t.Cleanup(func() { d.gateway.Shutdown(time.Minute) })
				serve := d.gateway.Serve
				d.places = d.gateway.Public().Places
				if operator {
					serve, d.places = d.gateway.ServeOperator, d.gateway.Operators().Places
					d.path, d.answer = "/operator/v1/accounts",
						harness.Refusal("The body is larger than 65536 bytes.")
					d.headers = [][2]string{{"Authorization", "Bearer " + harness.OperatorToken}}
				}
				go serve(l) //nolint:errcheck // ends with the listener
				f(t, d)
			})
		}
	}
}

func (d *door) dial(t *testing.T) net.Conn {
	t.Helper()
	c := harness.Must(net.Dial("tcp", d.address))
	t.Cleanup(func() { c.Close() })
	harness.Worked(t, c.SetDeadline(time.Now().Add(30*time.Second)))
	if d.secure != nil {
		return tls.Client(c, d.secure)
	}
	return c
}

func (d *door) url() string {
	if d.secure != nil {
		return "https://" + d.address + d.path
	}
	return "http://" + d.address + d.path
}

func (d *door) head(fields string) string {
	text := "POST " + d.path + " HTTP/1.1\r\nHost: x\r\n" + fields
	for _, h := range d.headers {
		text += h[0] + ": " + h[1] + "\r\n"
	}
	return text + "\r\n"
}

// eventuallyFree wants all places back.
func (d *door) eventuallyFree() {
	harness.Spin(func() bool {
		open, lingering := d.places.Lingering()
		return open == 0 && lingering == 0
	})
}

// A client that sends all before it reads, as Python's does, learns why nothing was done.
func TestAClientThatSendsTooMuchCanReadTheAnswer(t *testing.T) {
	body := strings.Repeat("x", tooLong)
	doors(t, func(t *testing.T, d *door) {
		for name, x := range map[string]struct {
			text   string
			status int
		}{
			"a length": {d.head(fmt.Sprintf("Content-Length: %d\r\n", tooLong)) + body, 413},
			"chunks": {d.head("Transfer-Encoding: chunked\r\n") + fmt.Sprintf(
				"%x\r\n%s\r\n0\r\n\r\n", tooLong, body), 413},
			"a head":       {d.head("X-A: " + body + "\r\n"), 431},
			"a first line": {"GET /" + body + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
			"no request":   {"\x00\r\n\r\n" + body, 400},
			"not the token": {strings.Replace(
				d.head(fmt.Sprintf("Content-Length: %d\r\n", tooLong))+body,
				harness.OperatorToken, "wrong", 1), 0},
		} {
			if x.status == 0 {
				if x.status = 413; d.places == d.gateway.Operators().Places {
					x.status = 401
				}
			}
			for range fewTimes {
				c := d.dial(t)
				if _, err := io.WriteString(c, x.text); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if a := harness.Talk(t, c, "POST", ""); a.Status != x.status ||
					x.status == 413 && strings.TrimSpace(a.Body) != d.answer {
					t.Errorf("%s: %d %s", name, a.Status, a.Body)
				}
				c.Close()
			}
		}
		d.eventuallyFree()
	})
}

// The test checks the answer as read by the proxy, which is a client of Go. Its own server may
// close a connection while its client still sends, so that the client may see a reset instead.
func TestProxiesReadTheAnswerToABodyThatIsTooLarge(t *testing.T) {
	doors(t, func(t *testing.T, d *door) {
		transport := &http.Transport{TLSClientConfig: d.secure, ExpectContinueTimeout: time.Minute}
		t.Cleanup(transport.CloseIdleConnections)
		backend := harness.Must(url.Parse(d.url()))
		read := make(chan string, 1) // by the proxy: the fault of an answer
		proxy := httptest.NewServer(&httputil.ReverseProxy{Transport: transport,
			Rewrite: func(r *httputil.ProxyRequest) {
				r.Out.URL = backend
			}, ModifyResponse: func(resp *http.Response) error {
				read <- d.tooLarge(resp)
				return nil
			}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
				read <- err.Error()
			}})
		t.Cleanup(proxy.Close)
		d.eachTooLarge(t, proxy.URL, func(what string, r *http.Request) {
			if resp, err := transport.RoundTrip(r); err == nil {
				resp.Body.Close()
			}
			if problem := <-read; problem != "" {
				t.Errorf("%s: %s", what, problem)
			}
		})
	})
}

// eachTooLarge sends bodies that are too large, of a declared length or in chunks, at once or after
// a 100 Continue.
func (d *door) eachTooLarge(t *testing.T, at string, send func(what string, r *http.Request)) {
	t.Helper()
	for _, expect := range []string{"", "100-continue"} {
		for _, declared := range []int64{tooLong, -1} {
			for range fewTimes {
				r := harness.Must(http.NewRequest("POST", at, io.LimitReader(endless{}, tooLong)))
				r.ContentLength = declared
				for _, h := range d.headers {
					r.Header.Set(h[0], h[1])
				}
				if expect != "" {
					r.Header.Set("Expect", expect)
				}
				send(fmt.Sprintf("%d bytes, %q", declared, expect), r)
			}
		}
	}
}

// tooLarge returns the fault of the answer to a body that is too large, if any. The body that it
// leaves can be read again.
func (d *door) tooLarge(resp *http.Response) string {
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(text))
	if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge ||
		strings.TrimSpace(string(text)) != d.answer {
		return fmt.Sprintf("%d %s, %v", resp.StatusCode, text, err)
	}
	return ""
}

// endless has any number of bytes.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	return copy(p, bytes.Repeat([]byte{'x'}, len(p))), nil
}

func TestNodeReadsTheAnswerToABodyThatIsTooLarge(t *testing.T) {
	doorsOf(t, func(t *testing.T, d *door) {
		c := exec.Command("node", "testdata/clients/too_large.mjs", d.url(), fmt.Sprint(tooLong),
			fmt.Sprint(fewTimes))
		c.Env = append(os.Environ(), "NODE_TLS_REJECT_UNAUTHORIZED=0", "NODE_NO_WARNINGS=1")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if len(lines) != 4*fewTimes {
			t.Errorf("%d answers", len(lines))
		}
		for _, line := range lines {
			if !strings.HasSuffix(line, ": 413 "+d.answer) {
				t.Error(line)
			}
		}
	}, false) // nothing of Node's speaks to the operator's listener
}

// A client that asks before sending gets its refusal at once: nothing comes before the answer, and
// the body is not waited for.
func TestABodyThatIsTooLargeIsNotAskedFor(t *testing.T) {
	doors(t, func(t *testing.T, d *door) {
		for _, length := range []int{largest + 1, 1 << 40} {
			c := d.dial(t)
			if _, err := io.WriteString(c,
				d.head(fmt.Sprintf("Expect: 100-continue\r\nContent-Length: %d\r\n",
					length))); err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(c)
			if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 413 ") ||
				!strings.HasSuffix(strings.TrimSpace(string(text)), d.answer) {
				t.Errorf("%q, %v", text, err)
			}
		}
		if d.places == d.gateway.Operators().Places { // without the token no body is asked for
			c := d.dial(t)
			if _, err := io.WriteString(c, "POST "+d.path+" HTTP/1.1\r\nHost: x\r\n"+
				"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(c); err != nil ||
				!strings.HasPrefix(string(text), "HTTP/1.1 401 ") {
				t.Errorf("%q, %v", text, err)
			}
		}
		c := d.dial(t)
		if _, err := io.WriteString(c,
			d.head(fmt.Sprintf("Expect: 100-continue\r\nContent-Length: %d\r\n", largest))); err !=
			nil {
			t.Fatal(err)
		}
		const declared = "HTTP/1.1 100 Continue\r\n\r\n"
		got := make([]byte, len(declared))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != declared {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A client that never stops sending is closed, and so is a client that never hangs up. Neither
// keeps another client out meanwhile.
func TestALingeringCloseIsBounded(t *testing.T) {
	doors(t, func(t *testing.T, d *door) {
		const most = 64 << 20 // the server's reading, and all buffers on the way
		d.places.SetPatience(time.Hour)
		c := d.dial(t)
		if _, err := io.WriteString(c, d.head("Content-Length: 1000000000\r\n")); err != nil {
			t.Fatal(err)
		}
		sent := 0
		for part := strings.Repeat("x", 1<<16); sent < most; sent += len(part) {
			if _, err := io.WriteString(c, part); err != nil {
				if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
					t.Error("it neither reads nor closes")
				}
				break
			}
		}
		if sent >= most {
			t.Errorf("%d bytes were read", sent)
		}
		d.eventuallyFree()
		d.places.SetPatience(50 * time.Millisecond)
		silent := d.dial(t)
		harness.Talk(t, silent, "POST", d.head("Content-Length: 1000000000\r\n")).Is(t, 413)
		d.eventuallyFree()
	})
}
