package operator

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/gateway/api"
)

// Options are the parts of a Server.
type Options struct {
	Log       *slog.Logger
	Token     string       // bearer token; SetToken changes it
	Commit    string       // commit of the program's build; "": unknown
	Archive   Archive      // archive of the journal; nil: none
	Cluster   Cluster      // nil: the exchange runs on one machine
	TaskStore TaskStore    // keeps the results of the last backup and audit
	Reloader  Reloader     // reloads the configuration; nil: unsupported
	Clock     func() int64 // nanoseconds of a monotonic clock
}

// A Server serves operators' requests, in JSON; an error is {"error": "..."}. Any goroutine may use
// it.
type Server struct {
	log      *slog.Logger
	archive  Archive
	cluster  Cluster
	reloader Reloader
	commit   string
	began    time.Time
	tasks    tasks
	token    Token
	guesses  *guesses
	// name of the store's owner, for whose end a standby waits; nil: the process is no standby
	standby       atomic.Pointer[string]
	follows       atomic.Bool  // this node is a follower
	servesClients atomic.Bool  // a follower serves clients
	openRelays    atomic.Int64 // relayed requests without a complete answer
	// bearer token of relayed requests that came over this node's socket; "": none
	relayToken atomic.Pointer[string]
	// document returns the OpenAPI document, which is made once.
	document func() []byte
}

// New makes a server.
func New(o Options) *Server {
	s := &Server{log: o.Log, archive: o.Archive, cluster: o.Cluster,
		reloader: o.Reloader, commit: o.Commit, began: time.Now(), guesses: newGuesses(o.Clock),
		document: sync.OnceValue(newDocument)}
	s.tasks.restore(o.TaskStore, o.Log)
	s.SetToken(o.Token)
	return s
}

// SetStandby sets the name of the store's owner, for whose end this standby waits; "": the process
// is no standby.
func (s *Server) SetStandby(owner string) {
	if owner == "" {
		s.standby.Store(nil)
		return
	}
	s.standby.Store(&owner)
}

// SetFollower sets whether this node is a follower, which has no engine, and whether it serves
// clients as one.
func (s *Server) SetFollower(follows, serves bool) {
	s.follows.Store(follows)
	s.servesClients.Store(serves)
}

// Follows returns a follower's view of the cluster; false: this node is not a follower.
func (s *Server) Follows() (Standing, bool) {
	if !s.follows.Load() {
		return Standing{}, false
	}
	return s.cluster.Standing(), true
}

// StandsBy reports whether this process waits while another one serves.
func (s *Server) StandsBy() bool { return s.standby.Load() != nil || s.follows.Load() }

// A Peer is the client of a request, as seen by the listener.
type Peer struct {
	Origin  string     // connection's address or user, for the log of actions
	Address netip.Addr // of the client, or of a trusted proxy's client
	Node    string     // node that relayed the request; "": not relayed
	Socket  bool       // the request came over the operator's socket
	User    int        // id of the socket's user
	Allowed bool       // the socket's user may operate the exchange
}

// Admit returns true if a client may operate the exchange; otherwise false, after writing an error
// response. Over the operator's socket the user decides, otherwise the token. A right token is
// never throttled; wrong tokens are limited by address, also those from this machine.
func (s *Server) Admit(ctx *fasthttp.RequestCtx, from Peer) bool {
	switch {
	case from.Socket && from.Allowed, !from.Socket && s.token.Shown(&ctx.Request.Header):
		return true
	case from.Socket:
		ctx.SetConnectionClose()
		refuse(ctx, fasthttp.StatusForbidden, fmt.Sprintf(
			"user id %d may not operate this exchange: its own user (id %d) and root may",
			from.User, os.Geteuid()))
		return false
	case from.Node != "":
		s.RefuseToken(ctx, from.Address, s.tokenMismatch(from.Node))
		return false
	}
	s.RefuseToken(ctx, from.Address, "the bearer token is missing or wrong")
	return false
}

// Serve runs a request that Admit has admitted. engine is nil until the exchange has started. The
// returned error is a failure of this process, for the caller's log.
func (s *Server) Serve(ctx *fasthttp.RequestCtx, engine *actors.Engine, from Peer) error {
	name := string(ctx.Method()) + " " + strings.TrimSuffix(string(ctx.Path()), "/")
	route, found := routes()[name]
	switch {
	case !found:
		refuse(ctx, fasthttp.StatusNotFound,
			"there is no "+string(ctx.Method())+" "+string(ctx.Path()))
		return nil
	case route.servedBy == byReceiver:
	case s.relayOrRefuse(ctx, from):
		return nil
	case engine == nil && route.servedBy == byEngine:
		s.refuseStarting(ctx, "")
		return nil
	}
	var err error
	if route.servedBy == byEngine {
		err = engine.Confirmed() // fails if another process may own the store
	}
	if err == nil {
		var answer any
		c := &call{server: s, engine: engine, ctx: ctx, operator: nameOf(ctx, from)}
		if answer, err = route.handle(c); err == nil {
			Answer(ctx, fasthttp.StatusOK, answer)
			return nil
		}
		if errors.Is(err, errStreamed) {
			return nil
		}
	}
	return fail(ctx, err)
}

// operatorName bounds the name that a client may give itself.
var operatorName = regexp.MustCompile(`^[A-Za-z0-9._@+-]{1,64}$`)

// nameOf returns the operator's name for the log of actions: the name in X-Operator, the client's
// address or user, and the relaying node. X-Operator is unverified: only the token or the user
// permits the action.
func nameOf(ctx *fasthttp.RequestCtx, from Peer) string {
	name := ctx.Request.Header.Peek("X-Operator")
	if !operatorName.Match(name) {
		name = []byte("operator")
	}
	if from.Node != "" {
		return string(name) + " from " + from.Origin + " through node " + from.Node
	}
	return string(name) + " from " + from.Origin
}

// A failureAnswer is the body of an error response.
type failureAnswer struct {
	Damaged bool     `json:"damaged,omitempty" doc:"Stored data is damaged: do not try again"`
	Error   string   `json:"error" doc:"What was wrong, and what to do"`
	Orders  []uint64 `json:"orders,omitempty" doc:"Ids of those that were cancelled"`
}

// fail writes the response for a handler's error, and returns the error if it is a failure of this
// process.
func fail(ctx *fasthttp.RequestCtx, err error) (ours error) {
	status, text, f := fasthttp.StatusServiceUnavailable, err.Error(), api.FailureOf(err)
	var request *actors.RequestError
	var syntax *badRequest
	var handed *handoverFailed
	switch {
	case errors.As(err, &request), errors.As(err, &syntax):
		status = fasthttp.StatusBadRequest
	case errors.As(err, &handed), errors.Is(err, ErrNotNow):
		f = api.Starting // nothing was done
	case errors.Is(err, committed.ErrTimeout) && ctx.IsPost():
		text = outcomeUnknown
	case errors.Is(err, committed.ErrTimeout):
		f = api.StoreUnavailable
	}
	// A 503 with Retry-After means that nothing was done. Of a POST's errors, only those of
	// admission and committed.ErrUnanswered mean that.
	if f.RetryAfter > 0 {
		ctx.Response.Header.Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	if status >= 500 && f.Ours {
		ours = err
	}
	answer := failureAnswer{Damaged: committed.Damaged(err), Error: text}
	var part *partlyCancelled
	if errors.As(err, &part) {
		answer.Orders = part.orders
	}
	Answer(ctx, status, answer)
	return ours
}

const outcomeUnknown = "outcome unknown: it may or may not have been done"

// refuseStarting writes the response of a process without an engine. A follower names the leader,
// followed by more. A standby names the store's owner. Any other process is starting.
func (s *Server) refuseStarting(ctx *fasthttp.RequestCtx, more string) {
	f := *api.Starting
	if standing, follows := s.Follows(); follows && !standing.Starting {
		if leader := standing.OtherLeaderURL(); leader != "" {
			ctx.Response.Header.Set("X-Leader", leader)
		}
		Fail(ctx, api.Following, standing.About()+more)
		return
	}
	if owner := s.standby.Load(); owner != nil {
		f.Detail = fmt.Sprintf(
			"This exchange is a standby: %q owns the store, and this one takes over when that "+
				"one has stopped or shows no sign of life.", *owner)
	}
	Fail(ctx, &f, "")
}
