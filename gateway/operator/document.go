package operator

import (
	"encoding/json"
	"strings"

	"github.com/valyala/fasthttp"

	"exchange/gateway/openapi"
)

// DocumentPath is where the document of the operator's API is.
const DocumentPath = "/operator/v1/openapi.json"

// showDocument answers with the document of the operator's API. It is the program's own, so each
// node answers itself.
func showDocument(c *call) (any, error) { return json.RawMessage(c.server.document()), nil }

// newDocument makes the document from the table of routes, in which each route has a description.
func newDocument() []byte {
	o := &openapi.Outline{Title: "Operator's API", Text: introduction, Tags: tags,
		Fields: fields, Scheme: "The operator's token. The operator's socket needs none.",
		Header: openapi.Header{Name: "X-Operator", Pattern: operatorName.String(),
			Text: "The operator's name in the log of actions, which is the client's own word."},
		Failure: failureAnswer{}, Statuses: statuses}
	for _, name := range Routes() {
		if _, ok := descriptions[name]; !ok {
			panic("BUG: the document lacks " + name)
		}
	}
	for _, group := range tags {
		for _, name := range Routes() {
			if d := descriptions[name]; d.Tag == group.Name {
				named := strings.Fields(name) // method and path
				d.Method, d.Path = named[0], named[1]
				d.Refusals = refusalsOf(name)
				o.Routes = append(o.Routes, d)
			}
		}
	}
	if len(o.Routes) != len(routes) || len(descriptions) != len(routes) {
		panic("BUG: the document describes what is no route, or has a route in no group")
	}
	return openapi.OfRoutes(o)
}

const introduction = `What operators' commands and scripts ask the operator's listener: its socket
in the data folder, or its address with the operator's token. Bodies and answers are JSON. Numbers
are exact decimals. Times are text in UTC, such as 2026-11-21T08:00:00.000000Z.

A body is an object of the members that are described. A member that is unknown or that appears
twice is refused, and the case of names does not matter.

A refusal is ` + "`" + `{"error": "..."}` + "`" + `, for people. Of a POST, 503 with Retry-After says
that nothing was done, and 503 without it that the outcome is not known: look before you send it
again. A request with the state that is there already, or with a reference that is known, is
answered with ` + "`" + `"repeated": true` + "`" + `, where the answer has that member, so a repeat
is safe. Otherwise 400 says that it is so already.

A node of a cluster that follows passes a request on to the node that leads, unless the description
says that each node answers itself. The listener also serves /metrics, in the form of Prometheus,
and /debug/pprof.`

var tags = []openapi.Tag{
	{Name: tagState, Text: "The exchange as a whole."},
	{Name: tagAccounts, Text: "Accounts and their API keys."},
	{Name: tagMoney, Text: "Deposits, corrections and withdraws."},
	{Name: tagTrading, Text: "Orders, pairs, fees and maintenance."},
	{Name: tagReports, Text: "Long answers: each is a stream."},
	{Name: tagCluster, Text: "The nodes that share a journal."},
}

const (
	tagState    = "State"
	tagAccounts = "Accounts"
	tagMoney    = "Money"
	tagTrading  = "Trading"
	tagReports  = "Reports"
	tagCluster  = "Cluster"
)

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
