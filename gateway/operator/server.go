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
	Log      *slog.Logger
	Token    string       // bearer token; SetToken changes it
	Commit   string       // of the program's build; "": unknown
	Archive  Archive      // of the journal; nil: the process keeps none
	Cluster  Cluster      // nil: the exchange runs on one machine
	Memory   Memory       // of the last backup and the last audit
	Reloader Reloader     // of the configuration; nil: none
	Clock    func() int64 // nanoseconds of a monotonic clock
}

// A Server answers operators' requests. JSON goes in and out, and an error is {"error": "..."}.
// Requests are handled by many goroutines at once.
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
	// owner of the store that the start waits for; nil: the process is no standby
	standby       atomic.Pointer[string]
	follows       atomic.Bool // this node follows another one
	servesClients atomic.Bool // it serves clients even as a follower
	openRelays    atomic.Int64
	// the operator's token that this node shows for users of its socket; nil: none
	own atomic.Pointer[string]
	// document returns the document of the API; the first request makes it.
	document func() []byte
}

// New makes a server.
func New(o Options) *Server {
	s := &Server{log: o.Log, archive: o.Archive, cluster: o.Cluster,
		reloader: o.Reloader, commit: o.Commit, began: time.Now(), guesses: newGuesses(o.Clock),
		document: sync.OnceValue(newDocument)}
	s.tasks.remember(o.Memory, o.Log)
	s.SetToken(o.Token)
	return s
}

// SetStandby names the owner of the store that the start waits for. "" ends that wait.
func (s *Server) SetStandby(owner string) {
	if owner == "" {
		s.standby.Store(nil)
		return
	}
	s.standby.Store(&owner)
}

// SetFollower sets whether this node is a follower, and whether it serves clients even so. A
// follower has no engine.
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
	Node    string     // that relayed the request; "": the client is here
	Socket  bool       // the request came over the operator's socket
	User    int        // id of the user at the other end of the socket
	Allowed bool       // the user of the socket may operate the exchange
}

// Admit reports whether a client may operate the exchange, and answers the request otherwise. The
// right token always passes. Wrong tokens are counted by address, those of this machine too. Over
// the operator's socket the user counts instead of a token.
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
		s.RefuseToken(ctx, from.Address, s.differs(from.Node))
		return false
	}
	s.RefuseToken(ctx, from.Address, "the bearer token is missing or wrong")
	return false
}

// Serve answers a request that Admit has let in. engine is nil until the exchange has started. The
// returned error is a failure of this process, for the caller's log, or nil.
func (s *Server) Serve(ctx *fasthttp.RequestCtx, engine *actors.Engine, from Peer) error {
	name := string(ctx.Method()) + " " + strings.TrimSuffix(string(ctx.Path()), "/")
	route, there := routes()[name]
	switch {
	case !there:
		refuse(ctx, fasthttp.StatusNotFound,
			"there is no "+string(ctx.Method())+" "+string(ctx.Path()))
		return nil
	case route.at == asked:
	case s.elsewhere(ctx, from):
		return nil
	case engine == nil && route.at == atLeader:
		s.refuseStarting(ctx, "")
		return nil
	}
	var err error
	if route.at == atLeader {
		err = engine.Confirmed() // another process may own the store by now, with newer records
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

// nameOf returns the operator's name for the log of actions: the client's own name, its address or
// its user on that machine, and the relaying node. The token or the user permits the action; the
// name is only the client's claim.
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

// A failureAnswer is the reason why a request failed.
type failureAnswer struct {
	Damaged bool     `json:"damaged,omitempty" doc:"Stored data is damaged: do not try again"`
	Error   string   `json:"error" doc:"What was wrong, and what to do"`
	Orders  []uint64 `json:"orders,omitempty" doc:"Ids of those that were cancelled"`
}

// fail answers with a handler's error, and returns it if it is a failure of this process.
func fail(ctx *fasthttp.RequestCtx, err error) (ours error) {
	status, text, f := fasthttp.StatusServiceUnavailable, err.Error(), api.FailureOf(err)
	var request *actors.RequestError
	var syntax *badRequest
	var handed *notHanded
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
	// A 503 with Retry-After means that nothing was done: for POST only errors of admission and
	// ErrUnanswered have it.
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

// refuseStarting answers that the exchange is starting, whose store a standby waits for, or which
// node leads. more is appended to the latter.
func (s *Server) refuseStarting(ctx *fasthttp.RequestCtx, more string) {
	f := *api.Starting
	if standing, follows := s.Follows(); follows && !standing.Starting {
		if leader := standing.Elsewhere(); leader != "" {
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
