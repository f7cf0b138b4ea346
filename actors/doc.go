// Package actors is the engine of the exchange: wallets and books as protoactor actors, the
// registry, the journal that makes their decisions durable, and recovery.
//
// The life of an engine:
//
//	e, err := actors.Start(ctx, options)     // claims the store, recovers, opens
//	c, err := e.Place(key, nonce, &request)  // through wallet, book and journal, and back
//	... c.Record() ...; c.Free()
//	w, err := e.Wallet(client)               // from the committed side
//	err = e.Stop(ctx)                        // or <-e.Dead() after a failure
//
// A cluster node runs an engine only while it leads: package node builds it on its running fold.
//
// An order goes from its handler to the account's wallet, to the pair's book, and as an entry into
// the journal's forming batch. When the batch is durable, the journal's writer releases it: the
// settlements to the wallets, the batch to the committed side, the answers to the handlers. Nothing
// else publishes anything.
//
//	requests.go             clients' requests
//	command.go              a command, its parts, and its owners
//	commands.go             the interface for clients' commands
//	command_codec.go        commands and outcomes encoded between nodes
//	command_node.go         package node's access to commands and the engine
//	edge.go                 verification of requests forwarded by observers
//	client.go               clients' commands: constructors and delivery
//	operator.go             operators' commands
//	operator_cancelall.go   the operator's cancel-all, over many accounts
//	admission.go            limits on commands in flight, and when commands are refused
//	admission_released.go   waiting until this node has released what others may have shown
//	batch.go                batches of commands from one client
//	wallet.go               an account's commands and settlements, in their order
//	wallet_state.go         a wallet's state: money, nonces, open orders, commands in flight
//	wallet_special.go       orders with instructions; the account's settings
//	wallet_amend.go         changes of open orders
//	withdrawal.go           withdrawals and adjustments
//	cancelall.go            cancelling one order, and all orders of an account
//	opening.go              wallets started on first use
//	switch.go               dead man's switches
//	switch_schedule.go      the schedule of dead man's switches
//	session.go              logins whose end arms a switch
//	order_flags.go          the per-account order counts for limits
//	tickets.go              a wallet's commands in flight
//	book.go                 a pair's commands in order, and matching of plain orders
//	book_state.go           a book's state: orders, their extras, and price bounds
//	book_special.go         orders with instructions
//	book_amend.go           changes of open orders
//	amend_rules.go          validation of amends against order and pair
//	book_stops.go           triggered orders, and what a book does without a command
//	book_expiry.go          orders that expire
//	fees.go                 the cost of trades
//	registry.go             operators' commands, decided on the fold in rounds
//	registry_accounts.go    accounts, keys, deposits
//	registry_settings.go    halts, freezes, fees, maintenance
//	wallet_close.go         the wallet's check before its account closes
//	names.go                the directory, filled from the fold
//	keyring.go              the opened secrets of API keys
//	reconfigure.go          changing limits and pair rules at run time
//	email.go                validation of an account's e-mail address
//	entry.go                one record in flight to the journal
//	settled.go              the message that tells a wallet of a record's release
//	journal.go              batches, and the writer
//	release.go              settlements, the batch to the fold, answers
//	mailer.go               the outbox
//	engine.go               the Engine struct, and the interfaces that its parts call
//	start.go                startup: assembly of the parts
//	stop.go                 orderly shutdown, and failure
//	ticker.go               periodic work: projections, switches, the clock watch
//	options.go              limits, times, and errors of admission
//	recovery.go             recovery of the state from the store
//	channels.go             the public side: the actors of stream channels
//	backup.go               a backup of a running engine
//	compare.go              comparison of the actors' state with the fold, while serving
//	compare_book.go, compare_wallet.go
//	                        the compared parts of a book and of a wallet
//	audit.go                an audit of a running engine
//	stats.go                statistics for monitoring
//	testing.go              helpers for tests of package node
//
// Packages below:
//
//	committed/              the fold and all reads
//	audit/                  everything derived again from the journal, and compared
//	node/, observing/       a cluster's nodes, which lead or follow, and its observers
//	owner/                  the store's owner, its heartbeats, and standbys
//	directory/              accounts, keys, pairs and currencies
//	mailbox/                the mailboxes and goroutines of actors
//	rows/                   the rows of a record in the store
//	seal/                   API secrets, sealed
//	metrics/                the counters and histograms
//	lineartest/             linearizability checks of client histories
//
// docs/design.md says which actor owns which state, and why.
package actors
