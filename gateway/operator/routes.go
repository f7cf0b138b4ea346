package operator

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"

	"exchange/gateway/openapi"
)

// documentPath is the path of the document of the operator's API.
const documentPath = root + "openapi.json"

const root = "/operator/v1/"

// A servingNode tells which node serves a route.
type servingNode int

const (
	byEngine   servingNode = iota // the leader, which needs an engine
	byLeader                      // the leader, with or without an engine
	byReceiver                    // the node that receives the request
)

// A route is a route of the operator's API. A follower relays its requests to the leader, unless
// servedBy is byReceiver.
type route struct {
	name string // method, and path after root
	action
	servedBy      servingNode
	summary, text string // for the document; the text is Markdown
}

// An action is a handler, with the types of its request and answers.
type action struct {
	handle func(*call) (any, error)
	in     any   // a value of the type of its body or query
	out    []any // a value of each type of its answers, or of its lines
	end    any   // a value of the type that ends an answer in lines; nil: no lines
	binary bool  // the answer is no JSON
}

// do makes an action of a handler, with the handler's types of request and answer.
func do[Q, A any](h func(*call, *Q) (A, error)) action {
	a := action{in: *new(Q), handle: func(c *call) (any, error) {
		q := new(Q)
		if err := c.decode(q); err != nil {
			return nil, err
		}
		return h(c, q)
	}}
	if reflect.TypeFor[A]().Kind() != reflect.Interface {
		a.out = []any{*new(A)}
	}
	return a
}

// answers sets the types of an action's answers, by a value of each.
func (a action) answers(values ...any) action {
	a.out = values
	return a
}

// bytes marks an action's answer as not JSON.
func (a action) bytes() action {
	a.binary = true
	return a
}

// lines makes an action whose answer is a stream of lines, followed by an end.
func lines[L, End, Q any](h func(*call, *Q) (any, error)) action {
	a := do(h).answers(*new(L))
	a.end = *new(End)
	return a
}

// nothing is the query of routes that take none.
type nothing struct{}

// groups are all routes, in the order of the document. A group's routes are in its handlers' file.
var groups = []struct {
	openapi.Tag
	routes []route
}{
	{openapi.Tag{Name: "State", Text: "The exchange as a whole."}, stateRoutes},
	{openapi.Tag{Name: "Accounts", Text: "Accounts and their API keys."}, accountRoutes},
	{openapi.Tag{Name: "Money", Text: "Deposits, corrections and withdrawals."}, moneyRoutes},
	{openapi.Tag{Name: "Trading", Text: "Orders, pairs, fees and maintenance."}, tradingRoutes},
	{openapi.Tag{Name: "Reports", Text: "Long answers: each is a stream."}, reportRoutes},
	{openapi.Tag{Name: "Cluster", Text: "The nodes that share a journal."}, clusterRoutes},
}

// routes returns all routes by method and path. It is a function, because handlers refer to it.
var routes = sync.OnceValue(func() map[string]*route {
	all := map[string]*route{}
	for _, g := range groups {
		for i := range g.routes {
			method, path := g.routes[i].address()
			all[method+" "+path] = &g.routes[i]
		}
	}
	return all
})

// Routes returns all routes, each as "METHOD path".
func Routes() []string { return slices.Sorted(maps.Keys(routes())) }

func (r *route) address() (method, path string) {
	method, path, _ = strings.Cut(r.name, " ")
	return method, root + path
}

// Types returns values of a route's types of request and answer: the first type of several, and of
// an answer in lines the type of its end.
func Types(method, path string) (in, out any) {
	r := routes()[method+" "+path]
	if r.end != nil {
		return r.in, r.end
	}
	return r.in, r.out[0]
}

// showDocument returns the document of the operator's API. It may differ between the nodes' program
// versions, so each node serves its own.
func showDocument(c *call, _ *nothing) (json.RawMessage, error) {
	return c.server.document(), nil
}

// newDocument makes the document from the table of routes.
func newDocument() []byte {
	o := &openapi.Outline{Title: "Operator's API", Text: introduction, Words: words,
		Bounds: bounds, Scheme: "The operator's token. The operator's socket needs none.",
		Header: openapi.Header{Name: "X-Operator", Pattern: operatorName.String(),
			Text: "The operator's name in the log of actions, as the client names it."},
		Failure: failureAnswer{}, Statuses: statuses}
	for _, g := range groups {
		o.Tags = append(o.Tags, g.Tag)
		for i := range g.routes {
			r := &g.routes[i]
			d := openapi.Route{Tag: g.Name, Summary: r.summary, Text: r.text, Answers: r.out,
				End: r.end}
			d.Method, d.Path = r.address()
			switch {
			case d.Method == "POST":
				d.Body = r.in
			case r.in != nothing{}:
				d.Query = r.in
			}
			if r.binary {
				d.Kind = "application/octet-stream"
			}
			d.Refusals = refusalsOf(d.Method + " " + d.Path)
			o.Routes = append(o.Routes, d)
		}
	}
	return openapi.OfRoutes(o)
}

const introduction = `What operators' commands and scripts ask the operator's listener: its socket
in the data folder, or its address with the operator's token. Bodies and answers are JSON. Numbers
are exact decimals. Times are text in UTC, such as 2026-11-21T08:00:00.000000Z.

A body is an object of the members that are described. A member that is unknown or that appears
twice is refused, and the case of names does not matter.

A refusal is ` + "`" + `{"error": "..."}` + "`" + `, for people. Of a POST, 503 with Retry-After says
that nothing was done, and 503 without it that the outcome is unknown: check before you send it
again. A request with the state that is there already, or with a reference that is known, is
answered with ` + "`" + `"repeated": true` + "`" + `, where the answer has that member, so a repeat
is safe. Otherwise the answer is 400, and its text says so.

A node of a cluster that follows forwards a request to the leader, unless the description
says that each node answers itself. The listener also serves /metrics, in the form of Prometheus,
and /debug/pprof.`

// statuses are those of refusals.
var statuses = []openapi.Status{
	{Status: fasthttp.StatusBadRequest, Text: "The request has to be changed: the text says " +
		"how. Nothing was done."},
	{Status: fasthttp.StatusUnauthorized, Text: "The bearer token is missing or wrong."},
	{Status: fasthttp.StatusForbidden, Text: "The user at the other end of the socket may not " +
		"operate this exchange."},
	{Status: fasthttp.StatusNotFound, Text: "There is no such path with this method: the " +
		"program is of another version."},
	{Status: fasthttp.StatusRequestTimeout, Text: "The request did not arrive in time."},
	{Status: fasthttp.StatusRequestEntityTooLarge, Text: "The body is too large."},
	{Status: fasthttp.StatusTooManyRequests, Text: "Too many wrong tokens came from this address.",
		Headers: []string{"Retry-After"}},
	{Status: fasthttp.StatusRequestHeaderFieldsTooLarge, Text: "The headers are too large."},
	{Status: fasthttp.StatusInternalServerError, Text: "An error of the server, whose log has " +
		"the request id.", Headers: []string{"X-Request-Id"}},
	{Status: fasthttp.StatusServiceUnavailable, Text: "Not now, or the outcome is not known. " +
		"With Retry-After nothing was done.",
		Headers: []string{"Retry-After", "X-Request-Id", "X-Leader"}},
}
