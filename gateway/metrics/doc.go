// Package metrics collects the numbers of an edge, its engine, its stream and its node, for each
// scrape of /metrics.
//
//	collector.go  the numbers of the edge, and the collection
//	engine.go     the numbers of the engine
//	stream.go     the numbers of the event stream
//	cluster.go    the numbers of a node of a cluster
//	watch.go      operators' pending work, liabilities, and resources that may run out
//	disk_unix.go, disk_other.go  the room of a folder's disk
//	poll.go       numbers whose lookup takes longer than a scrape may
//	sink.go       numbers in the form of Prometheus
package metrics
