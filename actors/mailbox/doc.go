// Package mailbox is the ground that actors run on: the queue that each receives from, the
// goroutines that run these queues, and the spawning of actors of one kind. It is independent of
// the exchange. All waiting goes through a Scheduler: Runners are the ordinary one, and a
// simulation brings its own, which chooses the goroutine that runs next.
//
//	host := &mailbox.Host{Scheduler: mailbox.Runners{}, Guard: guard}
//	wallets := mailbox.NewSpawner(system.Root, 0, host)
//	pid, err := wallets.Spawn("wallet/1", w)
//
//	mailbox.go     the queue of one actor                spawner.go  actors of one kind
//	scheduler.go   the part that a simulation replaces   runners.go  the ordinary scheduler
//	concurrent.go  a start's work, in parallel           testing.go  for tests of other packages
//	probe.go       a function run in an actor's turn     life.go     the lifetime of an engine
//	fifo.go        a queue of one owner
package mailbox
