package operator

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/gateway/api"
)

// Options are the parts of a Server.
type Options struct {
	Log     *slog.Logger
	Token   string       // bearer token; SetToken changes it
	Archive Archive      // of the journal; nil: the process keeps none
	Cluster Cluster      // nil: the exchange runs on one machine
	Clock   func() int64 // nanoseconds of a clock that never goes back
}

// A Server answers operators' requests. JSON goes in and out, and an error is {"error": "..."}.
// Requests are handled by many goroutines at once.
type Server struct {
	log     *slog.Logger
	archive Archive
	cluster Cluster
	token   Token
	guesses *guesses
	// owner of the store for which the start waits; nil: the process is no standby
	standby atomic.Pointer[string]
	follows atomic.Bool // this node follows another one
	relays  atomic.Bool // while it follows it serves clients all the same
}

// New makes a server.
func New(o Options) *Server {
	s := &Server{log: o.Log, archive: o.Archive, cluster: o.Cluster,
		guesses: newGuesses(o.Clock)}
	s.token.Set(o.Token)
	return s
}

// SetStandby names the owner of the store for which the start waits. "" ends that wait.
func (s *Server) SetStandby(owner string) {
	if owner == "" {
		s.standby.Store(nil)
		return
	}
	s.standby.Store(&owner)
}

// SetFollower says whether this node follows another one, and whether it serves clients all the
// same. While it follows, there is no engine.
func (s *Server) SetFollower(follows, serves bool) {
	s.follows.Store(follows)
	s.relays.Store(serves)
}

// Follows returns what a node that follows knows of the cluster; false: this one does not follow.
func (s *Server) Follows() (Standing, bool) {
	if !s.follows.Load() {
		return Standing{}, false
	}
	return s.cluster.Standing(), true
}

// StandsBy reports whether this process waits for another one that serves in its place.
func (s *Server) StandsBy() bool { return s.standby.Load() != nil || s.follows.Load() }

// A handler returns an answer that becomes JSON.
type handler func(*call) (any, error)

var routes = map[string]handler{
	"GET /operator/v1/accounts":           listAccounts,
	"POST /operator/v1/accounts":          createAccount,
	"GET /operator/v1/account":            showAccount,
	"POST /operator/v1/accounts/freeze":   freeze,
	"GET /operator/v1/keys":               listKeys,
	"POST /operator/v1/keys":              createKey,
	"POST /operator/v1/keys/revoke":       revokeKey,
	"POST /operator/v1/deposits":          deposit,
	"GET /operator/v1/withdraws":          listWithdrawals,
	"POST /operator/v1/withdraws/approve": approveWithdrawal,
	"POST /operator/v1/withdraws/refuse":  refuseWithdrawal,
	"GET /operator/v1/orders":             listOrders,
	"GET /operator/v1/switches":           listSwitches,
	"POST /operator/v1/orders/cancel":     cancelOrder,
	"POST /operator/v1/orders/cancel-all": cancelAllOrders,
	"POST /operator/v1/pairs/halt":        halt,
	"POST /operator/v1/fees":              setFees,
	"POST /operator/v1/maintenance":       maintenance,
	"GET /operator/v1/actions":            listActions,
	"POST /operator/v1/audit":             auditBooks,
	"GET /operator/v1/statement":          statement,
	"GET /operator/v1/trades":             exportTrades,
	"GET /operator/v1/backup":             writeBackup,
}

// Routes returns all routes, each as "METHOD path".
func Routes() []string {
	return slices.Concat(slices.Sorted(maps.Keys(routes)), slices.Sorted(maps.Keys(nodeRoutes)))
}

// A Peer is the client of a request, as the listener knows it.
type Peer struct {
	Origin  string     // connection's address or user, for the log of actions
	Address netip.Addr // of the client, or of the one for which a trusted proxy speaks
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
	}
	s.RefuseToken(ctx, from.Address, "the bearer token is missing or wrong")
	return false
}

// Serve answers a request that Admit has let in. engine is nil until the exchange has started. The
// returned error is a failure of this process, which the caller logs; it is nil otherwise.
func (s *Server) Serve(ctx *fasthttp.RequestCtx, engine *actors.Engine, from Peer) error {
	route := string(ctx.Method()) + " " + strings.TrimSuffix(string(ctx.Path()), "/")
	handle, ofNode := nodeRoutes[route]
	if !ofNode {
		handle = routes[route]
	}
	switch {
	case handle == nil:
		refuse(ctx, fasthttp.StatusNotFound,
			"there is no "+string(ctx.Method())+" "+string(ctx.Path()))
		return nil
	case engine == nil && !ofNode:
		s.refuseStarting(ctx)
		return nil
	}
	var err error
	if !ofNode {
		err = engine.Confirmed() // another process may own the store by now, and know more
	}
	if err == nil {
		var answer any
		c := &call{server: s, engine: engine, ctx: ctx, operator: nameOf(ctx, from)}
		if answer, err = handle(c); err == nil {
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

// nameOf returns the operator's name for the log of actions: the client's own name, and its address
// or its user of this machine. The token or the user permits the action; the name is the client's
// own word.
func nameOf(ctx *fasthttp.RequestCtx, from Peer) string {
	name := ctx.Request.Header.Peek("X-Operator")
	if !operatorName.Match(name) {
		name = []byte("operator")
	}
	return string(name) + " from " + from.Origin
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
	case errors.As(err, &handed):
		f = api.Starting // nothing was done
	case errors.Is(err, committed.ErrTimeout) && ctx.IsPost():
		text = "outcome unknown: it may or may not have been done"
	case errors.Is(err, committed.ErrTimeout):
		f = api.StoreUnavailable
	}
	// With Retry-After, a 503 says that nothing was done: of POST only errors of admission and
	// ErrUnanswered have it.
	if f.RetryAfter > 0 {
		ctx.Response.Header.Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	if status >= 500 && f.Ours {
		ours = err
	}
	answer := map[string]any{"error": text}
	if committed.Damaged(err) {
		answer["damaged"] = true // trying again does not help
	}
	var part *partlyCancelled
	if errors.As(err, &part) {
		answer["orders"] = part.orders
	}
	Answer(ctx, status, answer)
	return ours
}

// refuseStarting answers that the exchange is starting, for which owner a standby waits, or which
// node leads.
func (s *Server) refuseStarting(ctx *fasthttp.RequestCtx) {
	f := *api.Starting
	if standing, follows := s.Follows(); follows {
		if leader := standing.Elsewhere(); leader != "" {
			ctx.Response.Header.Set("X-Leader", leader)
		}
		Fail(ctx, api.Following, standing.About())
		return
	}
	if owner := s.standby.Load(); owner != nil {
		f.Detail = fmt.Sprintf(
			"This exchange is a standby: %q owns the store, and this one takes over when that "+
				"one has stopped or shows no sign of life.", *owner)
	}
	Fail(ctx, &f, "")
}
