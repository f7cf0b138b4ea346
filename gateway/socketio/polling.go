package socketio

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// A poll is a GET that is held until there is something to send. After its release the poll fetches
// its answer itself.
type poll struct {
	released bool
	done     chan struct{} // closed by the release
	// the poll arrived during an upgrade. If the upgrade completes before the poll returns, the
	// poll is answered as if it had arrived after the upgrade
	late bool
}

// release lets the poll be answered, if there is one. mu is held.
func (x *session) release() {
	if p := x.poll; p != nil && !p.released {
		p.released = true
		close(p.done)
	}
}

// get answers a poll.
func (x *session) get(ctx *fasthttp.RequestCtx) failure {
	x.mu.Lock()
	x.overdue()
	switch {
	case x.closed.Load():
		x.unlock()
		return x.server.afterClose(ctx, x.id)
	case x.link != nil:
		x.mu.Unlock()
		return badRequest
	case x.poll != nil:
		x.endFor(OverlappingPolls)
		x.unlock()
		return badRequest
	}
	p := &poll{done: make(chan struct{}), late: x.candidate != nil}
	x.poll = p
	if x.out.empty() {
		x.mu.Unlock()
		<-p.done
		x.mu.Lock()
	}
	x.poll = nil
	if p.late && x.link != nil {
		x.unlock()
		return badRequest
	}
	// otherwise the packets would be lost unnoticed
	if x.link == nil && !x.out.empty() && !alive(ctx.Conn()) {
		x.end(TransportClose, nil)
	}
	answerPoll(ctx, x.pollBody())
	x.unlock()
	return none
}

// pollBody returns the answer to a poll: the packets that wait, and the session's end. mu is held.
func (x *session) pollBody() (body []byte) {
	if x.link == nil {
		body = x.out.poll(nil, x.server.opts.MaxPayload)
		x.progress, x.excused = x.server.now(), false
		x.countWrite(len(body))
	}
	if x.closed.Load() && x.reason != ClientClose {
		body = appendPoll(body, textFrame, []byte{engineClose})
	}
	if len(body) == 0 { // the websocket has taken over, or is about to
		body = append(body, engineNoop)
	}
	x.schedule()
	return body
}

// answerPoll answers a GET.
func answerPoll(ctx *fasthttp.RequestCtx, body []byte) {
	ctx.SetContentType("text/plain; charset=UTF-8")
	ctx.Response.Header.Set("Cache-Control", "no-store")
	ctx.Response.SetBodyRaw(body)
}

// afterClose answers a poll of a closed session.
func (s *Server) afterClose(ctx *fasthttp.RequestCtx, id string) failure {
	if !s.crossings.take(id, s.now()) {
		return unknownSession
	}
	answerPoll(ctx, []byte{engineNoop})
	return none
}

// receiveAll handles the packets of a POST.
func (x *session) receiveAll(body []byte) error {
	if !x.take(0, len(body)) {
		return violation(TooManyMessages)
	}
	return x.handle(func() error { return split(body, x.packet) })
}

// endPost ends a POST, and for an error the session.
func (x *session) endPost(err error) {
	x.mu.Lock()
	defer x.unlock()
	x.posting = false
	if err == violation(ClientClose) && !x.closed.Load() && x.link == nil && x.poll == nil {
		s := x.server
		s.crossings.add(x.id, s.now()+int64(s.opts.crossingTime))
	}
	if err != nil {
		x.endFor(reasonOf(err))
	}
}

// post takes packets from the client.
func (x *session) post(ctx *fasthttp.RequestCtx) failure {
	body := ctx.PostBody()
	if len(body) > x.server.opts.MaxPayload {
		return bodyTooLarge
	}
	x.mu.Lock()
	x.overdue()
	switch {
	case x.closed.Load():
		x.unlock()
		return unknownSession
	case x.link != nil:
		x.mu.Unlock()
		return badRequest
	case x.posting:
		x.endFor(OverlappingPolls)
		x.unlock()
		return badRequest
	}
	x.posting = true
	x.mu.Unlock()

	var err error
	if bytes.HasPrefix(ctx.Request.Header.ContentType(), []byte("application/octet-stream")) {
		err = errPacket
	} else {
		err = x.receiveAll(body)
	}

	x.endPost(err)
	if err != nil && err != violation(ClientClose) {
		return badRequest
	}
	ctx.SetContentType("text/html")
	ctx.SetBodyString("ok")
	return none
}
