package main

// ownFaults are planted in what accounts are told of themselves.
var ownFaults = []patch{
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
	{"an account's event lacks the deposit of its record", "actors/committed/own.go",
		"		x.Deposits = append(x.Deposits, rows.Deposit(r))\n",
		"		if !FAULT {\n			x.Deposits = append(x.Deposits, " +
			"rows.Deposit(r))\n		}\n"},
	{"an account's event lacks the status of a withdrawal that stays pending",
		"actors/committed/own.go", "			if w == nil { // it is pending still\n",
		"			if FAULT && w == nil {\n				return\n			}\n" +
			"			if w == nil { // it is pending still\n"},
	{"an account's event lacks the withdrawal that its record ends", "actors/committed/own.go",
		"		x.Withdrawals = append(x.Withdrawals, WithdrawalRow(w))\n",
		"		if FAULT && !w.Pending() {\n			return\n		}\n" +
			"		x.Withdrawals = append(x.Withdrawals, WithdrawalRow(w))\n"},
	{"an account is not told that it is frozen no more", "actors/committed/own.go",
		"x.Cause, x.Frozen = CauseFreeze, r.Freeze.Frozen",
		"x.Cause, x.Frozen = CauseFreeze, FAULT || r.Freeze.Frozen"},
	{"an account's snapshot lacks its pending withdrawals", "actors/committed/own.go",
		"	for i := range pending.List {\n		s.Withdrawals",
		"	for i := range pending.List {\n		if FAULT {\n			break\n		}\n" +
			"		s.Withdrawals"},
	{"an adjustment has no place among the events of its account", "core/state/events.go",
		"event.KindSwept, event.KindToldFreeze, event.KindAdjusted:\n",
		"event.KindSwept, event.KindToldFreeze, event.KindAdjusted:\n		if FAULT && " +
			"k == event.KindAdjusted {\n			return false\n		}\n"},
	{"a freeze has no place among the events of its account", "core/state/events.go",
		"event.KindSwept, event.KindToldFreeze, event.KindAdjusted:\n",
		"event.KindSwept, event.KindToldFreeze, event.KindAdjusted:\n		if FAULT && " +
			"k == event.KindToldFreeze {\n			return false\n		}\n"},
	{"an account's event lacks the order that its record closes", "actors/committed/own.go",
		"		if f := c.own.forming(o.Account); f != nil {\n			c.own.put(f, rows",
		"		if f := c.own.forming(o.Account); f != nil && !FAULT {\n" +
			"			c.own.put(f, rows"},
}
