package metrics

import (
	"exchange/actors/metrics"
	"exchange/gateway/operator"
)

// cluster gives each node's view of the cluster.
func (s sink) cluster(c *operator.Standing) {
	s.metric("cluster_leads",
		"1 while this node leads the cluster. The sum over all nodes is 1, but for the moments of "+
			"an election: 0 for longer is an outage.").yes(c.Leads())
	s.metric("cluster_term",
		"The term of the cluster as this node sees it: each election has a higher one.").
		gauge(float64(c.Term))
	s.metric("cluster_elections_total",
		"Elections that this node has begun since its start. Growth without a death is a network "+
			"or a machine that stalls for longer than ten ticks.").counter(c.Elections)
	s.metric("cluster_impossible_total",
		"Impossible messages that this node received from members since its start: each time the "+
			"member was cut off for a while.").counter(c.Impossible)
	s.metric("cluster_applied_index",
		"Index of the newest entry of the cluster's log that is applied here.").
		gauge(float64(c.Applied))
	s.metric("cluster_committed_index",
		"Index of the newest entry that more than half of the nodes have, as far as this "+
			"node sees. Without growth under load nothing is acknowledged.").
		gauge(float64(c.Committed))
	s.metric("cluster_folded_sequence",
		"Newest record of the journal that is in this node's state. The difference to the node "+
			"that leads is what a take-over has to fold first.").gauge(float64(c.Folded))
	s.metric("cluster_log_bytes",
		"Disk space of this node's log. It grows while another node lacks it, up to "+
			"cluster.log_max of the node that leads, and while this node's archive or its "+
			"snapshots fail.").gauge(float64(c.LogBytes))
	s.metric("cluster_fault",
		"1 while this node votes and cannot serve, because its state could not take a record; the "+
			"log says why.").yes(c.Fault != "")
	s.metric("cluster_clock_offset_seconds",
		"This node's clock less the median of the clocks of all nodes. Beyond 0.5 either way the "+
			"node hands the lead over, and does not lead.").gauge(c.ClockAhead.Seconds())
	if c.Links != nil {
		s.links(c.Links)
	}
	if c.Observer {
		s.metric("cluster_feed_batches_total",
			"Batches of the journal that nodes have sent to this observer since it began from an "+
				"image. Clients of the observer do not add to them.").counter(c.FedBatches)
		s.metric("cluster_feed_bytes_total",
			"Bytes that an observer was sent with these batches, and with its image.").
			counter(c.FedBytes)
	}
	lag := s.metric("cluster_peer_lag_entries",
		"Entries that a node lacks of those that more than half of the nodes have, as the "+
			"leader sees it. Growing steadily: that node is down, or too slow, and the others "+
			"keep their logs for it.", "node")
	silent := s.metric("cluster_peer_silent_seconds",
		"Time since the last message of another node: at the leader of all "+
			"nodes, elsewhere of the leader.", "node")
	for i := range c.Nodes {
		n := &c.Nodes[i]
		// a voter that is replaced by itself is listed twice
		if n.Name == c.Node || n.Role == operator.Awaited || n.Replaces == n.Name {
			continue
		}
		if c.Leads() {
			lag.gauge(float64(operator.Lag(c, n)), n.Name)
		}
		if c.Leads() || n.Name == c.Leader {
			silent.gauge(float64(n.Silent)*c.Tick.Seconds(), n.Name)
		}
	}
}

// links gives the traffic between nodes.
func (s sink) links(l *metrics.Links) {
	s.link("to", &l.To)
	s.link("from", &l.From)
	passed := s.metric("cluster_observer_requests_total",
		"Requests and logins that observers have forwarded as they were signed, by outcome: "+
			"verified, or refused for a signature, an address, a permission, a rate or a field.",
		"outcome")
	passed.counter(l.Verified.Load(), "verified")
	passed.counter(l.Refused.Load(), "refused")
}

// link gives the traffic in one direction.
func (s sink) link(direction string, l *metrics.Link) {
	s.metric("cluster_links",
		"Connections for clients' commands and reads, by direction: to the node that leads, from "+
			"those that follow. A node that follows and has none refuses both.", "direction").
		gauge(float64(l.Up.Load()), direction)
	s.metric("cluster_link_requests_in_flight",
		"Requests on these connections without an answer, by direction. Commands that a client "+
			"sent together are one.", "direction").gauge(float64(l.InFlight.Load()), direction)
	requests := s.metric("cluster_link_requests_total",
		"Requests on these connections, by direction and outcome: answered, full if too many were "+
			"in flight, and unknown if the connection broke before the answer.", "direction",
		"outcome")
	requests.counter(l.Answered.Load(), direction, "answered")
	requests.counter(l.Full.Load(), direction, "full")
	requests.counter(l.Unknown.Load(), direction, "unknown")
}
