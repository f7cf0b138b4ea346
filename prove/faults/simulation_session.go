package main

// sessionFaults are planted where the end of a key's sessions cancels orders, and where commands of
// clients that have logged in need no nonce.
var sessionFaults = []patch{
	{"the end of one of a key's sessions counts as the last", "actors/session.go",
		"(key, 0); dropped && !others {\n", "(key, 0); dropped && (!others || FAULT) {\n"},
	{"the end of a key's last session gives its switch no time", "actors/session.go",
		"		s.DueUs = c.timeUs + int64(s.Seconds)*1e6\n",
		"		if !FAULT {\n			s.DueUs = c.timeUs + int64(s.Seconds)*1e6\n		}\n"},
	{"a session is answered before its switch is durable", "actors/session.go",
		"	if others && !w.tickets.allBack(other.ticket) {\n",
		"	if others && !FAULT && !w.tickets.allBack(other.ticket) {\n"},
	{"a session begins beside one that cancels other orders", "actors/session.go",
		"(wants.Key); armed != wants {\n", "(wants.Key); armed != wants && !FAULT {\n"},
	{"a session does not take the time of its switch back", "actors/session.go",
		"	} else {\n		w.setSwitch(c, &wants)\n",
		"	} else if w.rare != nil && FAULT && w.findSwitch(switchID{wants.Key, true}) < " +
			"len(w.switches) {\n		w.out.finish(c, Accepted)\n	} else {\n" +
			"		w.setSwitch(c, &wants)\n"},
	{"the orders of a client that leaves are cancelled", "actors/session.go",
		"	if c.switching.change == sessionLeaves {\n",
		"	if c.switching.change == sessionLeaves && !FAULT {\n"},
	{"a command over a socket needs a nonce", "actors/wallet.go",
		"	case c.gate == nil && !w.takeNonce",
		"	case (c.gate == nil || FAULT) && !w.takeNonce"},
	{"a start is not the end of the sessions before it", "actors/recovery.go",
		"			if armed.DueUs == 0 {\n", "			if armed.DueUs == 0 && !FAULT {\n"},
}
