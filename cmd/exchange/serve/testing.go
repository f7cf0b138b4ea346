//go:build unix

package serve

// KeptDescriptors is for tests of cmd/exchange: the file descriptors that the program needs beside
// one for each connection.
const KeptDescriptors = keptDescriptors
