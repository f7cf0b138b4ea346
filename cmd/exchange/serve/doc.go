// Package serve has the commands of this machine: they start a process, or make and change the
// files for a start.
//
// A start:
//
//	command.go        serve and config: flags, help, and the log's format
//	serve.go          the course from the configuration to an exchange that is ready
//	known.go          the store and the archive recorded in the data folder
//	refusals.go       faults of the files that the configuration names
//	log.go            the log, whose reader may block
//	log.go            the log, whose reader may stand still
//	archive.go, listeners.go, mail.go, operator.go, watch.go
//	                  archive, listeners, mails, access of operators and monitoring, and the
//	                  metrics of files and folders
//	renewal.go, reload.go  certificates and tokens, and another configuration, while it runs
//	node.go, observer.go   a node of a cluster, by terms; an observer
//	cluster_view.go   this process's view of its cluster
//	market.go         the market part of the configuration, on which nodes agree
//	copies.go         copies of a node's store, for one that joins
//	demo.go, demo_text.go  the demo, and its first text
//	descriptors_unix.go, descriptors_other.go, memory.go, processors.go  the machine's limits
//	testing.go        for tests of the service's files
//
// Files:
//
//	restore.go, restore_owner.go   a store from a backup
//	secretkey.go                   the server's secret key
//	cluster.go, cluster_files.go, authority.go  a cluster's certificates and keys
//	survival.go                    a node that continues alone
package serve
