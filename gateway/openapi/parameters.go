package openapi

import (
	"strconv"

	"exchange/core/market"
	"exchange/gateway/api"
	"exchange/gateway/sign"
)

// The parameters, headers and security schemes of the OpenAPI document.

// headers are the headers of answers that a client can use.
func headers() object {
	header := func(kind, text string, example any) object {
		return object{{"description", text},
			{"schema", object{{"type", kind}, {"examples", []any{example}}}}}
	}
	return object{
		{"X-Update-Id", header("integer",
			"The update_id of the stream of differences at which the book had exactly this state.",
			1048)},
		{"Retry-After", header("integer", "Seconds to wait before trying again.", 1)},
		{"X-RateLimit-Limit", header("integer",
			"Requests that are possible at once, after a pause. None of these three headers "+
				"where the rate is not limited.", 200)},
		{"X-RateLimit-Remaining", header("integer", "Requests that are possible now.", 199)},
		{"X-RateLimit-Reset", header("integer",
			"Seconds until X-RateLimit-Limit requests are possible again.", 1)},
		{"X-Request-Id", header("string", "Names the request in the log of the server.",
			"5f2b1c9de0a74d6188c3f1a2")},
		{"X-Leader", header("string",
			"Of a node that follows: where clients reach the one that leads.",
			"https://b.example.org")},
		{"WWW-Authenticate", header("string", "How a request is signed.", sign.Scheme)},
		{"Allow", header("string", "The methods of the path.", "GET, HEAD, OPTIONS")},
		{"ETag", header("string", "Names this version of the answer, for If-None-Match.",
			`"0f1e2d3c4b5a69788796a5b4"`)},
		{"Cache-Control", header("string",
			"Whether caches may keep the answer: no-store says that they must not, no-cache that "+
				"they must ask each time whether it is still so.", "no-cache")},
	}
}

// security are the three headers of a private request; all of them are needed.
func security() object {
	header := func(name, text string) object {
		return object{{"type", "apiKey"}, {"in", "header"}, {"name", name}, {"description", text}}
	}
	message := "demo-aliceamount=0.5&pair=BTC_USDT&price=50000&type=sell"
	signature := sign.New([]byte("demo-alice-secret")).Sign(nil, []byte(message))
	return object{
		{"key", header("X-KEY", "The key.")},
		{"signature", header("X-SIGN",
			"HMAC-SHA256 under the secret, as 64 hexadecimal digits, of the key followed by the "+
				"parameters of the body, sorted by name, "+
				"each as name=value with the value percent-encoded, joined with &. Without a "+
				"body, as for every GET, it is that of the key alone.\n\n"+
				"The key `demo-alice` with the secret `demo-alice-secret` sells 0.5 BTC with the "+
				"message\n\n    "+message+"\n\nand so with the signature\n\n    "+string(
				signature))},
		{"nonce",
			header("X-NONCE",
				"An integer of 1 to 19 digits, greater than the one of the key's last request, "+
					"such as the time in milliseconds. A key for parallel use keeps the N "+
					"greatest ones that it has used, and takes any other one that is above the "+
					"least of them, so its requests may overtake each other.")},
	}
}

func tags() []object {
	tag := func(name, text string) object { return object{{"name", name}, {"description", text}} }
	return []object{
		tag(tagMarket, "What anybody may see."),
		tag(tagAccount, "What an account has and did."),
		tag(tagOrders, "Placing and cancelling."),
		tag(tagWithdrawals,
			"Money that leaves: asked for, confirmed by its owner with a code from an e-mail, "+
				"then approved or refused by a moderator."),
		tag(tagService, "The state of the service, and this document."),
	}
}

// The groups of operations.
const (
	tagMarket      = "Market data"
	tagAccount     = "Account"
	tagOrders      = "Orders"
	tagWithdrawals = "Withdrawals"
	tagService     = "Service"
)

func queryParameter(name, text string, schema object) parameter {
	return parameter{name: name, in: "query", text: text, schema: schema}
}

// inQuery is an optional integer of a query.
func inQuery(name, text string, more ...member) parameter {
	return queryParameter(name, text, append(object{{"type", "integer"}}, more...))
}

// limitParameter is the number of wanted entries of a list. The largest value is no part of the
// schema, because more is not refused.
func limitParameter(name, text string, unset, most int) parameter {
	return inQuery(name, text+" More than "+strconv.Itoa(most)+" is lowered to it.", aboveZero,
		member{"default", unset})
}

func offsetParameter() parameter {
	return inQuery("offset", "How many to leave out at the start.", notNegative,
		member{"maximum", api.MaxOffset}, member{"default", 0})
}

func beforeParameter() parameter {
	return inQuery("before",
		"Only those with a smaller id: the next page, with the last id of this one.", int64Format,
		aboveZero)
}

func orderingParameter() parameter {
	return queryParameter("ordering", "By id: -id is newest first, id oldest first.",
		object{{"type", "string"}, {"enum", []any{"-id", "id"}}, {"default", "-id"}})
}

func pairParameter() parameter {
	return queryParameter("pair", "Only of this pair.", pairSchema())
}

func sideParameter(name, text string) parameter {
	return queryParameter(name, text, object{{"type", "string"}, {"enum", []any{"sell", "buy"}}})
}

func currencyParameter(name, text string) parameter {
	return queryParameter(name, text, currencySchema("Code of a currency.", "BTC"))
}

// pathParameter has an example, with which the page can be tried out at once.
func pathParameter(name, text string, example any, schema object) parameter {
	return parameter{name: name, in: "path", text: text, example: example, schema: schema}
}

func pairInPath() parameter {
	return pathParameter("pair", "Name of the pair.", "BTC_USDT", pairSchema())
}

func frameInPath() parameter {
	var all []any
	for f := range market.Frame(market.FrameCount) {
		all = append(all, f.String())
	}
	return pathParameter("timeframe", "Length of a period.", market.Hour.String(),
		choiceSchema("string", "Minutes; D is a day.", all...))
}
