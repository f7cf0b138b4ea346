// Package metrics collects the metrics of an edge, its engine, its stream and its node, for each
// scrape of /metrics.
//
//	collector.go  metrics of the edge, and the collection
//	engine.go     metrics of the engine
//	stream.go     metrics of the event stream
//	cluster.go    metrics of a cluster's node
//	watch.go      operators' pending work, liabilities, and resources that may run out
//	disk_unix.go, disk_other.go  free disk space of a folder
//	poll.go       metrics that are too slow to read during a scrape
//	sink.go       metrics in Prometheus's text format
package metrics
