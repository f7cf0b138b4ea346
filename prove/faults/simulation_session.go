package main

// sessionFaults are planted in the cancels at the end of a key's sessions, and in the commands of
// logged-in clients, which need no nonce.
var sessionFaults = []patch{
	{"the end of one of a key's sessions counts as the last", "actors/session.go",
		"(key, 0); dropped && «(»!others «|| FAULT) »{"},
	{"the end of a key's last session gives its switch no time", "actors/session.go",
		"«if !FAULT {\n»s.DueUs = c.timeUs + int64(s.Seconds)*1e6«\n}»"},
	{"a session is answered before its switch is durable", "actors/session.go",
		"if others && !«FAULT && !»w.tickets.allBack(other.ticket) {"},
	{"a session begins beside one that cancels other orders", "actors/session.go",
		"(wants.Key); armed != wants «&& !FAULT »{"},
	{"a session does not take the time of its switch back", "actors/session.go",
		"} else «if w.rare != nil && FAULT && w.findSwitch(switchID{wants.Key, true}) < " +
			"len(w.switches) {\nw.out.finish(c, Accepted)\n} else »{\nw.setSwitch(c, &wants)"},
	{"the orders of a client that leaves are cancelled", "actors/session.go",
		"if c.switchRequest.change == SessionLeaves «&& !FAULT »{"},
	{"a command over a socket needs a nonce", "actors/wallet.go",
		"case «(»c.gate == nil «|| FAULT) »&& !w.takeNonce"},
	{"a start is not the end of the sessions before it", "actors/recovery.go",
		"if armed.DueUs == 0 «&& !FAULT »{"},
}
