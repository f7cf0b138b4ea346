package actors

// ownFaults are planted in what accounts are told of themselves.
var ownFaults = []plantedFault{
	{"an account's client that comes back is not told an event", "actors/committed/own_buffer.go",
		"	return slices.Clone(f.kept[at:]), true\n",
		"	if FAULT && at < len(f.kept) {\n		at++\n	}\n" +
			"	return slices.Clone(f.kept[at:]), true\n"},
	{"an account is told an event of another one", "actors/committed/own_buffer.go",
		"return t.channel == f.channel })", "return FAULT || t.channel == f.channel })"},
	{"an account's event lacks the balances of the counterparty", "actors/committed/own.go",
		"		for j := range t.Changes() {\n",
		"		for j := range t.Changes() {\n			if FAULT && i > 0 {\n" +
			"				break\n			}\n"},
	{"an account's event lacks the order that its record closes", "actors/committed/own.go",
		"		if f := c.own.forming(o.Account); f != nil {\n			c.own.put(f, rows",
		"		if f := c.own.forming(o.Account); f != nil && !FAULT {\n" +
			"			c.own.put(f, rows"},
}
