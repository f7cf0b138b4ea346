// Package actors is the engine of the exchange: wallets, books, the registry and the committed
// state as protoactor actors, the journal that makes their decisions durable, and recovery.
//
// The life of an engine:
//
//	e, err := actors.Start(ctx, options)  // takes the store over, folds snapshot and journal, opens
//	c, err := e.Place(key, nonce, &wish)  // through the wallet and the book into the journal, and back
//	... c.Record() ...; c.Free()
//	r := actors.NewRead(actors.ReadWallet)
//	err = e.Ask(r, key, nonce)            // from the committed state, at or above all that was answered
//	... r.Holdings ...; r.Free()
//	err = e.Stop(ctx)                     // or <-e.Dead(), when it cannot go on
//
// An order goes from its handler to the account's wallet, to the pair's book, into the journal's
// forming batch, as an entry; when the batch is durable, the journal's writer releases it:
// settlements to the wallets, the batch to the committed side, the answers to the handlers. Nobody
// else gives anything out.
//
//	command.go    what travels, and who owns it when      admission.go  the way in, and its limits
//	wallet.go     nonces, reservations, order of an account book.go      matching
//	withdraw.go   money out                               sweep.go, operate_sweep.go  cancelling all
//	registry.go   names, keys, references                 operate.go    what operators do
//	registry_operate.go  halts, freezes, fees, mails      email.go      an account's address
//	fees.go       what trades cost                        mailer.go     the outbox
//	entry.go      what is journaled                       journal.go    batches, the writer
//	release.go    settlements, the fold, answers          engine.go     starting, stopping
//	lifetime.go   its end, and all waits                  place.go      clients' commands
//	committed/    the fold and all it feeds               channels.go   stream channels
//	recovery.go   a start on what the store has
//	directory/    accounts, keys, pairs and currencies    mailbox/      what actors run on
//	                                                      rows/         a record's rows for the store
//	options.go    what an engine is made with             lineartest/   histories, checked
//	verify.go     both sides compared at rest             audit/        everything derived anew
//	                                                      owner.go      who may own the store, and its beats
//	seal/         API secrets, sealed
//	stats.go      numbers for monitoring                  metrics/      where they are counted
//	                                                      simulation/   the model that it compares with
//
// docs/design.md says who owns what, and why.
package actors
