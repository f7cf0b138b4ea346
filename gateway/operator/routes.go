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

// DocumentPath is where the document of the operator's API is.
const DocumentPath = root + "openapi.json"

const root = "/operator/v1/"

// A place says where a route is served.
type place int

const (
	reigns place = iota // by the engine, which the node that leads has
	leads               // by the node that leads, with an engine or without
	asked               // by the node that is asked: what it tells is its own
)

// A route is one of the operator's API. A node that follows passes a request on to the node that
// leads, unless the node that is asked serves the route itself. What the listener serves besides is
// each node's own: /metrics and /debug/pprof.
type route struct {
	name string // method, and path behind root
	action
	at            place
	summary, text string // for the document; the text is Markdown
}

// An action is a handler, with what it takes and answers.
type action struct {
	handle func(*call) (any, error)
	in     any   // a value of the type of its body or query
	out    []any // a value of each type of its answers, or of its lines
	end    any   // a value of the type that ends an answer in lines; nil: no lines
	binary bool  // the answer is no JSON
}

// do makes an action of a handler. Its types are the action's: a pointer's element is the answer.
func do[Q, A any](h func(*call, *Q) (A, error)) action {
	a := action{in: *new(Q), handle: func(c *call) (any, error) {
		q := new(Q)
		if err := c.read(q); err != nil {
			return nil, err
		}
		return h(c, q)
	}}
	if reflect.TypeFor[A]().Kind() != reflect.Interface {
		a.out = []any{*new(A)}
	}
	return a
}

// answers says that an action has answers of several types.
func (a action) answers(of ...any) action {
	a.out = of
	return a
}

// bytes says that an action's answer is no JSON.
func (a action) bytes() action {
	a.binary = true
	return a
}

// lines makes an action whose answer is a stream of lines, with an end behind them.
func lines[L, End, Q any](h func(*call, *Q) (any, error)) action {
	a := do(h).answers(*new(L))
	a.end = *new(End)
	return a
}

// nothing is the query of routes that take none.
type nothing struct{}

// groups are all routes, in the order of the document.
var groups = []struct {
	openapi.Tag
	routes []route
}{
	{openapi.Tag{Name: "State", Text: "The exchange as a whole."}, []route{
		{"GET openapi.json", do(showDocument), asked, "This document", "Each node answers itself."},
		{"GET status", do(showStatus), reigns, "The exchange on one page",
			"The parts of the page are each of their own moment."},
		{"GET totals", do(showTotals), reigns, "Sums over all accounts",
			"What all accounts have, by currency, at one sequence."},
		{"GET actions", do(listActions), reigns, "What operators did",
			"The log of operators' actions, newest first."},
		{"POST config/reload", do(reload), asked, "Take up the configuration",
			"The process that is asked takes up its own configuration, with its " +
				"certificates and tokens. A configuration that is refused changes " +
				"nothing."},
	}},
	{openapi.Tag{Name: "Accounts", Text: "Accounts and their API keys."}, []route{
		{"GET accounts", do(listAccounts), reigns, "Accounts",
			"A page of the accounts, in order of their ids. `next` is there if more " +
				"may follow: send it as `after`."},
		{"POST accounts", do(createAccount), reigns, "Open an account",
			"The name is new. The e-mail address gets the codes of withdraws, and an " +
				"account without one cannot withdraw."},
		{"GET account", do(showAccount), reigns, "An account at one moment",
			"Its holdings, its newest open orders, and its pending withdraws."},
		{"POST accounts/email", do(setEmail), reigns, "Change an account's e-mail address",
			"Both addresses are told, and the account's withdraws are held for 48 " +
				"hours. With the address that it has, nothing changes."},
		{"POST accounts/close", do(closeAccount), reigns, "Close an account",
			"An account without money, open orders and pending withdraws ends for " +
				"good, and its keys with it."},
		{"POST accounts/freeze", do(freeze), reigns, "Freeze an account, or end that",
			"The keys of a frozen account do nothing, and its withdraws are not " +
				"approved. Open orders stay."},
		{"GET keys", do(listKeys), reigns, "API keys of an account",
			"With those that are revoked, and without secrets."},
		{"POST keys", do(createKey), reigns, "Make an API key",
			"The answer alone has the secret: it is not told again."},
		{"POST keys/revoke", do(revokeKey), reigns, "Revoke an API key", "The key ends for good."},
	}},
	{openapi.Tag{Name: "Money", Text: "Deposits, corrections and withdraws."}, []route{
		{"POST deposits", do(deposit), reigns, "Credit an account",
			"A deposit with the same reference and content is made once. Without a " +
				"reference the exchange makes one."},
		{"POST adjustments", do(adjust), reigns, "Take money back",
			"A correction takes available money out of an account. One with the same " +
				"reference and content is made once."},
		{"GET withdraws", do(listWithdrawals), reigns, "Withdraws",
			"Newest first: the pending ones of all accounts, or all of one account."},
		{"POST withdraws/approve", do(approveWithdrawal), reigns, "Approve a withdraw",
			"The amount leaves the balance."},
		{"POST withdraws/refuse", do(refuseWithdrawal), reigns, "Refuse a withdraw",
			"The amount is available again. `details` is required, and the owner is " +
				"told."},
	}},
	{openapi.Tag{Name: "Trading", Text: "Orders, pairs, fees and maintenance."}, []route{
		{"GET orders", do(listOrders), reigns, "Open orders",
			"Of one account, newest first, or of all accounts, account by account. " +
				"For the next page send `next` as `before`, and `after` as `after`, " +
				"whichever of them are there."},
		{"POST orders/cancel", do(cancelOrder), reigns, "Cancel an order", "Of any account."},
		{"POST orders/cancel-all", do(cancelAllOrders), reigns, "Cancel an account's orders",
			"If only some are known to be cancelled, the answer is 503 and has these " +
				"as `orders`."},
		{"GET switches", do(listSwitches), reigns, "Dead man's switches", "All that are armed."},
		{"GET pairs", do(listPairs), reigns, "Pairs",
			"All configured pairs with their rules, in the order of the " +
				"configuration."},
		{"POST pairs/halt", do(halt).answers(HaltAnswer{}, AllAnswer{}), reigns,
			"Halt a pair, or resume it",
			"A halted pair takes cancels and no orders. With `all` the pairs are " +
				"halted one after the other, and the answer has a list."},
		{"GET fees", do(listFees), reigns, "Fees",
			"The usual rates, on the first page, and a page of the accounts with " +
				"rates of their own. `next` is there if more may follow: send it as " +
				"`after`."},
		{"POST fees", do(setFees), reigns, "Set an account's fees in a pair",
			"Either `maker` and `taker`, or `usual`."},
		{"GET maintenance", do(showMaintenance), reigns, "Is there maintenance?",
			"And since when."},
		{"POST maintenance", do(maintenance), reigns, "Begin or end maintenance",
			"In maintenance clients' commands are refused. It lasts until it is " +
				"ended, also over restarts."},
	}},
	{openapi.Tag{Name: "Reports", Text: "Long answers: each is a stream."}, []route{
		{"POST audit", lines[ProgressLine, AuditAnswer](auditBooks), reigns, "Audit the books",
			"Replays the journal and compares. Lines of progress come before the " +
				"findings. With `archive` it starts at the archive's beginning."},
		{"GET statement", lines[StatementLine, int](statement), reigns, "An account's statement",
			"Every change of the account's balances, newest first, as far as the " +
				"history reaches."},
		{"GET trades", lines[tradeLine, int](exportTrades), reigns, "All trades",
			"Pair by pair, oldest first. `end` is the number of rows, as in the other " +
				"exports."},
		{"GET export/orders", lines[orderLine, int](exportOrders), reigns, "All orders",
			"Those that were accepted in a period, account by account, newest first."},
		{"GET export/deposits", lines[depositLine, int](exportDeposits), reigns, "All deposits",
			"Account by account, newest first."},
		{"GET export/withdraws", lines[withdrawalLine, int](exportWithdrawals), reigns,
			"All withdraws", "Those that were asked for in a period, newest first."},
		{"GET export/balances", lines[balanceLine, BalancesEnd](exportBalances), reigns,
			"All balances",
			"At one sequence, in order of the accounts' ids, without balances of 0."},
		{"GET backup", do(writeBackup).bytes(), reigns, "A backup",
			"The state at one sequence, and the history up to it, as one file. A " +
				"backup that breaks off lacks its proof, which `exchange restore` " +
				"notices."},
	}},
	{openapi.Tag{Name: "Cluster", Text: "The nodes that share a journal."}, []route{
		{"GET cluster", do(showCluster), asked, "The nodes of the cluster",
			"As the node that is asked knows them: each node answers itself."},
		{"GET cluster/hash", do(showHash), asked, "A digest of a node's state",
			"Each node answers itself."},
		{"POST cluster/transfer", do(transfer), leads, "Hand the lead over",
			"To a node, or to any."},
		{"POST cluster/apply", do(applyMarket), leads, "Agree on another market part",
			"The nodes use it from the next reign on. The body may be larger than " +
				"others: 6 MiB."},
		{"POST cluster/add", do(wished(add)), leads, "Add a node",
			"Takes the next step that is possible: repeat it until `done`."},
		{"POST cluster/replace", do(wished(replace)), leads, "Replace a node",
			"Takes the next step that is possible: repeat it until `done`. `node` " +
				"takes the place of `old`."},
		{"POST cluster/remove", do(wished(remove)), leads, "Remove a node",
			"Repeat it until `done`."},
	}},
}

// routes are all of them by method and path. A handler may name the table that it is in.
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

// Types returns values of the types of a route's request and of its answer: of the first, if there
// may be several, and of the end of one in lines.
func Types(method, path string) (in, out any) {
	r := routes()[method+" "+path]
	if r.end != nil {
		return r.in, r.end
	}
	return r.in, r.out[0]
}

// showDocument answers with the document of the operator's API. It is the program's own, so each
// node answers itself.
func showDocument(c *call, _ *nothing) (json.RawMessage, error) {
	return c.server.document(), nil
}

// newDocument makes the document from the table of routes.
func newDocument() []byte {
	o := &openapi.Outline{Title: "Operator's API", Text: introduction, Words: words,
		Bounds: bounds, Scheme: "The operator's token. The operator's socket needs none.",
		Header: openapi.Header{Name: "X-Operator", Pattern: operatorName.String(),
			Text: "The operator's name in the log of actions, which is the client's own word."},
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
that nothing was done, and 503 without it that the outcome is not known: look before you send it
again. A request with the state that is there already, or with a reference that is known, is
answered with ` + "`" + `"repeated": true` + "`" + `, where the answer has that member, so a repeat
is safe. Otherwise 400 says that it is so already.

A node of a cluster that follows passes a request on to the node that leads, unless the description
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
