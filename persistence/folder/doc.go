// Package folder lets only one process at a time serve from a data folder. The folder also shows
// whether the store's last owner was a process of the same folder:
//
//   - serve.lock names its holder. The kernel frees the lock when the holder ends in any
//     way.
//   - owner.id holds the ids of the newest claims of this host to a store that others can reach. A
//     process that holds the lock and finds one of these ids in the store concludes that the owner
//     has ended. It also holds the ids of the histories of the store and the archive, so a start
//     can distinguish a disk that is not mounted from a new store or archive.
//
// The files:
//
//	lock.go        serve.lock
//	lock_unix.go   the kernel's lock
//	lock_other.go  the same where the system has no such lock
//	identity.go    owner.id
//	memory.go      the histories in it
package folder
