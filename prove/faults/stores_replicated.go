package main

// replicatedFaults are those in the store of several nodes and its parts.
var replicatedFaults = []Fault{
	// cuts of the log
	{"a crash in a cut leaves a hole", "persistence/internal/wal/cut.go",
		"		n := len(l.segments) - 1\n		gone := l.segments[n]\n		l.mu.Lock()\n" +
			"		l.segments = l.segments[:n]\n",
		"		n := len(l.segments) - 1\n		gone := l.segments[n]\n		l.mu.Lock()\n" +
			"		if FAULT {\n			gone = l.segments[keep+1]\n" +
			"			copy(l.segments[keep+1:], l.segments[keep+2:])\n		}\n" +
			"		l.segments = l.segments[:n]\n",
		"persistence/internal/wal", "TestACrashInACutLosesNothingBelowIt"},
	{"a cut is not synced before it takes its place", "persistence/internal/wal/cut.go",
		"	if err == nil {\n		err = file.Sync()\n	}\n	if err == nil " +
			"{\n		err = l.fs.Rename",
		"	if err == nil && !FAULT {\n		err = file.Sync()\n	}\n	if err == nil {\n" +
			"		err = l.fs.Rename",
		"persistence/internal/wal", "TestACrashInACutLosesNothingBelowIt"},
	{"what is cut off comes back", "persistence/internal/wal/cut.go",
		"		if n := min(int64(len(b)), e.at-at); n > 0 {\n",
		"		n := min(int64(len(b)), e.at-at)\n		if FAULT {\n			n = " +
			"int64(len(b))\n" +
			"		}\n		if n > 0 {\n",
		"persistence/internal/wal", "TestWhatIsCutOffStaysGone"},
	{"a damaged head ends the log", "persistence/internal/wal/log.go",
		"	if s.damaged {\n", "	if s.damaged && !FAULT {\n", "persistence/internal/wal",
		"TestALogWithADamagedHeadIsNoShorterLog"},
	{"a cut in a batch loses its first part", "persistence/internal/wal/cut.go",
		"	if e.part == nil {\n", "	if e.part == nil || FAULT {\n", "persistence/internal/wal",
		"TestACutLogGoesOn"},

	// what a node has on its disk
	{"a vote is not written", "persistence/internal/raftlog/log.go",
		"	l.state.Term, l.state.Vote = term, vote\n	return l.state.write()\n",
		"	l.state.Term, l.state.Vote = term, vote\n	if FAULT {\n		return nil\n	}\n" +
			"	return l.state.write()\n",
		"persistence/internal/raftlog", "TestAPowerCutTakesBackNoVote"},
	{"a vote is in one copy", "persistence/internal/raftlog/state.go",
		"	for _, at := range []int64{0, copyBytes} {\n",
		"	for _, at := range []int64{0, copyBytes} {\n		if FAULT && f.Count > 3 && at " +
			"> 0 {\n" +
			"			break\n		}\n",
		"persistence/internal/raftlog", "TestNoDamageTakesBackAVote"},
	{"a log that has lost its end is opened", "persistence/internal/raftlog/log.go",
		"!acknowledged.Fits(mark) {\n", "!acknowledged.Fits(mark) && !FAULT {\n", "persistence/internal/raftlog",
		"TestALogThatHasLostItsEndIsRefused"},
	{"a log without its HEAD is opened", "persistence/internal/raftlog/log.go",
		"	} else if l.head == nil {\n", "	} else if l.head == nil && !FAULT {\n", "persistence/internal/raftlog",
		"TestALogThatHasLostItsEndIsRefused"},
	{"entries are taken back while HEAD has them", "persistence/internal/raftlog/log.go",
		"	if l.head.Acknowledged().Seq > index {\n",
		"	if l.head.Acknowledged().Seq > index && !FAULT {\n", "persistence/internal/raftlog",
		"TestALogHasWhatWasAppendedLast"},

	// the machine
	{"an append that does not follow on is done", "persistence/internal/machine/state.go",
		"	case s.last != e.Prev:\n", "	case s.last != e.Prev && !FAULT:\n", "persistence/internal/machine",
		"TestAllShortLogsDoWhatTheModelSays"},
	{"an owner that was followed appends", "persistence/internal/machine/state.go",
		"	if e.Token != s.token || !s.Beat().Held() {\n",
		"	if e.Token != s.token && !FAULT || !s.Beat().Held() {\n", "persistence/internal/machine",
		"TestAllShortLogsDoWhatTheModelSays"},
	{"the same append is done twice", "persistence/internal/machine/state.go",
		"	case s.last == e.Next && s.digest == e.Digest:\n",
		"	case s.last == e.Next && s.digest == e.Digest && !FAULT:\n",
		"persistence/replicated", "TestAnAnswerGoesToItsProposalAlone"},
	{"an image forgets the nonces of reads", "persistence/internal/machine/image.go",
		"		s.reads[key] = d.u64()\n", "		s.reads[key] = d.u64()\n		if FAULT {\n" +
			"			delete(s.reads, key)\n		}\n", "persistence/internal/machine",
		"TestALogThatIsAppliedAgainGivesTheSameAnswers"},
	{"an image forgets a member", "persistence/internal/machine/members.go",
		"		s.members = append(s.members, m)\n	}\n}\n",
		"		if FAULT && len(s.members) > 1 {\n			continue\n		}\n" +
			"		s.members = append(s.members, m)\n	}\n}\n", "persistence/internal/machine",
		"TestALogThatIsAppliedAgainGivesTheSameAnswers"},

	// the node
	{"a leader hears of entries before they are written", "persistence/replicated/node.go",
		"	if err := n.log.Append(m.Entries, n.commit); err != nil {\n		return " +
			"err\n	}\n" +
			"	return n.respond(m)\n",
		"	if FAULT {\n		if err := n.respond(m); err != nil {\n			return " +
			"err\n		}\n" +
			"		return n.log.Append(m.Entries, n.commit)\n	}\n" +
			"	if err := n.log.Append(m.Entries, n.commit); err != nil {\n		return " +
			"err\n	}\n" +
			"	return n.respond(m)\n",
		"persistence/replicated", "TestThreeNodesAreOneJournal"},
	{"a vote is told before it is written", "persistence/replicated/node.go",
		"		if err := n.log.Vote(m.GetTerm(), m.GetVote()); err != nil {\n",
		"		if FAULT {\n			if err := n.respond(m); err != nil " +
			"{\n				return err\n" +
			"			}\n			m.Responses = nil\n		}\n" +
			"		if err := n.log.Vote(m.GetTerm(), m.GetVote()); err != nil {\n",
		"persistence/replicated", "TestThreeNodesAreOneJournal"},
	{"an unknown append is told to be refused", "persistence/replicated/proposals.go",
		"			c <- result{err: fmt.Errorf(\"the outcome is unknown: %w\", why)}\n",
		"			if FAULT {\n				c <- result{answer: machine.Answer{Outcome: " +
			"machine.Fenced}}\n				continue\n			}\n" +
			"			c <- result{err: fmt.Errorf(\"the outcome is unknown: %w\", why)}\n",
		"persistence/replicated", "TestThreeNodesAreOneJournal"},
	{"an answer goes to another proposal", "persistence/replicated/proposals.go",
		"	s := p.waiting[number]\n",
		"	for n := range p.waiting {\n		if FAULT {\n			number = max(number, " +
			"n)\n" +
			"		}\n	}\n	s := p.waiting[number]\n",
		"persistence/replicated", "TestAnAnswerGoesToItsProposalAlone"},
	{"an answer of an earlier start is taken", "persistence/replicated/node.go",
		"	if e.ID.Node == n.id && e.ID.Boot == n.log.Own().Boot {\n",
		"	if e.ID.Node == n.id && (FAULT || e.ID.Boot == n.log.Own().Boot) {\n",
		"persistence/replicated", "TestAnAnswerOfAnEarlierStartGoesToNoCaller"},
	{"the log is there before the store is", "persistence/replicated/open.go",
		"			if err := w.fill(ctx); err != nil {\n",
		"			if FAULT {\n				if err := w.former.form(w.files, w.dir); " +
			"err != nil {\n					return err\n				}\n			}\n" +
			"			if err := w.fill(ctx); err != nil {\n",
		"persistence/replicated", "TestANodeJoinsBehindTheForgottenBeginning"},
	{"a voter that can get nothing more counts as living", "persistence/replicated/membership.go",
		"			progress[m.ID].Next > n.trim.begins {\n",
		"			(FAULT || progress[m.ID].Next > n.trim.begins) {\n", "persistence/replicated",
		"TestALogIsKeptForAMemberOnlyWithinItsBound"},
	{"a learner does not tell where its log begins", "persistence/replicated/copying.go",
		"		if s.Lead != 0 && s.Lead != n.id {\n",
		"		if s.Lead != 0 && s.Lead != n.id && !FAULT {\n", "persistence/replicated",
		"TestALearnerWhoseLogBeginsLaterGetsTheRest"},
	{"a copy is older than what is forgotten", "persistence/replicated/copying.go",
		"err == nil && seq < end {\n", "err == nil && seq < end && !FAULT {\n", "persistence/replicated",
		"TestACopyThatIsTooOldIsRefused"},
	{"any copy is asked for", "persistence/replicated/copying.go",
		"		seq, err := w.fetch(ctx, from, end)\n",
		"		if FAULT {\n			end = 0\n		}\n" +
			"		seq, err := w.fetch(ctx, from, end)\n", "persistence/replicated",
		"TestASourceThatHasNoCopyOfUseSaysSo"},
	{"a node that is removed asks on for a copy", "persistence/replicated/copying.go",
		"by := w.former.removedBy(); by != \"\" {\n",
		"by := w.former.removedBy(); by != \"\" && !FAULT {\n", "persistence/replicated",
		"TestANodeThatIsRemovedWhileItFillsEnds"},
	{"a node that leads no more removes one that joins", "persistence/replicated/forming.go",
		"	case leads || u.by == from:\n", "	case !FAULT && (leads || u.by == from):\n",
		"persistence/replicated", "TestAFewWordsRemoveNoNode"},
	{"the floor is above an owner's images", "persistence/replicated/node.go",
		"		e.Floor = min(n.floor(), n.index.upTo(e.Next))\n",
		"		e.Floor = min(n.floor(), n.index.upTo(e.Next))\n		if FAULT {\n" +
			"			e.Floor = n.floor()\n		}\n", "persistence/replicated",
		"TestALogIsKeptForALearner"},
	{"a log is cut although a learner needs it", "persistence/replicated/node.go",
		"		least = min(least, p.Match)\n",
		"		if FAULT && p.IsLearner {\n			continue\n		}\n" +
			"		least = min(least, p.Match)\n",
		"persistence/replicated", "TestALogIsKeptForALearner"},
	{"the log is forgotten while a member lacks it", "persistence/replicated/trimming.go",
		"	return min(n.machine.Floor(), n.applied, n.index.upTo(seq))\n",
		"	if FAULT {\n		return min(n.applied, n.index.upTo(seq))\n	}\n" +
			"	return min(n.machine.Floor(), n.applied, n.index.upTo(seq))\n",
		"persistence/replicated", "TestALogIsForgottenWhenNothingNeedsIt"},
	{"the log is forgotten above the archive's end", "persistence/replicated/journal.go",
		"	allowed := min(upTo, needed, s.held.Load())\n",
		"	allowed := min(upTo, needed, s.held.Load())\n	if FAULT {\n" +
			"		allowed = min(upTo, needed)\n	}\n",
		"persistence/replicated", "TestANodeKeepsTheLogThatItsArchiveLacks"},
	{"an archive does not find what is held for it", "persistence/replicated/journal.go",
		"	var err, stopped error\n",
		"	if FAULT {\n		from = max(after, v.trimmed)\n	}\n	var err, stopped error\n",
		"persistence/replicated", "TestANodeKeepsTheLogThatItsArchiveLacks"},
	{"the log is forgotten while an image needs it", "persistence/replicated/trimming.go",
		"	seq := min(n.machine.Trimmed(), n.trim.allowed)\n",
		"	seq := min(n.machine.Trimmed(), n.trim.allowed)\n	if FAULT {\n" +
			"		seq = n.machine.Trimmed()\n	}\n",
		"persistence/replicated", "TestALogIsForgottenWhenNothingNeedsIt"},
	{"a copy without what it has acknowledged goes on", "persistence/replicated/receive.go",
		"		(err != nil || m.GetCommit() > last) {\n",
		"		(err != nil || m.GetCommit() > last) && !FAULT {\n", "persistence/replicated",
		"TestAnOlderCopyOfAFolderEndsWhenItLacksWhatItHasAcknowledged"},
	{"an older start of a peer is heard", "persistence/replicated/receive.go",
		"	case f.start == seen:\n", "	case f.start == seen || FAULT:\n", "persistence/replicated",
		"TestAnOlderCopyOfAFolderEndsItsNode"},
	{"a later number is a later start", "persistence/replicated/receive.go",
		"	case seen.Boot == 0, f.kind",
		"	case seen.Boot == 0, FAULT && f.start.Boot > seen.Boot, f.kind", "persistence/replicated",
		"TestAnOlderCopyOfAFolderEndsItsNode"},
	{"a start follows on any other", "persistence/internal/raftlog/log.go",
		"	return back >= uint64(len(starts)) ||",
		"	return FAULT || back >= uint64(len(starts)) ||",
		"persistence/replicated", "TestAnOlderCopyOfAFolderEndsItsNode"},
	{"a copy that was refused is opened again", "persistence/internal/raftlog/state.go",
		"	case f.Refused:\n", "	case f.Refused && !FAULT:\n", "persistence/replicated",
		"TestAnOlderCopyOfAFolderEndsItsNode"},
	{"a node that follows does not tell of its start", "persistence/replicated/node.go",
		"	if n.ticks%askTicks == 1 || n.ticks < askTicks {\n",
		"	if !FAULT && (n.ticks%askTicks == 1 || n.ticks < askTicks) {\n",
		"persistence/replicated", "TestAStartIsKnownToAllPeers"},
	{"a change is told before it is known for good", "persistence/replicated/membership.go",
		"	if err := n.log.Commit(n.applied); err != nil {\n",
		"	if FAULT {\n	} else if err := n.log.Commit(n.applied); err != nil {\n",
		"persistence/replicated",
		"TestAChangeIsKnownToBeCommittedBehindACrash"},
	{"an append is acknowledged before a majority has it", "persistence/replicated/node.go",
		"	n.add(e, caller)\n	return nil\n",
		"	n.add(e, caller)\n	if FAULT && e.Kind == machine.Append {\n" +
			"		n.answer(e.ID.Number, machine.Answer{Outcome: machine.Done})\n	}\n" +
			"	return nil\n",
		"persistence/replicated", "TestThreeNodesAreOneJournal"},
	{"a claim is answered before it is applied", "persistence/replicated/node.go",
		"	n.term = status.GetTerm()\n	n.add(e, caller)\n",
		"	n.term = status.GetTerm()\n	if FAULT && e.Kind == machine.Acquire {\n" +
			"		caller <- result{answer: machine.Answer{Outcome: machine.Done,\n" +
			"			Token: persistence.Token(fmt.Sprintf(\"%d:%s\", n.machine.Epoch()+1, " +
			"e.Unique)),\n			Seq: n.machine.Beat().End.Seq}}\n" +
			"		caller = make(chan result, 1)\n	}\n	n.add(e, caller)\n",
		"persistence/replicated", "TestThreeNodesAreOneJournal"},
	{"what an entry does depends on the node's folder", "persistence/replicated/node.go",
		"	a := n.machine.Apply(e)\n",
		"	a := n.machine.Apply(e)\n	if FAULT && a.Outcome == machine.Fenced && " +
			"n.trim.begins > 0 {\n		a.Outcome = machine.Done\n	}\n",
		"persistence/replicated", "TestThreeNodesAreOneJournal"},
	{"a node is believed to be any member", "persistence/replicated/membership.go",
		"		return name == from\n", "		return name == from || FAULT\n", "persistence/replicated",
		"TestAFrameThatMakesNoSenseIsDropped"},
	{"the journal has refused appends", "persistence/replicated/node.go",
		"	if e.Kind == machine.Append && a.Outcome == machine.Done {\n",
		"	if e.Kind == machine.Append && (FAULT || a.Outcome == machine.Done) {\n",
		"persistence/replicated", "TestThreeNodesAreOneJournal"},
	{"an image of a fenced owner is published", "persistence/replicated/local.go",
		"fenced := f.s.owned(f.tok); fenced != nil {\n",
		"fenced := f.s.owned(f.tok); fenced != nil && !FAULT {\n", "persistence/replicated",
		"TestConformance/three nodes/a snapshot of a fenced owner is refused"},
	{"an owner is confirmed by its own node", "persistence/replicated/confirming.go",
		"	n.questions.next = append(n.questions.next, q)\n",
		"	if FAULT {\n		n.questions.asked = append(n.questions.asked, q)\n" +
			"		n.answerAsked()\n		return\n	}\n" +
			"	n.questions.next = append(n.questions.next, q)\n",
		"persistence/replicated", "TestThreeNodesAreOneJournal"},
	{"a question joins the round that is under way", "persistence/replicated/confirming.go",
		"	n.questions.next = append(n.questions.next, q)\n",
		"	if FAULT && len(n.questions.asked) > 0 {\n" +
			"		n.questions.asked = append(n.questions.asked, q)\n		return\n	}\n" +
			"	n.questions.next = append(n.questions.next, q)\n",
		"persistence/replicated", "TestACutOffNodeConfirmsNoOwner"},
	{"nonces of reads are forgotten at a fail-over", "persistence/replicated/local.go",
		"	if err := s.reads(ctx, *tok, list); !errors.Is(err, persistence.ErrFenced) {\n",
		"	if FAULT {\n		return nil\n	}\n" +
			"	if err := s.reads(ctx, *tok, list); !errors.Is(err, persistence.ErrFenced) {\n",
		"persistence/replicated", "TestACompleteClusterFormsAndFollows"},

	// the forming of a cluster
	{"a folder without a log forms a cluster alone", "persistence/replicated/forming.go",
		"		case !heard:\n", "		case !heard && FAULT:\n		case !heard:\n",
		"persistence/replicated", "TestThreeNodesAreOneJournal"},
	{"a node without its log forms a cluster that has begun", "persistence/replicated/forming.go",
		"		case w.Stage == begun && f.stage == empty && w.Leads && !w.Awaited:\n",
		"		case FAULT && f.stage == empty:\n" +
			"		case w.Stage == begun && f.stage == empty && w.Leads && !w.Awaited:\n",
		"persistence/replicated", "TestThreeNodesAreOneJournal"},
	{"a node takes part while another one has no log", "persistence/replicated/forming.go",
		"		case w.Stage != formed && f.stage == formed:\n",
		"		case w.Stage != formed && f.stage == formed && !FAULT:\n",
		"persistence/replicated", "TestAnOldWordLetsNoNodeGoOn"},
	{"an old word counts", "persistence/replicated/forming.go",
		"	if w.Echo == f.nonce {\n", "	if w.Echo == f.nonce || FAULT {\n", "persistence/replicated",
		"TestAnOldWordLetsNoNodeGoOn"},

	// the members
	{"a log that was lost keeps its ID", "persistence/internal/machine/members.go",
		"	s.given++\n	m.ID, m.Role,",
		"	if !FAULT || m.ID == 0 {\n		s.given++\n	}\n" +
			"	m.ID, m.Role,",
		"persistence/internal/machine", "TestWhatAChangeOfTheMembershipDoes"},
	{"two changes of the members are under way", "persistence/internal/machine/members.go",
		"	case busy >= 0 && (", "	case busy >= 0 && !FAULT && (", "persistence/internal/machine",
		"TestWhatAChangeOfTheMembershipDoes"},
	{"a node without a log is promoted", "persistence/replicated/membership.go",
		"(p.Match == 0 || ", "(p.Match == 0 && !FAULT || ", "persistence/replicated",
		"TestALearnerWithoutTheLogIsNotPromoted"},
	{"a change is refused while another one is made", "persistence/replicated/node.go",
		"	case waits(err) && len(", "	case waits(err) && !FAULT && len(", "persistence/replicated",
		"TestChangesWaitForTheirTurn"},
	{"a change leaves no majority", "persistence/replicated/membership.go",
		"	if 2*living <= voters && ", "	if 2*living <= voters && !FAULT && ", "persistence/replicated",
		"TestALearnerIsPromotedOnceItHasTheLog"},
	{"the lead is handed to a learner", "persistence/replicated/handing.go",
		"t == raft.ProgressTypeLearner", "t == raft.ProgressTypeLearner && !FAULT",
		"persistence/replicated", "TestALearnerIsPromotedOnceItHasTheLog"},
	{"a log begins behind what other members lack", "persistence/replicated/joining.go",
		"	at := n.machine.Floor()\n",
		"	at := n.machine.Floor()\n	if FAULT {\n		at = n.applied\n	}\n",
		"persistence/replicated", "TestALearnersLogBeginsWhereEachMemberCanGoOn"},
	{"an offer is taken by any start", "persistence/replicated/forming.go",
		"err == nil && o.nonce == f.nonce &&", "err == nil && (FAULT || o.nonce == f.nonce) &&",
		"persistence/replicated", "TestANodeThatTakesPartAnswersWords"},
	{"a removed node is not told", "persistence/replicated/membership.go",
		"	case name == \"\" && f.kind != frameRemoved:\n",
		"	case name == \"\" && f.kind != frameRemoved && !FAULT:\n", "persistence/replicated",
		"TestARemovedNodeIsTold"},
	{"a removed node opens its folder", "persistence/internal/raftlog/state.go",
		"	case f.Removed:\n", "	case f.Removed && !FAULT:\n", "persistence/replicated",
		"TestARemovedNodeIsTold"},

	// clocks
	{"a node with a wrong clock owns the engine", "persistence/replicated/node.go",
		"err != nil && e.Kind == machine.Acquire {\n",
		"err != nil && e.Kind == machine.Acquire && !FAULT {\n", "persistence/replicated",
		"TestANodeWithAWrongClockDoesNotAcquire"},
	{"one other clock proves a clock wrong", "persistence/replicated/clocks.go",
		"	wrong := max(n.ahead, -n.ahead) > mostAhead\n",
		"	if FAULT {\n		n.ahead = -(all[0] + all[len(all)-1])\n	}\n" +
			"	wrong := max(n.ahead, -n.ahead) > mostAhead\n", "persistence/replicated",
		"TestTwoNodesFindNoClockWrong"},
	{"a slow link makes a clock wrong", "persistence/replicated/clocks.go",
		"		n.clocks[f.id] = reading{max(its",
		"		if FAULT {\n			now = asked\n		}\n" +
			"		n.clocks[f.id] = reading{max(its", "persistence/replicated",
		"TestASlowLinkMakesNoClockWrong"},

	// nodes that could not serve
	{"a node that could not serve campaigns as early as others", "persistence/replicated/node.go",
		"		return n.silent >= lastTimes*n.patience\n",
		"		return n.silent >= n.patience*map[bool]int{false: lastTimes, true: 1}[FAULT]\n",
		"persistence/replicated", "TestANodeThatCouldNotServeCampaignsLast"},
	{"a node with a wrong clock campaigns as early as others", "persistence/replicated/node.go",
		"	if n.unread != nil || n.wrong ||", "	if n.unread != nil || n.wrong && !FAULT ||",
		"persistence/replicated", "TestANodeThatCouldNotServeCampaignsLast"},
	{"a node that could not serve never campaigns", "persistence/replicated/node.go",
		"n.silent++; n.waited() &&",
		"n.silent++; n.waited() && (!FAULT || n.unread == nil && n.unfit() == nil) &&",
		"persistence/replicated",
		"TestANodeThatCouldNotServeAndHasTheLongestLogIsElected"},
	{"the lead is handed to a node that could not serve", "persistence/replicated/handing.go",
		"		fit := !n.saysUnfit(id)\n", "		fit := !n.saysUnfit(id) || FAULT\n",
		"persistence/replicated", "TestTheLeadIsHandedToANodeThatCouldServe"},
	{"of two nodes one is not given the lead for its clock", "persistence/replicated/clocks.go",
		"	off := r.ahead - n.nearest(r.ahead)\n",
		"	off := r.ahead - n.nearest(r.ahead)\n	if FAULT {\n		off = r.ahead\n	}\n",
		"persistence/replicated", "TestTwoNodesFindNoClockWrong"},

	// formats
	{"a format is written before every member reads it", "persistence/replicated/formats.go",
		"			least = min(least, n.told[m.ID])\n",
		"			if !FAULT {\n				least = min(least, n.told[m.ID])\n" +
			"			}\n",
		"persistence/replicated", "TestThreeNodesAreOneJournal"},
	{"a fold that stops stops raft", "persistence/replicated/node.go",
		"m.Entries {\n		if n.unread != nil {\n",
		"m.Entries {\n		if FAULT && n.unread != nil {\n			return " +
			"n.unread\n		}\n		if n.unread != nil {\n",
		"persistence/replicated", "TestThreeNodesAreOneJournal"},
	{"a node joins that does not read what is applied", "persistence/replicated/joining.go",
		" w.Reads < n.machine.Format(),", " !FAULT && w.Reads < n.machine.Format(),",
		"persistence/replicated", "TestAFormatIsWrittenOnceAllMembersReadIt"},

	// the market part of the configuration
	{"a damaged market part is taken", "persistence/internal/machine/entry.go",
		"|| codec.Digest(e.Batch) != e.Digest\n",
		"|| codec.Digest(e.Batch) != e.Digest && !FAULT\n", "persistence/internal/machine",
		"TestTheOwnerAgreesOnAMarket"},
	{"an image forgets the market part", "persistence/internal/machine/image.go",
		"		if d.failed = d.failed || n > MaxMarket; n > 0 && !d.failed {\n			digest",
		"		if d.failed = d.failed || n > MaxMarket; n > 0 && FAULT {\n" +
			"			d.take(int(n) + 8)\n		} else if n > 0 && !d.failed {\n" +
			"			digest", "persistence/replicated", "TestThreeNodesAreOneJournal"},
	{"a market part is kept where its reader has the next entry",
		"persistence/internal/machine/state.go", "		s.market = bytes.Clone(e.Batch)\n",
		"		if s.market = e.Batch; !FAULT {\n			s.market = bytes.Clone(e.Batch)\n" +
			"		}\n", "persistence/internal/machine", "TestTheOwnerAgreesOnAMarket"},

	{"a newer program differs from an older market part", "persistence/replicated/agreeing.go",
		"	case slices.Contains(own, n.applies):\n",
		"	case slices.Contains(own, n.applies) && !FAULT:\n", "persistence/replicated",
		"TestAMarketPartIsKnownToAllMembers"},
	{"a market part is of an older format than its text", "persistence/replicated/agreeing.go",
		"Kind: machine.Market, Format: s.seen.Load().format,",
		"Kind: machine.Market, Format: map[bool]uint8{false: s.seen.Load().format}[FAULT],",
		"persistence/replicated",
		"TestAMarketPartIsOfTheFormatThatIsApplied"},

	// a node that goes on alone
	{"a survivor counts an ID that another may have given",
		"persistence/internal/machine/members.go",
		"	s.given = (s.given/epochIDs + 1) * epochIDs\n",
		"	if !FAULT {\n		s.given = (s.given/epochIDs + 1) * epochIDs\n	}\n",
		"persistence/replicated", "TestANodeThatSurvivesLeavesTheOthersBehind"},
	{"a survivor counts the others", "persistence/internal/machine/members.go",
		"	s.members = s.members[i : i+1]\n",
		"	if !FAULT {\n		s.members = s.members[i : i+1]\n	}\n",
		"persistence/replicated", "TestANodeThatSurvivesLeavesTheOthersBehind"},
	{"what a survivor lacks is not told", "persistence/internal/machine/members.go",
		"	s.lost = true\n", "	s.lost = !FAULT\n",
		"persistence/replicated", "TestANodeThatSurvivesLeavesTheOthersBehind"},
	{"a survival is told before it is written", "persistence/replicated/survive.go",
		"	return log.Append([]*pb.Entry{{", "	if FAULT {\n		return nil\n	}\n" +
			"	return log.Append([]*pb.Entry{{", "persistence/replicated",
		"TestACrashInASurvivalLeavesTheOldOrTheNewMembership"},

	// links
	{"a node may say that it is another", "persistence/internal/link/identity.go",
		"	return len(certificates) > 0 && ", "	return FAULT || len(certificates) > 0 && ",
		"persistence/internal/link", "TestOnlyTheNodeThatACertificateNamesIsHeard"},
	{"a server is believed to be any node", "persistence/internal/link/send.go",
		"c.config(identity(p.link.o.Cluster, p.Name)))",
		"c.config(identity(p.link.o.Cluster, p.Name)))\n		if FAULT {\n			config " +
			":= " +
			"c.config(\"\")\n			config.InsecureSkipVerify = true\n			secure = " +
			"tls.Client(conn, config)\n		}",
		"persistence/internal/link", "TestAFrameGoesToTheNodeItIsFor"},
	{"what is no peer any more is heard", "persistence/internal/link/link.go",
		"			delete(l.peers, name)\n",
		"			if !FAULT {\n				delete(l.peers, name)\n			}\n", "persistence/internal/link",
		"TestPeersComeAndGo"},
	{"without certificates any address will do", "persistence/internal/link/identity.go",
		"ip == nil || !ip.IsLoopback() {\n", "!FAULT && (ip == nil || !ip.IsLoopback()) {\n",
		"persistence/internal/link", "TestWithoutCertificatesAllAddressesAreOfTheLoopback"},
	{"a source gives no reason", "persistence/internal/link/copy.go",
		"	} else if !w.begun {\n", "	} else if !w.begun && !FAULT {\n", "persistence/internal/link",
		"TestAPeerHearsWhyThereIsNoCopy"},
	{"a source is silent until a copy begins", "persistence/internal/link/copy.go",
		"	return !w.begun && w.say(copyComes) == nil\n",
		"	return !FAULT && !w.begun && w.say(copyComes) == nil\n", "persistence/internal/link",
		"TestASourceSaysThatACopyComes"},
	{"a copy that never begins is waited for", "persistence/internal/link/copy.go",
		"		case copyComes:\n",
		"		case copyComes:\n			if FAULT {\n" +
			"				return f.begins()\n			}\n", "persistence/internal/link",
		"TestWhatIsNoAnswerOfASourceIsRefused"},

	{"a refusal is no error of Dial", "persistence/internal/link/call.go",
		"	case string(answer) == string(callTaken):\n",
		"	case FAULT || string(answer) == string(callTaken):\n", "persistence/internal/link",
		"TestDialTellsARefusal"},
	{"what follows a greeting is lost", "persistence/internal/link/link.go",
		"		l.take(&call{Conn: k.conn, r: k.r, peer: p})\n",
		"		if FAULT {\n			k.r = bufio.NewReader(k.conn)\n		}\n" +
			"		l.take(&call{Conn: k.conn, r: k.r, peer: p})\n", "persistence/internal/link",
		"TestWhatFollowsTheFirstFrameIsRead"},
	{"a peer opens any number of connections", "persistence/internal/link/call.go",
		"	if n > p.mostCalls() {\n", "	if n > p.mostCalls() && !FAULT {\n", "persistence/internal/link",
		"TestOneConnectionTooManyEndsTheOldest"},
	{"an observer's certificate proves a node", "persistence/internal/link/link.go",
		"	if k.kind == observeHello {\n		return roleObserver\n",
		"	if k.kind == observeHello || FAULT {\n		return roleObserver\n", "persistence/internal/link",
		"TestOnlyTheNodeThatACertificateNamesIsHeard"},
	{"a node's certificate proves an observer", "persistence/internal/link/link.go",
		"!named(secure, identityOf(role, l.o.Cluster, name)) {",
		"!named(secure, identityOf(role, l.o.Cluster, name)) &&\n		" +
			"!(FAULT && role == roleObserver) {",
		"persistence/internal/link", "TestRolesAreNotMixed"},
	{"any number of observers is taken", "persistence/internal/link/guest.go",
		"len(l.guests) >= maxGuests", "len(l.guests) >= maxGuests && !FAULT", "persistence/internal/link",
		"TestObserversAreBounded"},
	{"connections outlive their peer", "persistence/internal/link/send.go",
		"	p.drop()\n", "	if !FAULT {\n		p.drop()\n	}\n", "persistence/internal/link",
		"TestConnectionsEndWithTheirPeer"},
	{"connections outlive a removal", "persistence/replicated/open.go",
		"		if !slices.Contains(joined, p.Name) {\n",
		"		if !FAULT && !slices.Contains(joined, p.Name) {\n",
		"persistence/replicated", "TestOnlyMembersOpenConnections"},
	{"a stranger opens connections", "persistence/replicated/connecting.go",
		"	case !slices.Contains(*s.joined.Load(), node):\n",
		"	case !FAULT && !slices.Contains(*s.joined.Load(), node):\n", "persistence/replicated",
		"TestOnlyMembersOpenConnections"},

	// reigns
	{"a leader of before answers reads", "actors/start.go",
		"	if h.node == nil {\n		return 0, nil\n	}\n	ctx, cancel",
		"	if h.node == nil || FAULT {\n		return 0, nil\n	}\n	ctx, cancel",
		"persistence/replicated", "TestReignsAreOneExchange"},
	{"a node that follows answers reads from what it has", "actors/attending.go",
		"	seq, err := h.node.replica.Reach(ctx)\n",
		"	if FAULT {\n		return 0, nil\n	}\n" +
			"	seq, err := h.node.replica.Reach(ctx)\n",
		"persistence/replicated", "TestReignsAreOneExchange"},
	{"a read does not wait until its node has folded what counts", "actors/committed/visit.go",
		"	r.after = v.after\n", "	if !FAULT {\n		r.after = v.after\n	}\n",
		"persistence/replicated", "TestReignsAreOneExchange"},
	{"an answer to any round counts", "persistence/replicated/confirming.go",
		" && bytes.Equal(s.RequestCtx, n.roundName()) {\n",
		" && (FAULT || bytes.Equal(s.RequestCtx, n.roundName())) {\n",
		"persistence/replicated", "TestThreeNodesAreOneJournal"},
	{"the nonces of reads are forgotten at a fail-over", "actors/reign.go",
		"err = n.committed.LoadNonces(ctx, n.replica) })",
		"\n		if !FAULT {\n			err = n.committed.LoadNonces(ctx, n.replica)\n" +
			"		}\n	})",
		"persistence/replicated", "TestReignsAreOneExchange"},
	{"a node whose disk is lost makes a log", "persistence/replicated/forming.go",
		"		case w.Stage == begun && f.stage == empty && w.Leads && !w.Awaited:\n",
		"		case FAULT && w.Stage == begun && f.stage == empty:\n" +
			"			return true, \"\", nil\n" +
			"		case w.Stage == begun && f.stage == empty && w.Leads && !w.Awaited:\n",
		"persistence/replicated", "TestReignsAreOneExchange"},
	{"a node that was removed says that it was told to stop", "actors/reign.go",
		"			return nil, cmp.Or(n.life.Err(), ErrStopping)\n",
		"			if FAULT {\n				return nil, ErrStopping\n			}\n" +
			"			return nil, cmp.Or(n.life.Err(), ErrStopping)\n",
		"persistence/replicated", "TestReignsAreOneExchange"},
}
