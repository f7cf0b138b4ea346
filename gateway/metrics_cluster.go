package gateway

import (
	"exchange/actors/metrics"
	"exchange/gateway/operator"
)

// The metrics of a node of a cluster, which every node has.
var (
	clusterLeads = describe("cluster_leads",
		"1 while this node leads the cluster. The sum over all nodes is 1, but for the moments of "+
			"an election: 0 for longer is an outage.")
	clusterTerm = describe("cluster_term",
		"The term of the cluster as this node knows it: each election has a higher one.")
	clusterElections = describe("cluster_elections_total",
		"Elections that this node has begun since its start. Growth without a death is a network "+
			"or a machine that stands still for longer than ten ticks.")
	clusterApplied = describe("cluster_applied_index",
		"Index of the newest entry of the cluster's log that is applied here.")
	clusterCommitted = describe("cluster_committed_index",
		"Index of the newest entry that more than half of the nodes have, as far as this node "+
			"knows. Without growth under load nothing is acknowledged.")
	clusterFolded = describe("cluster_folded_sequence",
		"Newest record of the journal that is in this node's state. The difference to the node "+
			"that leads is what a take-over has to fold first.")
	clusterLog = describe("cluster_log_bytes",
		"What this node's log takes on its disk. It grows while another node lacks it, up to "+
			"cluster.log_max of the node that leads, and while this node's archive or its "+
			"snapshots fail.")
	clusterFault = describe("cluster_fault",
		"1 while this node votes and cannot serve, because its state could not take a record; the "+
			"log says why.")
	clusterClock = describe("cluster_clock_offset_seconds",
		"This node's clock less the median of the clocks of all nodes. Beyond 0.5 either way the "+
			"node hands the lead over, and does not lead.")
	clusterLag = describe("cluster_peer_lag_entries",
		"Entries that a node lacks of those that more than half of the nodes have, as the node "+
			"that leads knows. Growing steadily: that node is down, or too slow, and the others "+
			"keep their logs for it.", "node")
	clusterSilent = describe("cluster_peer_silent_seconds",
		"For how long nothing has come from another node: at the node that leads of all, "+
			"elsewhere of the node that leads.", "node")
	clusterLinks = describe("cluster_links",
		"Connections for clients' commands and reads, by direction: to the node that leads, from "+
			"those that follow. A node that follows and has none refuses both.", "direction")
	clusterFlying = describe("cluster_link_requests_in_flight",
		"Requests on these connections without an answer, by direction. Commands that a client "+
			"sent together are one.", "direction")
	clusterRequests = describe("cluster_link_requests_total",
		"Requests on these connections, by direction and outcome: answered, full if too many were "+
			"in flight, and unknown if the connection broke before the answer.", "direction",
		"outcome")
	clusterImpossible = describe("cluster_impossible_total",
		"What members have said to this node since its start that cannot be true: each time the "+
			"member was cut off for a while.")
	clusterPassed = describe("cluster_observer_requests_total",
		"Requests and logins that observers have passed on as they were signed, by outcome: "+
			"verified, or refused for a signature, an address, a permission, a rate or a field.",
		"outcome")
	clusterFedBatches = describe("cluster_feed_batches_total",
		"Batches of the journal that nodes have sent to this observer since it began from an "+
			"image. Clients of the observer do not add to them.")
	clusterFedBytes = describe("cluster_feed_bytes_total",
		"Bytes that an observer was sent with these batches, and with its image.")
)

var clusterFamilies = []family{clusterLeads, clusterTerm, clusterElections, clusterImpossible,
	clusterApplied, clusterCommitted, clusterFolded, clusterLog, clusterFault, clusterClock,
	clusterLag, clusterSilent, clusterLinks, clusterFlying, clusterRequests, clusterPassed,
	clusterFedBatches, clusterFedBytes}

// cluster gives what a node knows of the cluster.
func (s sink) cluster(c *operator.Standing) {
	s.yes(clusterLeads, c.Leads())
	s.gauge(clusterTerm, float64(c.Term))
	s.counter(clusterElections, c.Elections)
	s.counter(clusterImpossible, c.Impossible)
	s.gauge(clusterApplied, float64(c.Applied))
	s.gauge(clusterCommitted, float64(c.Committed))
	s.gauge(clusterFolded, float64(c.Folded))
	s.gauge(clusterLog, float64(c.LogBytes))
	s.yes(clusterFault, c.Fault != "")
	s.gauge(clusterClock, c.ClockAhead.Seconds())
	if c.Links != nil {
		s.link("to", &c.Links.To)
		s.link("from", &c.Links.From)
		s.counter(clusterPassed, c.Links.Verified.Load(), "verified")
		s.counter(clusterPassed, c.Links.Refused.Load(), "refused")
	}
	if c.Observer {
		s.counter(clusterFedBatches, c.FedBatches)
		s.counter(clusterFedBytes, c.FedBytes)
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		// a voter that is replaced by itself has its name twice
		if n.Name == c.Node || n.Role == operator.Awaited || n.Replaces == n.Name {
			continue
		}
		if c.Leads() {
			s.gauge(clusterLag, float64(operator.Lag(c, n)), n.Name)
		}
		if c.Leads() || n.Name == c.Leader {
			s.gauge(clusterSilent, float64(n.Silent)*c.Tick.Seconds(), n.Name)
		}
	}
}

// link gives what goes over the connections of one direction.
func (s sink) link(direction string, l *metrics.Link) {
	s.gauge(clusterLinks, float64(l.Up.Load()), direction)
	s.gauge(clusterFlying, float64(l.InFlight.Load()), direction)
	s.counter(clusterRequests, l.Answered.Load(), direction, "answered")
	s.counter(clusterRequests, l.Full.Load(), direction, "full")
	s.counter(clusterRequests, l.Unknown.Load(), direction, "unknown")
}
