// Package folder lets only one process at a time serve from a data folder. By the folder the next
// process also knows that the store's last owner was a process of the same folder:
//
//   - serve.lock has the name of its holder. The kernel frees the lock when the holder ends in any
//     way.
//   - owner.id has the ids of the newest claims that this host has made to a store that others can
//     reach. A process that holds the lock and finds one of these ids in the store knows that the
//     owner has ended. It also has the ids of the histories that the store and the archive have
//     had. So a start knows a disk that is not mounted from a store or an archive that is new.
//
// The files:
//
//	lock.go        serve.lock
//	lock_unix.go   the kernel's lock
//	lock_other.go  the same where the system has no such lock
//	identity.go    owner.id
//	memory.go      the histories in it
package folder
