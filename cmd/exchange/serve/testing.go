//go:build unix

package serve

// KeptDescriptors is for tests of cmd/exchange: the program's file descriptors besides one for each
// connection.
const KeptDescriptors = keptDescriptors
