// Command exchange is the exchange: its server, and the operator's commands, its clients.
//
//	main.go, root.go            the process, and the tree of commands
//	command_version.go          version and commit of the program
//	umask_unix.go, umask_other.go  permissions of written files
//
// Its packages: cli is shared by all commands. serve has the commands that start a process or
// change its files, operate the clients of a running exchange. demomarket trades on the demo;
// hangup receives SIGHUP.
package main
