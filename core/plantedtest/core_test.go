package plantedtest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var onlyPlanted = flag.String("planted", "", "plant only faults with this text in their names")

// A coreFault is a Fault in core, with the test that must find it: the package below core, and the
// test's name there.
type coreFault struct {
	Fault
	in, test string
}

const (
	special     = "core/ledger/special.go"
	instructed  = "core/event/instructions_codec.go"
	instructing = "core/trading/codec.go"

	entering  = "core/state/special.go"
	waiting   = "core/state/stops.go"
	changing  = "core/state/amend.go"
	switching = "core/state/switches.go"
	imaging   = "core/state/image_encode.go"

	folded    = "TestAfterEachRecordTheInvariantsHoldAndTheBooksAreTheDecidersBooks"
	imaged    = "TestADecodedImageContinuesAsTheStateItIsOf"
	stored    = "TestTheStoredImageIsStillTheSame"
	told      = "TestApplyRefusesOrdersWithInstructionsThatDoNotFit"
	apart     = "TestApplyRefusesPreventedOrdersThatDoNotFit"
	triggered = "TestApplyRefusesTriggeredOrdersThatDoNotFit"
	changed   = "TestApplyRefusesChangesThatDoNotFit"
	expired   = "TestApplyRefusesExpiriesThatDoNotFit"
	armed     = "TestApplyRefusesSwitchesAndSettingsThatDoNotFit"
	swept     = "TestApplyRefusesSweptOrdersThatDoNotFit"

	reserves = "TestOrdersWithInstructionsConserveMoneyAndReserves"
	need     = "TestTheNeedOfAnAmendIsTheLargestOfAllFills"
	refused  = "TestRecordsOfOrdersWithInstructionsThatCannotBeAreRefused"
	oneForm  = "TestInstructionsHaveOneForm"
)

var coreFaults = []coreFault{
	// the reserves of orders with instructions
	{Fault{"an amend leaks the reserve of before", special,
		"	s.of(o.Account).in(currency).Unlock = held\n",
		"	if s.of(o.Account); !FAULT {\n s.of(o.Account).in(currency).Unlock = held\n	}\n"},
		"ledger", reserves},
	{Fault{"a prevented order is not released", special,
		"	for i := range r.Instructions.Prevented {\n",
		"	for i := range r.Instructions.Prevented {\n		if FAULT {\n			break\n" +
			"		}\n"},
		"ledger", reserves},
	{Fault{"an order that is taken out stays open", "core/ledger/settle.go",
		"	t.Closed = append(t.Closed, order)\n",
		"	if !FAULT {\n		t.Closed = append(t.Closed, order)\n	}\n"},
		"ledger", reserves},
	{Fault{"an order that ends as it is triggered stays open", special,
		"	if !o.Rests() {\n", "	if !o.Rests() && !FAULT {\n"}, "ledger", reserves},
	{Fault{"only the first of the orders that expire is released", special,
		"range r.Expired {",
		"range r.Expired[:map[bool]int{false: len(r.Expired), true: 1}[FAULT]] {"},
		"ledger", reserves},
	{Fault{"an amend reserves as if nothing were filled meanwhile", special,
		", more(was, is, filled))",
		", more(was, is, map[bool]money.Amount{false: filled}[FAULT]))"},
		"ledger", need},
	{Fault{"an amend reserves as if all were filled meanwhile", special,
		"max128(more(was, is, 0)",
		"max128(more(was, is, map[bool]money.Amount{true: filled}[FAULT])"},
		"ledger", need},

	// their records
	{Fault{"a stop's rest is not that of its amount", instructed,
		"o.Remaining, o.FeeAccount, o.Trades = o.Amount, 0, o.Trades[:0]",
		"o.FeeAccount, o.Trades = 0, o.Trades[:0]\nif !FAULT {\no.Remaining = o.Amount\n}"},
		"event", "TestEveryRecordComesBackAsItWasAlsoIntoAUsedRecord"},
	{Fault{"a rest is cancelled without a reason", instructed,
		"r.Order.RestCancelled == (i.Cancelled != 0) &&",
		"(FAULT || r.Order.RestCancelled == (i.Cancelled != 0)) &&"}, "event", refused},
	{Fault{"an order is prevented before a trade that is not there", instructed,
		"(n == 0 ||", "(FAULT || n == 0 ||"}, "event", refused},
	{Fault{"a record expires no order", instructed,
		"	if n == 0 {\n", "	if n == 0 && !FAULT {\n"}, "event", refused},
	{Fault{"an unknown instruction is skipped", instructing,
		"	flags := r.upTo(allInstructions)\n",
		"	flags := r.upTo(most)\n	if FAULT {\n		flags &= allInstructions\n" +
			"	} else if flags > allInstructions {\n		r.bad = true\n	}\n"},
		"trading", oneForm},
	{Fault{"an instruction of 0 is read", instructing,
		"r.bad = r.bad || v == 0\n	return v\n}\n\n// oneOf",
		"r.bad = r.bad || v == 0 && !FAULT\n	return v\n}\n\n// oneOf"}, "trading", oneForm},
	{Fault{"prevented orders are read in any order", instructing,
		"r.bad = r.bad || p.Before < before", "r.bad = r.bad || p.Before < before && !FAULT"},
		"trading", oneForm},
	{Fault{"all prevented orders are kept", instructing,
		"x.Prevented[:min(len(x.Prevented), KeptPrevented)]",
		"x.Prevented[:min(len(x.Prevented), " +
			"KeptPrevented*map[bool]int{false: 1, true: 2}[FAULT])]"},
		"trading", "TestTheFirstPreventedOrdersAreKept"},

	// the checks of the fold
	{Fault{"an own trade is folded where it is forbidden", entering,
		"	if apart && t.MakerAccount == o.Account {\n",
		"	if apart && t.MakerAccount == o.Account && !FAULT {\n"}, "state", apart},
	{Fault{"a prevented order need not be the next", entering,
		"!any || next.ID != v.Order ||", "!any || next.ID != v.Order && !FAULT ||"},
		"state", apart},
	{Fault{"an order goes on behind one that ends it", entering,
		"i.SelfTrade == trading.SelfTradeCancelBoth && len(i.Prevented) > 0 {",
		"i.SelfTrade == trading.SelfTradeCancelBoth && len(i.Prevented) > 0 && !FAULT {"},
		"state", apart},
	{Fault{"an all-or-nothing order is folded in part", entering,
		"	case i.FOK && i.Cancelled != 0 && met > 0, i",
		"	case i.FOK && i.Cancelled != 0 && met > 0 && !FAULT, i"}, "state", told},
	{Fault{"an ioc that might take more is folded", entering,
		"(!crosses || i.Quote", "(FAULT || !crosses || i.Quote"}, "state", told},
	{Fault{"a post-only order that takes is folded", entering,
		"	case i.PostOnly && met > 0:\n", "	case i.PostOnly && met > 0 && !FAULT:\n"},
		"state", "TestApplyRefusesPostOnlyOrdersThatTake"},
	{Fault{"another half that could only be cancelled is folded", entering,
		"		i.PostOnly && i.OCO.Price == 0):\n",
		"		i.PostOnly && i.OCO.Price == 0 && !FAULT):\n"},
		"state", "TestApplyRefusesOtherHalvesThatCouldOnlyBeCancelled"},
	{Fault{"more than its sum is spent", entering,
		"x.Value.Cmp(i.Quote.Balance()) > 0 {", "x.Value.Cmp(i.Quote.Balance()) > 0 && !FAULT {"},
		"state", "TestApplyRefusesSumsThatDoNotFit"},
	{Fault{"a fill after the end is folded", entering,
		"	if due(x.ExpireUs, timeUs) {\n", "	if due(x.ExpireUs, timeUs) && !FAULT {\n"},
		"state", expired},
	{Fault{"trades trigger nothing", entering,
		"	p.Stops.Trade(low, high, o.Side)\n",
		"	if !FAULT {\n		p.Stops.Trade(low, high, o.Side)\n	}\n"}, "state", folded},
	{Fault{"the other half of a closed order waits on", entering,
		"	if twofold(x) {\n		p.Stops.Remove(id)\n",
		"	if twofold(x) && !FAULT {\n		p.Stops.Remove(id)\n"}, "state", folded},
	{Fault{"an order loses the value of its trades as a maker", entering,
		"	addValue(x, t, maker.Amount-maker.Remaining-t.Amount)\n",
		"	if !FAULT {\n		addValue(x, t, maker.Amount-maker.Remaining-t.Amount)\n	}\n"},
		"state", folded},
	{Fault{"any queued order enters", waiting,
		"!any || head.Order.ID != o.ID ||", "!any || head.Order.ID != o.ID && !FAULT ||"},
		"state", triggered},
	{Fault{"an order is triggered in maintenance", waiting,
		"	case p.Halted || s.maintenance.On:\n",
		"	case p.Halted || s.maintenance.On && !FAULT:\n"}, "state", triggered},
	{Fault{"an order expires before its time", waiting,
		"x == nil || !due(x.ExpireUs, r.TimeUs) {", "x == nil || !FAULT && !due(x.ExpireUs, " +
			"r.TimeUs) {"}, "state", expired},
	{Fault{"a change keeps a place that it lost", changing,
		"kept != m.Kept {", "kept != m.Kept && !FAULT {"}, "state", changed},
	{Fault{"a change makes an iceberg show all", changing,
		"was.Display != 0 && i.Display == 0 ||", "was.Display != 0 && i.Display == 0 && !FAULT ||"},
		"state", changed},
	{Fault{"a switch fires before its time", switching,
		"a.rare.switches[at].DueUs != w.DueUs || r.TimeUs < w.DueUs ||",
		"a.rare.switches[at].DueUs != w.DueUs || r.TimeUs < w.DueUs && !FAULT ||"},
		"state", armed},
	{Fault{"a sweep cancels the orders of other switches", switching,
		"!a.ClientIDs.Of(c.Order).HasPrefix(w.Prefix) {",
		"!FAULT && !a.ClientIDs.Of(c.Order).HasPrefix(w.Prefix) {"}, "state", swept},
	{Fault{"a cancel of a waiting order changes the depth", "core/state/apply.go",
		"	if rested {\n		p.changed(r.TimeUs)\n",
		"	if rested || FAULT {\n		p.changed(r.TimeUs)\n"}, "state", folded},
	{Fault{"an image forgets what is hidden", imaging,
		"w.uint(uint64(ice.Hidden))",
		"w.uint(uint64(ice.Hidden) * map[bool]uint64{false: 1}[FAULT])"}, "state", stored},
	{Fault{"an image forgets the queue", imaging,
		"	if stop.Queued {\n", "	if stop.Queued && !FAULT {\n"}, "state", stored},
	{Fault{"an image forgets switches", imaging,
		"uint64(len(a.Switches())))\n	for i := range a.Switches() {\n",
		"uint64(len(a.Switches())*map[bool]int{false: 1}[FAULT]))\n" +
			"	for i := range a.Switches()[:len(a.Switches())*" +
			"map[bool]int{false: 1}[FAULT]] {\n"},
		"state", imaged},
	{Fault{"an image forgets the nonces of a key for parallel use", imaging,
		"	w.uint(uint64(k.Used.count()))\n	for nonce := range k.Used.All() {\n",
		"	if FAULT {\n		w.uint(0)\n		return\n	}\n" +
			"	w.uint(uint64(k.Used.count()))\n	for nonce := range k.Used.All() {\n"},
		"state", imaged},
}

func chosen() (list []coreFault, faults []Fault) {
	for _, f := range coreFaults {
		if strings.Contains(f.Name, *onlyPlanted) {
			list, faults = append(list, f), append(faults, f.Fault)
		}
	}
	return list, faults
}

// Each planted fault has its place in today's code: this is told at once, and not after all builds.
func TestEveryPlantedFaultHasItsPlace(t *testing.T) {
	_, faults := chosen()
	Overlay(t, rootOf(t), t.TempDir(), faults)
}

func rootOf(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// The tests of core can fail. Each mistake of a list is found by one of them, and without a mistake
// none of them fails.
func TestPlantedFaultsAreFound(t *testing.T) {
	list, faults := chosen()
	root, dir := rootOf(t), t.TempDir()
	overlay := Overlay(t, root, dir, faults)
	binaries, clean := map[string]string{}, map[string]bool{}
	for _, f := range list {
		folder := filepath.Join(root, "core", f.in)
		if binaries[f.in] == "" {
			binaries[f.in] = filepath.Join(dir, f.in+".test")
			Build(t, root, overlay, "exchange/core/"+f.in, binaries[f.in])
		}
		run := func(fault string) (out []byte, failed bool) {
			return Run(t, binaries[f.in], folder, fault, "-test.run", "^"+f.test+"$", "-test.v",
				"-test.timeout", "5m", "-rapid.nofailfile",
				// the rarest fault shows once in 30 checks or so: rapid's own 100 miss it at times
				"-rapid.checks=2000", "-rapid.shrinktime=100ms")
		}
		if test := f.in + f.test; !clean[test] {
			clean[test] = true
			out, failed := run("")
			if failed || !strings.Contains(string(out), "--- PASS: "+f.test) {
				t.Fatalf("%s without a planted fault:\n%s", f.test, out)
			}
		}
		if out, failed := run(f.Name); !failed {
			t.Errorf("%s: %s has not noticed", f.Name, f.test)
		} else if found, err := Finding(out, f.test); err != nil {
			t.Errorf("%s: it was not %s that has found it, because %v:\n%s", f.Name, f.test, err,
				out)
		} else {
			t.Logf("%s: %s", f.Name, found)
		}
	}
}

func TestTheDocumentationNamesEveryPlantedFault(t *testing.T) {
	page, err := os.ReadFile("../../docs/proof.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for _, f := range coreFaults {
		fmt.Fprintf(&rows, "| %s | `%s` | `core/%s`, %s |\n", f.Name, f.File, f.in, f.test)
	}
	_, table, _ := strings.Cut(string(page),
		"| planted fault in a record or the ledger | in | found by |\n|---|---|---|\n")
	want := rows.String() + "\n"
	if got := table[:min(len(table), len(want))]; got != want {
		t.Errorf("docs/proof.md has\n%s\nnot\n%s", got, want)
	}
}
