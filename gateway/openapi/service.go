package openapi

import (
	"exchange/gateway/api"
)

// The operations about the service itself, for the OpenAPI document.

func docsFileSchema() object {
	var all []any
	for _, name := range docsFiles {
		all = append(all, name)
	}
	return object{{"type", "string"}, {"enum", all}}
}

func serviceDescriptions() []description {
	return []description{
		{method: "GET", path: "/healthz", id: "getHealth", tag: tagService,
			summary: "Is the process alive?",
			text:    "Answers as long as the process serves requests at all.",
			status:  200, success: "It is.", answer: reference("schemas", "Status")},
		{method: "GET", path: "/readyz", id: "getReadiness", tag: tagService,
			summary: "Is the exchange up?",
			text: "Answers 200 while the engine is up and its store confirms that it is the " +
				"exchange's own. Maintenance does not count: the exchange is ready then, and " +
				"refuses POSTs as in maintenance.",
			status: 200, success: "It is.", answer: reference("schemas", "Status"),
			failures: append([]*api.Failure{api.Paused}, engineFailures...)},
		{method: "GET", path: "/leaderz", id: "getLeadership", tag: tagService,
			summary: "Does this node lead?",
			text: "Answers 200 while this process is the one that leads: of several nodes that " +
				"share a journal one alone, as a load balancer asks. An exchange on one machine " +
				"answers like `/readyz`.",
			status: 200, success: "It does.", answer: reference("schemas", "Status"),
			failures: append([]*api.Failure{api.Paused}, engineFailures...)},
		{method: "GET", path: "/api/v1/time", id: "getTime", tag: tagService,
			summary: "The exchange's time",
			text: "For a client that compares its clock. No request needs the right time: a " +
				"nonce only has to grow.",
			status: 200, success: "The time.", answer: reference("schemas", "Time")},
		{method: "GET", path: "/api/v1/exchange-info", id: "getExchangeInfo", tag: tagService,
			summary: "Rules and limits",
			text: "All that a client should know before its first order: the rules of each pair " +
				"and whether it trades, the limits that hold for each client, and whether there " +
				"is maintenance. A request that is signed, with a key of the permission `read`, " +
				"is answered as a private one, with the deposit instructions.",
			status: 200, success: "Rules and limits.",
			answer: reference("schemas", "ExchangeInfo")},
		{method: "GET", path: "/api/openapi.json", id: "getDocument", tag: tagService,
			summary: "This document",
			text:    "The OpenAPI document of the API.",
			status:  200, success: "The document.", answer: object{{"type", "object"}},
			headers: []string{"ETag"}, cached: true},
		{method: "GET", path: "/docs", id: "getPage", tag: tagService,
			summary: "This document as a page",
			text:    "A page for people. All that it shows comes from this exchange.",
			status:  200, success: "The page.", answer: object{{"type", "string"}},
			kind: "text/html", headers: []string{"ETag"}, cached: true},
		{method: "GET", path: "/docs/{file}", id: "getPageFile", tag: tagService,
			summary: "A file of the page",
			text:    "Its scripts, styles and icons.",
			parameters: []parameter{pathParameter("file", "Name of the file.", docsFiles[0],
				docsFileSchema())},
			status: 200, success: "The file.", answer: object{}, kind: "*/*",
			headers: []string{"ETag"}, cached: true},
	}
}
