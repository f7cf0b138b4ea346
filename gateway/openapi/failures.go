package openapi

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"exchange/core/event"
	"exchange/gateway/api"
)

// The failures of an operation, for the OpenAPI document. Most of them follow from the checks that
// every request goes through, and so from the route.

// failuresOf are the failures of the catalogue that an operation can end with.
func (d *description) failuresOf(e *api.Operation) []*api.Failure {
	all := []*api.Failure{api.MalformedRequest, api.MalformedHost, api.MethodNotAllowed,
		api.RequestTimeout, api.BodyTooLarge, api.Throttled,
		api.HeaderTooLarge, api.InternalError, api.TooManyConnections}
	add := func(when bool, more ...*api.Failure) {
		if when {
			all = append(all, more...)
		}
	}
	post := d.method == "POST"
	add(strings.HasPrefix(d.path, "/api/"), api.NotAcceptable)
	add(strings.Contains(d.path, "{"), api.NotFound)
	add(!e.Early, api.Starting, api.Following)
	add(!post, api.MalformedQuery)
	signed := e.Private || e.Signable
	add(signed, api.Unauthenticated, api.MissingNonce, api.MalformedNonce, api.WrongSignature,
		api.WrongNonce, api.AddressNotAllowed, api.NotPermitted, api.AccountFrozen, api.AccountBusy)
	add(signed, engineFailures...)
	add(e.Private && post, api.MalformedBody, api.UnknownContentType, api.EncodedBody,
		api.Maintenance,
		api.Paused, api.OutcomeUnknown)
	return append(all, d.failures...)
}

// engineFailures are those of all requests to the engine.
var engineFailures = []*api.Failure{api.Stopping, api.StoreUnavailable, api.Overloaded}

// statusTexts give the meaning of a status, for all of its failures.
var statusTexts = map[int]string{
	400: "The request cannot be carried out as it is.",
	401: "The key, the signature or the nonce is wrong, or a header is missing.",
	403: "The key, the account or the pair may not do this.",
	404: "There is no such resource.",
	405: "The path has other methods.",
	406: "Another format than JSON was asked for.",
	408: "The request did not arrive in time.",
	413: "The body is too large.",
	415: "The body is packed.",
	429: "Too many requests: try again after the time in Retry-After.",
	431: "The headers are too large.",
	500: "An error of the server. X-Request-Id names it.",
	503: "Not now: try again after the time in Retry-After. If the server failed, " +
		"X-Request-Id names it in its log.",
}

// statusHeaders are the headers of answers with a status. Nearly all answers also have the rate,
// and whether caches may keep them, as described in the guide. Repeating that for every failure
// would only make the page longer.
var statusHeaders = map[int][]string{401: {"WWW-Authenticate"}, 405: {"Allow"},
	429: append([]string{"Retry-After"}, rateHeaders...), 500: {"X-Request-Id"},
	503: {"Retry-After", "X-Request-Id", "X-Leader"}}

// failed returns a response for each status other than success. All operations share the response
// of a status with every usual reason.
func (d *description) failed(e *api.Operation) object {
	possible := byStatus(d.failuresOf(e))
	all := byStatus(usual())
	var responses object
	for _, status := range statuses(possible) {
		response := failedResponse(status, possible[status], d.refusals)
		if status != 400 && slices.Equal(possible[status], all[status]) {
			response = reference("responses", responseName(status))
		}
		responses = append(responses, member{strconv.Itoa(status), response})
	}
	return responses
}

// usual returns the failures of the shared responses: all but those of few operations.
func usual() []*api.Failure {
	return slices.DeleteFunc(slices.Clone(api.Failures), func(f *api.Failure) bool {
		return f == api.WithdrawalsHeld
	})
}

// sharedResponses are the responses that failed refers to.
func sharedResponses() object {
	all := byStatus(usual())
	var responses object
	for _, status := range statuses(all) {
		if status != 400 {
			responses = append(responses, member{responseName(status),
				failedResponse(status, all[status], nil)})
		}
	}
	return responses
}

// responseName is the status in words, such as NotFound.
func responseName(status int) string {
	return strings.ReplaceAll(fasthttp.StatusMessage(status), " ", "")
}

func failedResponse(status int, failures []*api.Failure, refusals []refusal) object {
	text, schema := statusTexts[status], reference("schemas", "Failure")
	var examples object
	if status == 400 && len(refusals) > 0 {
		schema = object{{"oneOf", []object{reference("schemas", "FieldErrors"),
			reference("schemas", "FundsError"), reference("schemas", "Failure")}}}
		for _, x := range refusals {
			examples = append(examples, member{x.name, object{{"value", x.body}}})
		}
	}
	for _, f := range failures {
		examples = append(examples, member{f.Name, reference("examples", f.Name)})
	}
	if slices.Contains(failures, api.OutcomeUnknown) {
		text += " With `\"code\":\"outcome_unknown\"` the request may have been carried out, and " +
			"there is no Retry-After: ask before sending it again."
	}
	if slices.Contains(failures, api.WithdrawalsClosed) {
		text += " While withdrawals are closed there is no Retry-After either: nothing was done, " +
			"and it can last."
	}
	response := object{{"description", text}}
	if headers := statusHeaders[status]; len(headers) > 0 {
		response = append(response, member{"headers", headerReferences(headers)})
	}
	return append(response, member{"content",
		object{{jsonMedia, object{{"schema", schema}, {"examples", examples}}}}})
}

// byStatus sorts failures by their status, those of one in the order of the catalogue.
func byStatus(failures []*api.Failure) map[int][]*api.Failure {
	m := map[int][]*api.Failure{}
	for _, f := range api.Failures {
		if slices.Contains(failures, f) {
			m[f.Status] = append(m[f.Status], f)
		}
	}
	return m
}

func statuses(m map[int][]*api.Failure) []int { return slices.Sorted(maps.Keys(m)) }

// failureAbout is the case of a failure in its example.
var failureAbout = map[*api.Failure]string{
	api.NotPermitted:     api.PermissionName(event.PermissionTrade),
	api.PairHalted:       "BTC_USDT",
	api.WithdrawalsHeld:  "2026-11-30T09:00:00Z",
	api.TooManyInBook:    "BTC_USDT",
	api.BookFull:         "BTC_USDT",
	api.MethodNotAllowed: "PUT",
	api.MalformedBody:    "Malformed at position 17: expected ',' or '}'.",
	api.MalformedQuery:   "Malformed at position 6: expected '%' and two hexadecimal digits.",
	api.BodyTooLarge:     "65536",
	api.HeaderTooLarge:   "8192",
	api.Throttled:        "1",
	api.Following:        " Node b leads.",
	api.Maintenance:      " Back at 12:00 UTC.",
	api.OutcomeUnknown: " GET /api/v1/orders/own/?client_order_id=bid-1 shows whether the order " +
		"was accepted.",
}

// lastNonceExample is that of a key whose nonces are times in milliseconds.
const lastNonceExample = 1795241513443

// failureTable is the whole catalogue, for readers.
func failureTable() string {
	var b strings.Builder
	b.WriteString("| status | detail, in an example |\n|---|---|\n")
	for _, f := range api.Failures {
		b.WriteString("| " + strconv.Itoa(f.Status) + " | " + f.About(failureAbout[f]) +
			" |\n")
	}
	return b.String()
}

// failureExamples holds the body of every failure under its name.
func failureExamples() object {
	var all object
	for _, f := range api.Failures {
		body := object{{"detail", f.About(failureAbout[f])}}
		if f.Code != "" {
			body = append(body, member{"code", f.Code})
		}
		if f == api.WrongNonce {
			body = append(body, member{"last", lastNonceExample})
		}
		all = append(all, member{f.Name, object{{"value", body}}})
	}
	return all
}

// fieldsExample is an example of wrong fields: pairs of a name and a text.
func fieldsExample(pairs ...string) object {
	var o object
	for i := 0; i+1 < len(pairs); i += 2 {
		o = append(o, member{pairs[i], []string{pairs[i+1]}})
	}
	return o
}

// anyDuplicate is a refusal that every body can get.
var anyDuplicate = refusal{"DuplicateField", fieldsExample("amount", api.FieldDuplicate)}

// outOfFunds refuses an order or a withdrawal that the account cannot pay.
var outOfFunds = refusal{"OutOfFunds",
	object{{"date", 1570599531.481437}, {"error", "Out of balance -9.99243661 BTC"}}}
