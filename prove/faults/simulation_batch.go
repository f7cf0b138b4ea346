package main

// batchFaults are planted in batches of commands.
var batchFaults = []patch{
	{"a batch leaves its last command out", "actors/batch.go",
		"for «_→i», c := range b.list {\n«if FAULT && i > 2 && i == len(b.list)-1 {\nbreak\n}\n" +
			"»w.refuseFor(c, reason)"},
	{"a batch decides its last command first", "actors/batch.go",
		"reason := w.authorize(b.list[0])«\nif n := len(b.list) - 1; FAULT {\nb.list[0], " +
			"b.list[n] = b.list[n], b.list[0]\n}»"},
	{"a used nonce stops the first command of a batch alone", "actors/batch.go",
		"w.refuseFor(c, reason)«\nif FAULT {\nreason = 0\n}»"},
	{"each command of a batch takes the nonce", "actors/batch.go",
		"w.refuseFor(c, reason)«\nif FAULT {\nreason = w.authorize(c)\n}»"},
	{"a batch takes no nonce", "actors/batch.go",
		"reason := «uint8(0)\nif !FAULT {\nreason = »w.authorize(b.list[0])«\n}»"},
	{"commands of a batch overtake those that wait", "actors/batch.go",
		"«if FAULT && w.flight != nil && w.act(c) {\ncontinue\n}\n»w.actOrWait(c)"},
	{"a batch takes one slot", "actors/admission.go",
		"account := list[0].account«\nif FAULT {\nn = 1\n}»"},
}
