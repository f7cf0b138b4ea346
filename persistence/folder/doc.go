// Package folder keeps what makes one process the only one that serves from a data folder, and what
// tells the next process of that folder that the one before was its own:
//
//   - serve.lock, which the kernel frees when its holder ends in any way, and which names the
//     holder;
//   - owner.id, the ids of the newest claims that this host has made to a store that others can
//     reach. A process that holds the lock and finds one of these ids in the store knows that the
//     owner has ended.
package folder
