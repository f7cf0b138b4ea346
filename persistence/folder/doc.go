// Package folder makes one process the only one that serves from a data folder. It also tells the
// next process of that folder that the owner before was its own:
//
//   - serve.lock has the name of its holder. The kernel frees the lock when the holder ends in any
//     way.
//   - owner.id has the ids of the newest claims that this host has made to a store that others can
//     reach. A process that holds the lock and finds one of these ids in the store knows that the
//     owner has ended.
//
// The files:
//
//	lock.go        serve.lock
//	lock_unix.go   the kernel's lock
//	lock_other.go  the same where the system has no such lock
//	identity.go    owner.id
package folder
