package generator

// NewPortable is New with sockets that goroutines read, as on systems without epoll: for tests of
// loadtest.
func NewPortable(client Client, o Options) *Generator {
	return newGenerator(client, o, newPortablePoller())
}
