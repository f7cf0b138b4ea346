// Package mailbox is the ground that actors run on: the queue that each receives from, the
// goroutines that run these queues, and how actors of one kind are spawned. It knows nothing of an
// exchange. All waiting goes through a Scheduler: Runners are the ordinary one, and a simulation
// has its own, which chooses the goroutine that goes on next.
//
//	host := &mailbox.Host{Scheduler: mailbox.Runners{}, Guard: guard}
//	wallets := mailbox.NewSpawner(system.Root, 0, host)
//	pid, err := wallets.Spawn("wallet/1", w)
//
//	mailbox.go     the queue of one actor                spawner.go  actors of one kind
//	scheduler.go   what a simulation takes over          runners.go  the ordinary scheduler
//	concurrent.go  the work of a start, side by side     testing.go  for tests of other packages
//	probe.go       a look at an actor, on its turn       life.go     how long an engine lasts
//	fifo.go        a queue of one owner
package mailbox
