package main

// ownFaults are planted in the feeds of accounts' own events.
var ownFaults = []patch{
	{"an account's client that comes back does not receive an event",
		"actors/committed/own_buffer.go",
		"«if FAULT && at < len(f.kept) {\nat++\n}\n»return slices.Clone(f.kept[at:]), true"},
	{"an account receives an event of another one", "actors/committed/own_buffer.go",
		"return «FAULT || »d.channel == f.channel })"},
	{"an account's event lacks the balances of the counterparty", "actors/committed/own.go",
		"for j := range t.Changes() {«\nif FAULT && i > 0 {\nbreak\n}»"},
	{"an account's event lacks the deposit of its record", "actors/committed/own.go",
		"«if !FAULT {\n»x.Deposits = append(x.Deposits, rows.Deposit(r))«\n}»"},
	{"an account's event lacks the status of a withdrawal that stays pending",
		"actors/committed/own.go",
		"if «FAULT && w == nil {\nreturn\n}\nif »w == nil { // still pending"},
	{"an account's event lacks the withdrawal that its record ends", "actors/committed/own.go",
		"«if FAULT && !w.Pending() {\nreturn\n}\n»x.Withdrawals = append(x.Withdrawals, " +
			"WithdrawalRow(w))"},
	{"an account is not notified that it is no longer frozen", "actors/committed/own.go",
		"x.Cause, x.Frozen = CauseFreeze, «FAULT || »r.Freeze.Frozen"},
	{"an account's snapshot lacks its pending withdrawals", "actors/committed/own.go",
		"for i := range pending.List {\n«if FAULT {\nbreak\n}\n»s.Withdrawals"},
	{"an adjustment has no place among the events of its account", "core/state/events.go",
		"event.KindSwitchCancel, event.KindFreeze, event.KindAdjusted:«\nif FAULT && k == " +
			"event.KindAdjusted {\nreturn false\n}»"},
	{"a freeze has no place among the events of its account", "core/state/events.go",
		"event.KindSwitchCancel, event.KindFreeze, event.KindAdjusted:«\nif FAULT && k == " +
			"event.KindFreeze {\nreturn false\n}»"},
	{"an account's event lacks the order that its record closes", "actors/committed/own.go",
		"if f := c.own.forming(o.Account); f != nil «&& !FAULT »{\nc.own.put(f, rows"},
}
