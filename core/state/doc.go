// Package state is the fold: the committed state of one engine, built by applying the records of
// its journal one by one, and nothing else.
//
// The same code runs at recovery and after every release, so each snapshot is a proof that replay
// works. A state decides nothing. Apply checks that a record fits the state: a maker is first in
// its queue, a wallet holds the money that it pays, ids grow. An error from Apply means that the
// journal or the program is wrong.
//
//	s := state.New()
//	for each record, in sequence order {
//		err := s.Apply(&record, &effects)   // effects: changes for projections
//	}
//	image := s.AppendTo(nil)                // deterministic: equal states have equal images
//	s, err = state.Decode(image)
//	err = s.Check()                         // the money invariants, over everything
//
// One goroutine owns a State. The package uses no clock, no I/O and no configuration.
//
//	state.go     the types, and look-ups by number and name
//	fold.go      batches of records onto a state
//	apply.go     records of accounts, keys, deposits, orders and cancels
//	special.go   records of orders with instructions, and how such an order meets the book
//	stops.go     records of orders that wait for a trigger, or expire
//	amend.go     records of changes of open orders
//	nonces.go    the nonces of keys for parallel use
//	switches.go  records of dead man's switches, and of accounts' settings
//	withdrawal.go records of withdrawals and their codes; withdrawal_ids.go their client ids
//	operate.go   records of operators' decisions
//	email.go     changed e-mail addresses, and the holds that follow
//	close.go     closed accounts
//	outbox.go    the mails to be sent
//	history.go   a new history, and its renewal of codes
//	events.go    which records are events of accounts
//	trades.go    the count of each account's trades
//	check.go     the money invariants
//	image_encode.go a state as bytes
//	image_decode.go a state from bytes
//	image_pairs.go  its open orders, pair by pair
//	withhold.go     images for observers
//	compare.go   comparison of two states in chunks
package state
