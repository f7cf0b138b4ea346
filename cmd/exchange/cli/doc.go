// Package cli is shared by every command of the program: the run of a command line, its exit code,
// its output, and files that are whole or absent.
//
//	program.go    the run of a command line, and commands
//	arguments.go  arguments that the parser would misread
//	exit.go       exit codes, which errors carry
//	sources.go    the configuration, from the flags of `serve`
//	output.go     an answer as text or JSON, which may not be writable
//	progress.go   a line on the terminal while something long runs
//	files.go      files that are whole or absent
//	build.go      version and commit of the program
package cli
