// Package redistest runs a private redis-server for a test. The server has a free port of
// 127.0.0.1, a folder of its own, and the settings that the exchange demands. A test can kill it as
// a failing machine would, and start it again on the same port and data.
//
//	redistest.go      starting, stopping, killing, settings, free ports
//	process_linux.go  the server's processes, on Linux
//	process_other.go  the server's process elsewhere
//	rewrite_linux.go  rewrites of the append-only file that take long or fail
package redistest
