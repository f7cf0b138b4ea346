package actors

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/core/plantedtest"
)

// A testedFault is a plantedtest.Fault with the test that must find it: the package's folder below
// actors, and the test's name there.
type testedFault struct{ name, file, old, new, in, test string }

const (
	comparing = "actors/compare.go"
	uploading = "actors/committed/projector.go"
	starting  = "actors/opening.go"

	inActors    = "."
	inCommitted = "committed"
	inObserving = "observing"
	inDuplex    = "duplex"
	inGateway   = "../gateway"
	inRates     = "../gateway/ratelimit"
	inStream    = "../gateway/stream"

	addressed     = "TestAnotherAddressHoldsWithdrawalsAlsoOverARestart"
	closedForGood = "TestAnEmptyAccountIsClosedForGood"

	differences = "TestAnAuditNamesEachPlaceThatDiffersInMemory"
	inParts     = "TestAComparisonFindsWhatDiffersBehindTheFirstPart"
	decidedOnly = "TestABookGoesOnUntilAllThatItHadDecidedIsFolded"
	rests       = "TestAnUploadRestsNineTimesAsLongAsItWorks"
	ends        = "TestAnEndUploadsOneImage"
	linear      = "TestConcurrentClientsSeeOneExchange"
	upToDate    = "TestANodeThatCannotServeBringsTheOthersUpToDate"
	tells       = "TestANodeTellsWhetherItCouldServe"
)

// testedFaults are those that no simulation finds: in comparisons of audits, which only look, in
// the pace of uploads, and where a random run hardly comes; and those that the histories of clients
// are to find by themselves. The last ones are of a cluster with a node that cannot serve, or whose
// file is another one, of observers, of hostile peers, and of sockets that log in.
var testedFaults = []testedFault{
	{"an audit compares no books", comparing, "	for _, p := range c.Pairs() {\n",
		"	for _, p := range c.Pairs() {\n		if FAULT {\n			break\n		}\n",
		inActors, differences},
	{"an audit compares no wallets", comparing,
		"	left := make([]*visit, c.dir.Accounts())\n",
		"	left := make([]*visit, map[bool]int{false: c.dir.Accounts()}[FAULT])\n", inActors,
		differences},
	{"an audit does not compare the two folds", comparing,
		"	if err := c.states(ctx); err != nil {\n",
		"	if FAULT {\n		return nil\n	}\n	if err := c.states(ctx); err != nil {\n",
		inActors, differences},
	{"an audit forgets in which order a book differs", comparing,
		"		if c.find(differ); done {\n",
		"		if !FAULT {\n			c.find(differ)\n		}\n		if done {\n", inActors,
		differences},
	{"an audit compares a part of each book", comparing,
		"done {\n			return nil\n		}\n		if err := c.pause(ctx, stood)",
		"done || FAULT {\n			return nil\n		}\n		if err := c.pause(ctx, stood)",
		inActors, inParts},
	{"an audit compares a part of each wallet", comparing,
		"	case !v.settled:\n			return partly\n",
		"	case !v.settled && !FAULT:\n			return partly\n", inActors, inParts},
	{"a look behind a record is one behind its batch", "actors/committed/committed.go",
		"	if len(c.looks) > 0 {\n", "	if len(c.looks) > 0 && !FAULT {\n", inActors,
		decidedOnly},
	{"a decision that is not durable is a difference", comparing,
		"	if differ != nil && !atRest {\n", "	if differ != nil && !atRest && !FAULT {\n",
		inActors, "TestADecisionThatIsNotDurableIsNoDifference"},

	{"projections go on during a rewrite of the store's file", "actors/ticker.go",
		" now.Sub(r.since) < restLongest\n", " now.Sub(r.since) < restLongest && !FAULT\n",
		inActors, "TestProjectionsWaitForTheEndOfARewrite"},
	{"projections wait for a rewrite however many rows wait", "actors/ticker.go",
		"	return behind < r.most &&", "	return (behind < r.most || FAULT) &&", inActors,
		"TestARewriteThatDoesNotEndHoldsProjectionsForAWhile"},
	{"an upload does not rest", uploading,
		"	wait := min(restFor*now.Sub(p.worked), restMost)\n",
		"	wait := min(restFor*now.Sub(p.worked), restMost)\n	if FAULT {\n		wait = 0\n" +
			"	}\n", inCommitted, rests},
	{"an upload rests however long it has taken", uploading,
		"	if wait > 0 && now.Before(p.until) {\n",
		"	if wait > 0 && (now.Before(p.until) || FAULT) {\n", inCommitted, rests},
	{"an upload rests while the exchange ends", uploading,
		"		case <-t.C:\n		case <-p.hurry:\n",
		"		case <-t.C:\n		case <-map[bool]<-chan struct{}{false: p.hurry}[FAULT]:\n",
		inCommitted, ends},
	{"an end waits for the upload that is under way", uploading, "return errOutdated\n",
		"if !FAULT {\n			return errOutdated\n		}\n", inCommitted, ends},
	{"an end gives up the upload of its own state", uploading, "		if to != p.last {\n",
		"		if to != p.last || FAULT {\n", inCommitted, ends},

	{"a halted pair triggers orders", "actors/book_stops.go", "!b.halted && b.lastTimeUs",
		"(!b.halted || FAULT) && b.lastTimeUs", inActors,
		"TestNothingIsTriggeredWhileBooksAreHeldOrHalted"},
	{"a triggered order waits for the next command", "actors/book_stops.go",
		"		if !b.called {\n", "		if !b.called && !FAULT {\n", inActors,
		"TestOneTurnExecutesSomeOfAQueue"},
	{"a switch that was set anew fires by its old time", "actors/switch.go",
		"w.switches[i].DueUs != c.switching.dueUs {\n",
		"w.switches[i].DueUs != c.switching.dueUs && !FAULT {\n", inActors,
		"TestASwitchThatWasSetAnewDoesNotFireByItsOldTime"},

	{"a wallet begins with a fold that is behind", starting,
		"	side.LookBehind(o.releasing.Load(), ",
		"	side.LookBehind(map[bool]uint64{false: o.releasing.Load()}[FAULT], ", inActors,
		"TestAWalletBeginsBehindTheBatchThatIsReleased"},
	{"a settlement that comes before the state of a wallet is lost", starting,
		"		w.early.Push(m)\n",
		"		if _, is := m.(*settled); !is || !FAULT {\n			w.early.Push(m)\n" +
			"		}\n",
		inActors, "TestAWalletBeginsWithWhatWasReleasedBefore"},
	{"a settlement that a wallet begins with counts again", starting, "s.seq <= m.applied {\n",
		"s.seq <= m.applied {\n				if FAULT {\n					w.applied = " +
			"s.seq - 1\n					w.receive(next)\n					continue\n" +
			"				}\n", inActors, "TestASettlementThatAWalletBeginsWithCountsOnce"},
	{"an amend is refused for its money before its fields", "actors/wallet_amend.go",
		"		c.denied = event.RefusedFunds\n	}\n",
		"		c.denied = event.RefusedFunds\n		if FAULT {\n" +
			"			w.refuse(c, c.denied)\n			return true\n		}\n	}\n",
		inActors, "TestAnAmendIsRefusedForItsMoneyLast"},
	{"a refusal of an amend is not held back", "actors/wallet_amend.go",
		"	case w.tickets.out() > 0:\n",
		"	case w.tickets.out() > 0 && !FAULT:\n",
		inActors, "TestAnAmendThatLacksMoneyWaitsForWhatIsInFlight"},
	{"a look for a client order id does not wait for the wallet", starting,
		"	if !e.scheduler.AwaitContext(", "	if !FAULT && !e.scheduler.AwaitContext(",
		inActors,
		"TestALookForAClientOrderIDBeginsBehindItsWallet"},
	{"an order that waits for its wallet is called missing", "actors/clientids.go",
		"	if c.account.WalletBegan() == 0 {\n		defer e.Announce(c.account.ID, " +
			"c.order.clientID).End()\n",
		"	if c.account.WalletBegan() == 0 {\n		if !FAULT {\n			defer " +
			"e.Announce(c.account.ID, c.order.clientID).End()\n		}\n", inActors,
		"TestAnOrderThatWaitsForItsWalletIsNotMissing"},

	{"a read of a key for parallel use takes no nonce", "actors/wallet.go",
		"	case nonce != 0 && !w.takeNonce(key, nonce):",
		"	case nonce != 0 && (!FAULT || key.Parallel == 0) && !w.takeNonce(key, nonce):",
		inActors, linear},
	{"a wallet keeps too few nonces of a key for parallel use", "actors/wallet_state.go",
		"state.NewNonces(key.Parallel)",
		"state.NewNonces(key.Parallel / map[bool]int{false: 1, true: 4}[FAULT])", inActors,
		linear},
	{"a node that cannot serve does not campaign", "persistence/replicated/node.go",
		"n.waited() && n.votes() {\n",
		"n.waited() && n.votes() && !(FAULT && n.id == 1) {\n", inActors, upToDate},
	{"a node whose fold has failed could serve", "actors/node.go",
		"	if failed := n.life.Err(); failed != nil {\n",
		"	if failed := n.life.Err(); failed != nil && !FAULT {\n", inActors, tells},
	{"a node is not judged when another market part is applied", "actors/node.go",
		"		_, err := n.agreed()\n		n.judged(err)\n",
		"		_, err := n.agreed()\n		if !FAULT {\n			n.judged(err)\n		}\n",
		inActors, tells},
	{"a node that could not serve is not judged again", "actors/node.go",
		"	if at == 0 || n.committed", "	if FAULT || at == 0 || n.committed", inActors,
		"TestANodeThatCouldNotServeIsJudgedAgain"},
	{"a node that cannot serve keeps the lead", "actors/reign.go",
		"		case errors.Is(err, errUnfit), errors.Is(err",
		"		case errors.Is(err, errUnfit) && FAULT:\n" +
			"		case errors.Is(err, errUnfit), errors.Is(err", inActors, upToDate},
	{"a command is decided on less than another node has shown", "actors/reign.go",
		"	return all && e.committed.Released() >= end\n}\n\n// await",
		"	return FAULT || all && e.committed.Released() >= end\n}\n\n// await", inActors,
		"TestNoCommandIsDecidedOnLessThanWasShown"},
	{"the commands of a socket at another node overtake each other", "actors/forwarded.go",
		"	case row != nil:\n", "	case row != nil && !FAULT:\n", inActors,
		"TestASocketsCommandsKeepTheirOrder"},
	{"a login does not wait for what it has cut off", "actors/forwarded.go",
		"			f.begin(x, key.Account)\n		}\n	case forwardLost",
		"			if FAULT {\n				f.begin(x, nil)\n" +
			"				return nil\n			}\n" +
			"			f.begin(x, key.Account)\n		}\n	case forwardLost", inActors,
		"TestNothingIsOnItsWayBehindSettle"},
	{"a session outlives the connection that it came through", "actors/forwarded.go",
		"	f.loseSessions()\n", "	if !FAULT {\n		f.loseSessions()\n	}\n", inActors,
		"TestASessionEndsWithItsConnection"},
	{"clients do not hear that their sessions are over", "actors/forwarding.go",
		"	f.lost = f.lost || len(f.sessions) > 0\n",
		"	f.lost = f.lost || len(f.sessions) > 0 && !FAULT\n", inActors,
		"TestASessionEndsWithItsConnection"},
	{"a read at another node takes no nonce", "actors/forwarded.go",
		"		var q committed.Position\n",
		"		if FAULT {\n			nonce = 0\n		}\n		var q committed.Position\n",
		inActors, "TestCommandsTravelToTheNodeThatLeads"},
	{"a node that knows of a freeze later than others answers a read",
		"actors/committed/committed.go", "	if r.key != nil && c.",
		"	if !FAULT && r.key != nil && c.", inActors, "TestANodeThatFollowsKnowsWhoMayDoWhat"},
	{"a node refuses an account that is free again", "actors/forwarding.go",
		"Current() error { return knows(f.a.Door) }\n",
		"Current() error {\n	if FAULT {\n		return nil\n	}\n" +
			"	return knows(f.a.Door)\n}\n", inActors,
		"TestANodeThatFollowsKnowsWhoMayDoWhat"},
	{"a node that cannot know says that there is no such key", "gateway/auth.go",
		"	if err := c.Current(); err != nil {\n		return nil, err\n",
		"	if err := c.Current(); err != nil && !FAULT {\n		return nil, err\n", inGateway,
		"TestANodeThatHearsLateDecidesByTheNewestState"},
	{"a command that may be carried out counts as refused", "actors/forwarding.go",
		"		x.end(committed.ErrTimeout)\n	}\n}\n",
		"		if FAULT {\n			x.end(ErrNotConfirmed)\n" +
			"			continue\n		}\n" +
			"		x.end(committed.ErrTimeout)\n	}\n}\n", inActors,
		"TestWhatABrokenConnectionLeavesIsUnknown"},
	{"a node that led calls a key ended that it does not know", "actors/forwarded.go",
		"	if err := knows(f.Door); err != nil {\n",
		"	if err := knows(f.Door); err != nil && !FAULT {\n", inActors,
		"TestOnlyTheNodeThatLeadsKnowsThatAKeyHasEnded"},
	{"a node that follows does not learn that a key has ended", "actors/attending.go",
		"			a.dir.RemoveKey(entry)\n",
		"			if !FAULT {\n				a.dir.RemoveKey(entry)\n			}\n",
		inActors, "TestANodeThatFollowsKnowsWhoMayDoWhat"},
	{"a node that cannot serve claims the engine", "actors/reign.go",
		"	o, err := n.agreed()\n	if err != nil {\n",
		"	o, err := n.agreed()\n	if err != nil && !FAULT {\n", inActors, upToDate},
	{"the file of the node that leads counts", "actors/market.go",
		"	if market != nil {\n", "	if market != nil && !FAULT {\n", inActors,
		"TestTheNodesDecideByTheAppliedMarket"},
	{"a market part that is written once more ends what a node shows", "actors/attending.go",
		"!bytes.Equal(is.market, was.market)", "(FAULT || !bytes.Equal(is.market, was.market))",
		inActors, "TestAnAttendanceOutlivesAMarketPartThatSaysTheSame"},
	{"a node lets go what its full archive lacks", "actors/node.go",
		"	if err != nil {\n		return upTo, ",
		"	if err != nil {\n		if FAULT {\n			n.replica.Hold(upTo)\n		}\n" +
			"		return upTo, ", inActors, "TestAFullArchiveStopsNothingAtOtherNodes"},
	{"a node without a snapshot does not find what others have trimmed", "actors/node.go",
		"	replica.Hold(0)\n", "	if !FAULT {\n		replica.Hold(0)\n	}\n", inActors,
		"TestANodeWithoutASnapshotFoldsWhatTheOthersHaveTrimmed"},
	{"a note is written that a member does not read", "actors/operator.go",
		"	if !e.node.reads(persistence.FormatNotes", "	if !FAULT && " +
			"!e.node.reads(persistence.FormatNotes", inActors,
		"TestANoteIsWrittenOnceAllMembersReadIt"},
	{"a withdrawal has a client id, which a member does not read", "actors/reign.go",
		"		case !e.node.readsAll(", "		case !FAULT && !e.node.readsAll(", inActors,
		"TestWithdrawalsHaveClientIDsOnceAllMembersReadThem"},
	{"an account is adjusted, which a member does not read", "actors/operator.go",
		"	case !e.node.reads(", "	case !FAULT && !e.node.reads(", inActors,
		"TestAccountsAreAdjustedOnceAllMembersReadThat"},
	{"a reload leaves the rules of pairs", "actors/reconfigure.go",
		"			p.SetRules(pairs[i])\n",
		"			if !FAULT {\n				p.SetRules(pairs[i])\n			}\n", inActors,
		"TestFeesChangeBetweenTwoOrders"},
	{"a reload leaves the limits", "actors/reconfigure.go", "	e.live.Store(&limits)\n",
		"	if !FAULT {\n		e.live.Store(&limits)\n	}\n", inActors,
		"TestLimitsBelowWhatWaitsRefuseOnlyMore"},
	{"fees count that no account receives", "actors/reconfigure.go",
		"err != nil {\n			return fmt", "err != nil && !FAULT {\n			return fmt",
		inActors, "TestRulesThatCannotBeTakenUpChangeNothing"},
	{"a changed limit on requests forgives what was used", "gateway/ratelimit/limiter.go",
		"	if l == nil || to == nil ||", "	if FAULT || l == nil || to == nil ||", inRates,
		"TestAChangeOfALimitForgivesNoTokens"},
	{"clients are told the limits of before", "gateway/gateway.go",
		"	if a := g.api.Load(); a != nil {\n",
		"	if a := g.api.Load(); a != nil && !FAULT {\n",
		inGateway, "TestLimitsChangeUnderLoad"},
	{"a code that went to the address before is good", "actors/withdrawal.go",
		"		d.VoidCode()\n", "		if !FAULT {\n			d.VoidCode()\n		}\n",
		inActors, addressed},
	{"the address before is not told", "core/state/email.go", "	if before != \"\" {\n",
		"	if before != \"\" && !FAULT {\n", inActors, addressed},
	{"an account with money is closed", "actors/wallet_close.go",
		"		if !h.Balance.IsZero() {\n",
		"		if !h.Balance.IsZero() && !FAULT {\n", inActors, closedForGood},
	{"a restart opens closed accounts", "actors/registry.go", "	if a.ClosedUs() != 0 {\n",
		"	if a.ClosedUs() != 0 && !FAULT {\n", inActors, closedForGood},
	{"the keys of a closed account live on", "actors/registry_close.go", "		g.end(k)\n",
		"		if !FAULT {\n			g.end(k)\n		}\n", inActors, closedForGood},
	{"a deposit on its way does not keep its account open", "actors/registry_close.go",
		"a != nil && g.depositing[a.ID] > 0\n", "a != nil && g.depositing[a.ID] > 0 && !FAULT\n",
		inActors,
		"TestADepositOnItsWayKeepsItsAccountOpen"},
	{"a deposit comes behind the end of its account", "actors/registry_close.go",
		"	return account != nil && account.ID == g.closing\n",
		"	return account != nil && account.ID == g.closing && !FAULT\n", inActors,
		"TestNothingComesBehindAnEndThatIsOnItsWay"},
	{"commands on their way do not keep their account open", "actors/wallet_close.go",
		"	if w.flight != nil && (", "	if !FAULT && w.flight != nil && (", inActors,
		"TestCommandsOnTheirWayKeepTheirAccountOpen"},
	{"an account is closed, which a member does not read", "actors/operator.go",
		"	if !e.node.reads(persistence.FormatAccounts) {\n" +
			"		return Admin{Account: account}, ",
		"	if !FAULT && !e.node.reads(persistence.FormatAccounts) {\n" +
			"		return Admin{Account: account}, ", inActors,
		"TestAccountsAreClosedOnceAllMembersReadThat"},
	{"a wallet keeps more client ids of withdrawals than the state", "actors/withdrawal.go",
		"		if w.rare != nil {\n			w.withdrawalIDs.End",
		"		if w.rare != nil && !FAULT {\n			w.withdrawalIDs.End", inActors,
		"TestAWalletForgetsOldClientIDsOfWithdrawals"},

	// observers
	{"two processes are one observer", "actors/observing/serve.go",
		"	case at.process != process:\n", "	case at.process != process && !FAULT:\n",
		inObserving, "TestOneProcessHasAName"},
	{"an observer shows a row from later", "actors/observing/rows.go",
		"			case !q.whole() && !has(&q.at, row):\n",
		"			case !FAULT && !q.whole() && !has(&q.at, row):\n",
		inObserving, "TestListsOverTheWireAreThoseOfTheStore"},
	{"an observer drops rows that its member lacks", "actors/observing/store.go",
		"		has := s.link != nil && s.link.watermark >= to\n",
		"		has := s.link != nil && (s.link.watermark >= to || FAULT)\n",
		inObserving, "TestRowsAreDroppedOnceTheMemberHasThem"},
	{"an observer asks a member that lacks what was dropped", "actors/observing/history.go",
		"		return l != nil && l.watermark >= s.dropped.Load(), nil\n",
		"		return l != nil && (l.watermark >= s.dropped.Load() || FAULT), nil\n",
		inObserving, "TestAListOutlivesItsMember"},
	{"an observer leaves out batches when it follows another member", "actors/observing/follow.go",
		"	l.over = true\n",
		"	l.over = true\n" +
			"	if FAULT {\n" +
			"		l.s.waiting, l.s.bytes = nil, 0\n" +
			"	}\n",
		inObserving, "TestWhatWaitsForTheFoldIsBounded"},
	{"an observer does not ask for the sequence of a read", "actors/observing/store.go",
		"func (s *Store) Reach(ctx context.Context) (uint64, error) {\n",
		"func (s *Store) Reach(ctx context.Context) (uint64, error) {\n" +
			"	if FAULT {\n" +
			"		end, _ := s.Known()\n" +
			"		return end, nil\n" +
			"	}\n",
		inObserving, "TestEachQuestionIsAskedOfTheMember"},
	{"an observer keeps the material of a key that was revoked", "actors/lent_keys.go",
		"	for _, number := range numbers {\n",
		"	for _, number := range numbers {\n" +
			"		if FAULT {\n" +
			"			break\n" +
			"		}\n",
		inActors, "TestTheMaterialOfAKeyIsForgottenInTime"},
	{"an observer is told e-mail addresses", "core/event/withhold.go",
		"		take(&r.Account.Email)\n",
		"		if !FAULT {\n" +
			"			take(&r.Account.Email)\n" +
			"		}\n",
		inActors, "TestAnObserverIsNotToldWhatOnlyTheServerNeeds"},

	// hostile peers
	{"an observer passes operators' requests on", "actors/observed.go",
		"	conn.Close()\n	h.useless",
		"	if FAULT && purpose == callOperators && h.opts.Operators != nil {\n" +
			"		h.operates(from, conn)\n" +
			"		return\n" +
			"	}\n" +
			"	conn.Close()\n	h.useless",
		inActors, "TestAnObserverOperatesNothing"},
	{"a command is told another one's outcome", "actors/forwarding.go",
		"	f.asked[number] = x\n",
		"	if other, there := f.asked[number-1]; FAULT && there {\n" +
			"		f.asked[number-1], x = x, other\n" +
			"	}\n" +
			"	f.asked[number] = x\n",
		inActors, "TestEachCommandHasItsOwnAnswer"},
	{"the node that leads does not check an operator's token again", "gateway/operator/server.go",
		"	case from.Socket && from.Allowed, ",
		"	case FAULT && from.Node != \"\", from.Socket && from.Allowed, ",
		inGateway, "TestTheNodeThatLeadsChecksTheTokenAgain"},
	{"an operator's request is passed on twice", "gateway/operator/relay.go",
		"	case standing.Leader == \"\" || from.Node != \"\":\n",
		"	case standing.Leader == \"\" || from.Node != \"\" && !FAULT:\n",
		inGateway, "TestNoRequestIsPassedOnTwice"},
	{"a slow observer keeps its image from all others", "actors/observing/feed.go",
		"	return !i.began.IsZero() && took >= p.grace && ",
		"	return !FAULT && !i.began.IsZero() && took >= p.grace && ",
		inObserving, "TestASlowObserverKeepsNoOtherFromItsImage"},
	{"a long query of an observer keeps its turn while it rests", "actors/committed/turns.go",
		"{ g.rest() }\n", "{\n	if !FAULT {\n		g.rest()\n	}\n}\n",
		inCommitted, "TestQueriesOfObserversTakeTurnsWithTheOthers"},
	{"a message that does not end keeps its connection", "actors/duplex/duplex.go",
		"	if !h.due.IsZero() && h.due.Before(until) {\n",
		"	if !h.due.IsZero() && h.due.Before(until) && !FAULT {\n",
		inDuplex, "TestAMessageThatDoesNotEndEndsAWire"},
	{"an account's events are told to others, too", "gateway/stream/own.go",
		"	for _, c := range s.owners[m.account] {\n",
		"	for other, list := range s.owners {\n" +
			"		for _, c := range list {\n" +
			"			if FAULT && other != m.account {\n" +
			"				s.put(c, ownDelivery(m.list))\n" +
			"			}\n" +
			"		}\n" +
			"	}\n" +
			"	for _, c := range s.owners[m.account] {\n",
		inStream, "TestEventsAppliedToASnapshotGiveTheAccountAtEachSequence"},
	{"the end of a watch ends a newer one of the account", "actors/committed/own_buffer.go",
		"f.channel == m.Channel && f.token == m.Token {",
		"f.channel == m.Channel && (f.token == m.Token || FAULT) {",
		inCommitted, "TestTheEndOfAWatchLeavesANewerOneAlone"},
	{"an event of an account is lost at its desk", "gateway/stream/desk.go",
		"		if a.frames == nil {\n",
		"		if FAULT && x.Seq%3 == 0 {\n			continue\n		}\n" +
			"		if a.frames == nil {\n",
		inStream, "TestEventsAppliedToASnapshotGiveTheAccountAtEachSequence"},
	{"the end of a key leaves its client among the account's", "gateway/stream/logins.go",
		"	if c.login.Load() == m.login {\n",
		"	if c.login.Load() == m.login && !FAULT {\n",
		inStream, "TestNothingOfAnAccountIsToldBehindTheEndOfItsKey"},
	{"a login that ends a socket lets its commands pass", "gateway/stream/login.go",
		"	if !l.cutUp {\n		give()\n	}\n	return !l.cutUp\n",
		"	if !l.cutUp || FAULT {\n		give()\n	}\n	return !l.cutUp || FAULT\n",
		inStream, "TestALoginEndsAnEarlierSocketForGood"},
	{"a command of a socket is answered before it is carried out", "gateway/stream/orders.go",
		"	o.use(guard, call)\n",
		"	if FAULT {\n		o.answer(acknowledgement(call, 0))\n	}\n" +
			"	o.use(guard, call)\n",
		inGateway, "TestASocketIsAnsweredAsARequestIs"},
}

func tested(list []testedFault) (faults []plantedtest.Fault) {
	for _, f := range list {
		faults = append(faults, plantedtest.Fault{Name: f.name, File: f.file, Old: f.old,
			New: f.new})
	}
	return faults
}

// findTested wants each of testedFaults found by the test that is named beside it, which passes
// without the mistake. binaries are the tests of the packages, with all faults.
func findTested(t *testing.T, binaries map[string]string) {
	clean := map[string]bool{}
	for _, f := range testedFaults {
		if !strings.Contains(f.name, *onlyPlanted) {
			continue
		}
		run := func(fault string) (out []byte, failed bool) {
			return plantedtest.Run(t, binaries[f.in], f.in, fault, "-test.run", "^"+f.test+"$",
				"-test.v", "-test.timeout", "10m")
		}
		if !clean[f.test] {
			if out, failed := run(""); failed {
				t.Fatalf("%s without a planted fault:\n%s", f.test, out)
			}
			clean[f.test] = true
		}
		if out, failed := run(f.name); !failed {
			t.Errorf("%s: %s has not noticed", f.name, f.test)
		} else if found, err := plantedtest.Finding(out, f.test); err != nil {
			t.Errorf("%s: it was not %s that has found it, because %v:\n%s", f.name, f.test, err,
				out)
		} else {
			t.Logf("%s: %s", f.name, found)
		}
	}
}

func TestTheDocumentationNamesEveryFaultOfAuditsAndUploads(t *testing.T) {
	page, err := os.ReadFile("../docs/proof.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, f := range testedFaults {
		fmt.Fprintf(&want, "| %s | `%s` | `%s`, %s |\n", f.name, f.file,
			filepath.Join("actors", f.in), f.test)
	}
	_, table, _ := strings.Cut(string(page),
		"| planted fault of an audit or an upload | in | found by |\n|---|---|---|\n")
	if got := table[:min(len(table), want.Len())]; got != want.String() {
		t.Errorf("docs/proof.md has\n%s\nnot\n%s", got, want.String())
	}
}
