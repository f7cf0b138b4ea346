// Command exchange is the exchange: its server, and the operator's commands that talk to one.
//
// The command line:
//
//	main.go, root.go, exit.go  the run of a command, the tree of commands, and the exit codes
//	arguments.go, output.go    checks that need no server, and the output that may be incomplete
//	files.go  files that are whole or absent
//	umask_unix.go, umask_other.go  permissions of written files
//	command_serve.go, command_secretkey.go, command_version.go, command_loadtest.go,
//	command_loadtest_compare.go  the commands
//	command_call.go            a request of the public API, signed as a client signs it
//	command_cluster.go, cluster_files.go  a cluster's certificates and keys
//	command_cluster_authority.go          another authority in the place of a cluster's
//	command_survive.go         a node that goes on alone
//
// The server:
//
//	serve.go            the course from the configuration to an exchange that is ready
//	serve_known.go      what the data folder knows of its store and its archive
//	serve_refusals.go   what is wrong with the files that the configuration names
//	serve_log.go        the log, whose reader may stand still
//	serve_archive.go, serve_listeners.go, serve_mail.go, serve_operator.go, serve_renew.go
//	                    archive, listeners, mails, access of operators and monitoring, renewal of
//	                    certificates and tokens
//	serve_reload.go     another configuration, while the exchange runs
//	serve_cluster.go, serve_place.go  a node of a cluster: its terms, and what it knows
//	serve_observer.go  an observer of a cluster
//	serve_market.go   and the market part of its configuration
//	serve_copies.go            copies of a node's store, for one that joins
//	serve_watch.go             what the metrics show of files and folders
//	demo.go, demo_text.go  the demo's accounts, and its first text; demomarket/ trades on it
//	descriptors_unix.go, descriptors_other.go, memory.go, processors.go  the machine's limits
//
// The operator's commands:
//
//	client.go, stream.go, operator.go  the connection, long answers, and what the commands share
//	operator_verb.go, operator_verbs.go  commands that make one request: how, and all of them
//	operator_show.go                     answers as text, and whether they are complete
//	operator_audit.go, operator_backup.go, operator_deposit_file.go, operator_export.go,
//	operator_members.go, operator_statement.go  the commands that do more
//	restore.go, restore_owner.go  the restore of a backup, without a server
package main
