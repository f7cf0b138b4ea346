// Package actors is the engine of the exchange: wallets and books as protoactor actors, the
// registry, the journal that makes their decisions durable, and recovery.
//
// The life of an engine:
//
//	e, err := actors.Start(ctx, options)     // takes the store over, recovers, opens
//	c, err := e.Place(key, nonce, &request)  // through wallet, book and journal, and back
//	... c.Record() ...; c.Free()
//	w, err := e.Wallet(by)                   // from the committed side
//	err = e.Stop(ctx)                        // or <-e.Dead(), when it cannot go on
//
// One of several nodes has an engine only while it leads: see package node, which builds it on its
// running fold.
//
// An order goes from its handler to the account's wallet, to the pair's book, and as an entry into
// the journal's forming batch. When the batch is durable, the journal's writer releases it: the
// settlements to the wallets, the batch to the committed side, the answers to the handlers. Nothing
// else gives anything out.
//
//	requests.go             what clients ask for
//	command.go              a command, its parts, and its owners
//	commands.go             where clients' commands go
//	command_codec.go        a command and its outcome, as they travel between nodes
//	command_node.go         what package node needs of a command and of an engine
//	edge.go                 what verifies requests that observers pass on
//	client.go               clients' commands, and their way into an engine
//	operator.go             operators' commands
//	operator_cancelall.go   the operator's cancel-all, over many accounts
//	admission.go            the way in, and its limits
//	admission_released.go   the wait for what other nodes may have shown
//	batch.go                commands that a client sent together
//	wallet.go               an account's commands and settlements, in their order
//	wallet_state.go         what a wallet has: money, nonces, open orders, and what is in flight
//	wallet_special.go       orders with instructions; the account's settings
//	wallet_amend.go         changes of open orders
//	withdrawal.go           money out
//	cancelall.go            cancelling one order, and all orders of an account
//	opening.go              wallets that begin when they are first needed
//	switch.go               dead man's switches
//	switch_schedule.go      when they are due
//	session.go              logins whose end arms a switch
//	marks.go                what limits count of an account's orders
//	tickets.go              which commands of a wallet are on their way
//	book.go                 a pair's commands, in their order, and the matching of plain orders
//	book_state.go           what a book has: orders, what is known of them, and bounds of prices
//	book_special.go         orders with instructions
//	book_amend.go           changes of open orders
//	amend_rules.go          what an order or its pair does not allow an amend
//	book_stops.go           triggered orders, and how a book goes on without a command
//	book_expiry.go          orders that expire
//	fees.go                 the cost of trades
//	registry.go             operators' commands, decided on the fold in rounds
//	registry_accounts.go    accounts, keys, deposits
//	registry_settings.go    halts, freezes, fees, maintenance
//	wallet_close.go         what a wallet says to the end of its account
//	names.go                the directory, filled from the fold
//	keyring.go              the secrets of API keys, opened
//	reconfigure.go          other limits and rules of pairs, while the engine runs
//	email.go                the form of an account's address
//	entry.go                one record on its way into the journal
//	settled.go              what its release tells a wallet
//	journal.go              batches, and the writer
//	release.go              settlements, the batch to the fold, answers
//	mailer.go               the outbox
//	engine.go               the parts of an engine, and what they ask of it
//	start.go                a start: the parts, put together
//	stop.go                 its orderly end, and its failure
//	ticker.go               what is done at times: writing behind, switches, a watch on the clock
//	options.go              limits, times, and errors of admission
//	recovery.go             the state, from the data in the store
//	channels.go             what is public: the actors of stream channels
//	backup.go               a backup of a running engine
//	compare.go              both sides compared while all goes on
//	compare_book.go, compare_wallet.go
//	                        what is compared of a book and of a wallet
//	audit.go                an audit of a running engine
//	stats.go                numbers for monitoring
//	testing.go              what tests of package node need
//
// Rooms below:
//
//	committed/              the fold and all reads
//	audit/                  everything derived anew, and compared
//	owner/                  the store's owner, its beats, and standbys
//	directory/              accounts, keys, pairs and currencies
//	mailbox/                the mailboxes and goroutines of actors
//	rows/                   the rows of a record in the store
//	seal/                   API secrets, sealed
//	metrics/                the counters and histograms
//	simulation/             the model that the engine is compared with
//	lineartest/             histories of clients, checked
//
// docs/design.md says which actor owns which state, and why.
package actors
