// Command exchange is the exchange: its server, and the operator's commands that talk to one.
//
//	main.go, root.go            the process, and the tree of commands
//	command_version.go          version and commit of the program
//	umask_unix.go, umask_other.go  permissions of written files
//
// Its packages: cli is shared by all commands, serve has the commands of this machine, and operate
// those that talk to a running exchange. demomarket trades on the demo; hangup receives SIGHUP.
package main
