package loadtest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/fasthttp/websocket"
)

// dialStream opens a websocket of the event stream. It retries a handshake that comes too soon,
// until ctx ends.
func dialStream(ctx context.Context, address, path string) (*websocket.Conn, error) {
	dialer := websocket.Dialer{ReadBufferSize: 32 << 10,
		NetDialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			return dial(network, address, dialTimeout)
		}}
	for {
		conn, resp, err := dialer.DialContext(ctx,
			"ws://"+address+path+"?EIO=4&transport=websocket", nil)
		switch {
		case err == nil:
			return conn, nil
		case resp == nil:
			return nil, err
		case resp.StatusCode != http.StatusTooManyRequests &&
			resp.StatusCode != http.StatusServiceUnavailable || ctx.Err() != nil:
			return nil, fmt.Errorf(
				"the handshake was answered with %s (limits are stream.connections and "+
					"stream.connections_per_address)", resp.Status)
		}
		pause(ctx, 200*time.Millisecond)
	}
}

const streamPath = "/socket.v2/"

// mostDialPatience bounds dialing a socket with its login.
const mostDialPatience = 30 * time.Second

// forSocket returns a context with the time limit for a socket with its login.
func (o *Options) forSocket(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, min(mostDialPatience, cmp.Or(o.Wait, usualWait)))
}

// dialOrders opens a socket that is logged in, for the generator. The websocket's buffer is empty
// then, because the server sends nothing more before a request or a ping.
func dialOrders(ctx context.Context, o *Options, address string, u *user) (net.Conn, error) {
	ctx, cancel := o.forSocket(ctx)
	defer cancel()
	conn, err := dialStream(ctx, address, streamPath)
	if err != nil {
		return nil, err
	}
	if err := logIn(ctx, conn, u); err != nil {
		conn.Close()
		return nil, err
	}
	return conn.NetConn(), conn.NetConn().SetDeadline(time.Time{})
}

// logIn joins the stream on a new websocket, and logs in with the user's key. The end of ctx closes
// the websocket.
func logIn(ctx context.Context, conn *websocket.Conn, u *user) error {
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := conn.WriteMessage(websocket.TextMessage, []byte("40")); err != nil {
		return err
	}
	answer, err := emit(conn, []byte(`420["challenge"]`))
	if err != nil {
		return err
	}
	var text []byte
	err = eachField(answer, func(name, v []byte) bool {
		if string(name) == "challenge" {
			text = v
		}
		return text == nil
	})
	if err != nil || text == nil {
		return fmt.Errorf("asking for a challenge was answered with %.200s", answer)
	}
	answer, err = emit(conn, u.loginEvent(text))
	if err == nil && !granted(answer) {
		err = fmt.Errorf("a login with the key %s was answered with %.300s", u.key, answer)
	}
	return err
}

// loginEvent makes the event that answers a challenge.
func (u *user) loginEvent(challenge []byte) []byte {
	b := append(append([]byte(`420["login",{"key":"`), u.key...), `","sign":"`...)
	b = newSigner().sign(b, &u.secret, append([]byte("login\n"), u.key...),
		append([]byte("\n"), challenge...))
	return append(b, `"}]`...)
}

// granted reports whether an answer to an account is of status 200.
func granted(answer []byte) bool { return bytes.HasPrefix(answer, []byte(`{"status":200,`)) }

// emit sends an event that is acknowledged by 0, and returns the acknowledgement's argument.
func emit(conn *websocket.Conn, event []byte) ([]byte, error) {
	if err := conn.WriteMessage(websocket.TextMessage, event); err != nil {
		return nil, err
	}
	for {
		_, b, err := conn.ReadMessage()
		if err != nil {
			return nil, err
		}
		if answer, ok := bytes.CutPrefix(b, []byte("430[")); ok {
			return bytes.TrimSuffix(answer, []byte("]")), nil
		}
	}
}
