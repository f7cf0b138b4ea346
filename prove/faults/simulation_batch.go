package main

// batchFaults are planted where several commands go together.
var batchFaults = []patch{
	{"a batch leaves its last command out", "actors/batch.go",
		"	for _, c := range b.list {\n		w.refuseFor(c, reason)\n",
		"	for i, c := range b.list {\n		if FAULT && i > 2 && i == len(b.list)-1 {\n" +
			"			break\n		}\n		w.refuseFor(c, reason)\n"},
	{"a batch decides its last command first", "actors/batch.go",
		"	reason := w.admits(b.list[0])\n",
		"	reason := w.admits(b.list[0])\n	if n := len(b.list) - 1; FAULT {\n" +
			"		b.list[0], b.list[n] = b.list[n], b.list[0]\n	}\n"},
	{"a used nonce stops the first command of a batch alone", "actors/batch.go",
		"		w.refuseFor(c, reason)\n",
		"		w.refuseFor(c, reason)\n		if FAULT {\n			reason = 0\n		}\n"},
	{"each command of a batch takes the nonce", "actors/batch.go",
		"		w.refuseFor(c, reason)\n",
		"		w.refuseFor(c, reason)\n" +
			"		if FAULT {\n			reason = w.admits(c)\n		}\n"},
	{"a batch takes no nonce", "actors/batch.go",
		"	reason := w.admits(b.list[0])\n",
		"	reason := uint8(0)\n	if !FAULT {\n		reason = w.admits(b.list[0])\n	}\n"},
	{"commands of a batch overtake those that wait", "actors/batch.go",
		"		w.actOrWait(c)\n",
		"		if FAULT && w.flight != nil && w.act(c) {\n			continue\n		}\n" +
			"		w.actOrWait(c)\n"},
	{"no order of a batch is announced before the looks", "actors/batch.go",
		"				defer e.Announce(c.account.ID, c.order.clientID).End()\n",
		"				if !FAULT {\n" +
			"					defer e.Announce(c.account.ID, c.order.clientID).End()\n" +
			"				}\n"},
	{"a command of a batch whose look fails keeps its slot", "actors/batch.go",
		"	e.giveBack(list[i])\n	list[i].Free()\n",
		"	if !FAULT {\n		e.giveBack(list[i])\n	}\n	list[i].Free()\n"},
	{"a batch takes one slot", "actors/admission.go",
		"	account := list[0].account\n",
		"	account := list[0].account\n	if FAULT {\n		n = 1\n	}\n"},
}
