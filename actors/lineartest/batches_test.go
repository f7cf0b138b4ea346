package lineartest

import "testing"

// beginBatch signs with the account's first key and its next nonce.
func (s *script) beginBatch(list ...Operation) []*Recorded {
	key := list[0].Account + 1
	s.nonces[key]++
	for i := range list {
		list[i].Key, list[i].Nonce = key, s.nonces[key]
	}
	return s.BeginBatch(list[0].Account, list)
}

// batched is a right history of a batch interrupted by another account's order.
func batched() *script {
	s := newScript()
	s.did("", Operation{Kind: Deposit, Account: 0, Amount: 10}, Result{})
	s.did("", Operation{Kind: Deposit, Account: 1, Currency: 1, Amount: 1000}, Result{})
	batch := s.beginBatch(
		Operation{Kind: Place, Order: 1, Price: 100, Amount: 2},
		Operation{Kind: Amend, Order: 1, Price: 101, Named: true},
		Operation{Kind: Place, Order: 2, Price: 102, Amount: 1},
		Operation{Kind: Place, Order: 3, Price: 90, Amount: 9},
		Operation{Kind: Cancel, Order: 1, Named: true},
		Operation{Kind: Cancel, Order: 1, Named: true})
	for i, name := range []string{"first", "amend", "second", "too much", "cancel", "again"} {
		s.named[name] = batch[i]
	}
	other := s.begin("other", Operation{Kind: Place, Account: 1, Order: 4, Buy: true, Price: 101,
		Amount: 1})
	batch[0].End(Result{Outcome: Done, ID: 1, Remains: 2})
	batch[1].End(Result{Outcome: Done, ID: 2, Remains: 2})
	other.End(Result{Outcome: Done, ID: 3, Trades: []Trade{{1, 1, 101, 1}}})
	batch[2].End(Result{Outcome: Done, ID: 4, Remains: 1})
	batch[3].End(Result{Outcome: RefusedFunds})
	batch[4].End(Result{Outcome: Done, ID: 5, Remains: 1})
	batch[5].End(Result{Outcome: RefusedState})
	s.did("book", Operation{Kind: ReadBook},
		Result{Levels: [2][]Level{nil, {{102, 1}}}, UpdateID: 5})
	s.did("same nonce", Operation{Kind: CancelAll, Pair: 1, Nonce: 1},
		Result{Outcome: RefusedNonce, LastNonce: 1})
	s.did("next nonce", Operation{Kind: CancelAll, Pair: 1}, Result{Outcome: RefusedState})
	s.Settle()
	return s
}

func TestErrorsOfBatchesAreFound(t *testing.T) {
	batched().try(t, "a right batch", true)
	for planted, change := range map[string]func(s *script){
		"an operation that is skipped": func(s *script) {
			r := &s.named["book"].Result
			r.Levels, r.UpdateID = [2][]Level{}, 4
		},
		"two operations that are swapped": func(s *script) {
			s.named["second"].Result.ID, s.named["cancel"].Result.ID = 5, 4
		},
		"an order that a later operation of the batch does not find": func(s *script) {
			s.named["cancel"].Result = Result{Outcome: RefusedState}
			r := &s.named["book"].Result
			r.Levels[1], r.UpdateID = []Level{{101, 1}, {102, 1}}, 4
		},
		"a later request with the nonce": func(s *script) {
			s.named["same nonce"].Result = Result{Outcome: RefusedState}
		},
		"a batch that takes no nonce": func(s *script) {
			s.named["next nonce"].Operation.Nonce = 1
		},
		"a batch that takes a nonce for each operation": func(s *script) {
			s.named["next nonce"].Result = Result{Outcome: RefusedNonce, LastNonce: 6}
		},
		"a nonce that one operation alone may not use": func(s *script) {
			s.named["again"].Result = Result{Outcome: RefusedNonce, LastNonce: 1}
		},
		"an operation that is refused for its key": func(s *script) {
			s.named["again"].Result = Result{Outcome: RefusedKey}
		},
		"an operation of the account in the middle": func(s *script) {
			o := s.named["other"]
			o.Operation.Account, o.Operation.Key, o.Operation.Nonce = 0, 1, 2
			o.Operation.Buy, o.Operation.Price = false, 103
			o.Result = Result{Outcome: Done, ID: 3, Remains: 1}
			s.named["cancel"].Result.Remains = 2
			s.named["book"].Result.Levels[1] = []Level{{102, 1}, {103, 1}}
			s.named["next nonce"].Operation.Nonce = 3
		},
	} {
		s := batched()
		change(s)
		s.try(t, planted, false)
	}
}

// The last planted error is one because the operation comes between. After the batch, or for the
// other pair, it is right.
func TestOperationsOfTheAccountComeBesideABatch(t *testing.T) {
	try := func(what string, right bool, pair int, ids [3]uint64) {
		t.Helper()
		s := newScript()
		s.did("", Operation{Kind: Deposit, Amount: 10}, Result{})
		batch := s.beginBatch(Operation{Kind: Place, Order: 1, Price: 100, Amount: 1},
			Operation{Kind: Place, Order: 2, Price: 100, Amount: 1})
		beside := s.begin("", Operation{Kind: Place, Order: 3, Pair: pair, Price: 100, Amount: 1})
		for i, r := range append(batch, beside) {
			r.End(Result{Outcome: Done, ID: ids[i], Remains: 1})
		}
		s.try(t, what, right)
	}
	try("after it", true, 0, [3]uint64{1, 2, 3})
	try("before it", true, 0, [3]uint64{2, 3, 1})
	try("in the middle", false, 0, [3]uint64{1, 3, 2})
	try("in the middle, for the other pair", true, 1, [3]uint64{1, 3, 2})
}

func TestABatchWithoutAnOutcomeMayHaveHappenedInPart(t *testing.T) {
	try := func(what string, right bool, outcomes [2]Outcome, look Operation, shown Result) {
		t.Helper()
		s := newScript()
		s.did("", Operation{Kind: Deposit, Amount: 10}, Result{})
		batch := s.beginBatch(Operation{Kind: Place, Order: 1, Price: 100, Amount: 1},
			Operation{Kind: Cancel, Order: 1, Named: true},
			Operation{Kind: Place, Order: 2, Price: 101, Amount: 1})
		for i, outcome := range outcomes {
			if outcome != Unknown {
				batch[i].End(Result{Outcome: outcome, Remains: 1})
			}
		}
		s.did("", Operation{Kind: Restart}, Result{})
		s.did("", look, shown)
		s.try(t, what, right)
	}
	read := Operation{Kind: ReadOpen}
	none, first := [2]Outcome{}, [2]Outcome{Done}
	one, two := OrderRow{1, 1, Open, 1}, OrderRow{2, 2, Open, 1}
	try("none", true, none, read, Result{})
	try("the first", true, none, read, Result{Orders: []OrderRow{one}})
	try("the last", true, none, read, Result{Orders: []OrderRow{two}})
	try("all but the cancel", true, none, read, Result{Orders: []OrderRow{one, two}})
	try("the first, as answered, and its cancel", true, first, read, Result{})
	try("the first, which its cancel did not find", false, [2]Outcome{Unknown, RefusedState}, read,
		Result{Orders: []OrderRow{one}})
	read.Nonce = 1 // the batch's
	refused := Result{Outcome: RefusedNonce, LastNonce: 1}
	try("its nonce", true, none, read, refused)
	try("not its nonce", true, none, read, Result{})
	try("its nonce, as its first operation", true, first, read, refused)
	try("not its nonce, but its first operation", false, first, read, Result{})
}
