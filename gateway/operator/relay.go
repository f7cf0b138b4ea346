package operator

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/actors/node"
	"exchange/gateway/api"
)

// A follower relays operators' requests to the leader, each over a connection of its own: an HTTP
// request with the operator's token, which the leader checks as usual. Long answers are streamed. A
// relayed request is never relayed again, and never sent twice.

const (
	// dialPatience bounds the wait for a connection to the leader.
	dialPatience = 5 * time.Second
	// leftAfter bounds the time for a former leader's answers, after its term.
	leftAfter = 10 * time.Second
	// answerHead bounds the head of an answer, with the first bytes of the body, in bytes.
	answerHead = 16 << 10
	// wholeAnswer is the length of an answer, in bytes, up to which it is buffered: the client gets
	// all of it or an error. Other answers are streamed, and break off with the connection.
	wholeAnswer = 1 << 20
	// originHeader holds the address or the user of the client at the relaying node.
	originHeader = "X-Operator-Origin"
)

// relayedHeaders are the headers of the leader's answer that are copied.
var relayedHeaders = []string{"Retry-After", "X-Leader", "X-Request-Id"}

// origin is the form of a client's address or user.
var origin = regexp.MustCompile(`^[A-Za-z0-9.:% ]{1,64}$`)

// OriginOf returns the address or user of a relayed request's client, as the relaying node sent it.
func OriginOf(h *fasthttp.RequestHeader) string {
	if text := h.Peek(originHeader); origin.Match(text) {
		return string(text)
	}
	return "elsewhere"
}

// tokenMismatch is the error text for a relayed request whose token differs from this node's.
func (s *Server) tokenMismatch(node string) string {
	return fmt.Sprintf("node %s refuses the operator's token that node %s has forwarded: "+
		"give all nodes the same token", s.cluster.Standing().Node, node)
}

// relayOrRefuse serves a request at a follower: it relays the request to the leader, or writes an
// error response. It returns false, without writing, if this node is no follower.
func (s *Server) relayOrRefuse(ctx *fasthttp.RequestCtx, from Peer) bool {
	standing, follows := s.Follows()
	switch {
	case !follows || standing.Leads():
		return false
	case standing.Leader == "" || from.Node != "":
		s.refuseStarting(ctx, "")
	default:
		s.relay(ctx, from, standing.Leader)
	}
	return true
}

// relay sends a request to the leader, and writes its answer.
func (s *Server) relay(ctx *fasthttp.RequestCtx, from Peer, leader string) {
	token := string(ctx.Request.Header.Peek("Authorization"))
	if from.Socket {
		relayToken := s.relayToken.Load()
		if *relayToken == "" {
			s.refuseStarting(ctx, " This node has no operator's token to show there: give all "+
				"nodes the same one, or ask the node that leads.")
			return
		}
		token = "Bearer " + *relayToken
	}
	if s.openRelays.Add(1) > node.OperatorsAtOnce {
		s.openRelays.Add(-1)
		Fail(ctx, api.Overloaded, "")
		return
	}
	patience, cancel := within(dialPatience)
	conn, err := s.cluster.Dial(patience, leader)
	cancel()
	if err != nil {
		s.openRelays.Add(-1)
		s.refuseStarting(ctx, " "+err.Error())
		return
	}
	r := &relayedRequest{server: s, conn: conn, over: make(chan struct{})}
	go r.watch(leader)
	if err = r.ask(ctx, from, token); err == nil {
		err = r.answer(ctx)
	}
	if err != nil {
		r.Close()
		refuseUnanswered(ctx, leader)
	}
}

// refuseUnanswered writes the response for a relayed request without an answer.
func refuseUnanswered(ctx *fasthttp.RequestCtx, leader string) {
	text := fmt.Sprintf("the connection to node %s, the leader, was lost", leader)
	if ctx.IsPost() {
		refuse(ctx, fasthttp.StatusServiceUnavailable, outcomeUnknown+": "+text)
		return
	}
	ctx.Response.Header.Set("Retry-After", "1")
	refuse(ctx, fasthttp.StatusServiceUnavailable, text)
}

// A relayedRequest is a request to the leader, and the reader of a long answer's body.
type relayedRequest struct {
	server *Server
	conn   net.Conn
	body   io.Reader // of the answer
	once   sync.Once
	over   chan struct{} // closed by Close
}

// Read reads the answer's body.
func (r *relayedRequest) Read(b []byte) (int, error) { return r.body.Read(b) }

// Close closes the connection, which stops the leader's work for the answer.
func (r *relayedRequest) Close() error {
	r.once.Do(func() {
		close(r.over)
		r.conn.Close()
		r.server.openRelays.Add(-1)
	})
	return nil
}

// watch closes the connection once the node at its other end has not led for leftAfter: that node
// may hang, or be disconnected.
func (r *relayedRequest) watch(leader string) {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for led := time.Now(); time.Since(led) < leftAfter; {
		select {
		case <-r.over:
			return
		case <-look.C:
		}
		if r.server.cluster.Standing().Leader == leader {
			led = time.Now()
		}
	}
	r.conn.Close()
}

// ask sends the parts of the request that handlers read.
func (r *relayedRequest) ask(ctx *fasthttp.RequestCtx, from Peer, token string) error {
	var q fasthttp.Request
	q.Header.SetMethodBytes(ctx.Method())
	q.SetRequestURIBytes(ctx.URI().RequestURI())
	q.Header.SetHost("operator")
	q.Header.Set("Authorization", token)
	q.Header.SetBytesV("X-Operator", ctx.Request.Header.Peek("X-Operator"))
	q.Header.Set(originHeader, from.Origin)
	q.SetBodyRaw(ctx.PostBody())
	if err := r.conn.SetDeadline(time.Now().Add(StreamTimeout)); err != nil {
		return err
	}
	w := bufio.NewWriter(r.conn)
	return errors.Join(q.Write(w), w.Flush())
}

// answer copies the leader's answer to the client. After an error the client has received nothing.
func (r *relayedRequest) answer(ctx *fasthttp.RequestCtx) error {
	head := &io.LimitedReader{R: r.conn, N: answerHead}
	got, err := http.ReadResponse(bufio.NewReader(head), nil)
	if err != nil {
		return err
	}
	head.N = math.MaxInt64
	r.body = got.Body
	var whole []byte
	switch n := got.ContentLength; {
	case got.StatusCode < 200, n < 0 && len(got.TransferEncoding) == 0:
		return errors.New("the answer has no length and is not chunked")
	case n >= 0 && n <= wholeAnswer:
		whole = make([]byte, n)
		if _, err := io.ReadFull(r, whole); err != nil {
			return err
		}
	}
	ctx.SetStatusCode(got.StatusCode)
	ctx.SetContentType(got.Header.Get("Content-Type"))
	for _, name := range relayedHeaders {
		if value := got.Header.Get(name); value != "" {
			ctx.Response.Header.Set(name, value)
		}
	}
	if whole != nil {
		r.Close()
		ctx.SetBody(whole)
		return nil
	}
	ctx.SetBodyStream(r, int(got.ContentLength))
	return nil
}
