// Package link sends frames between nodes of a cluster, over TCP. A frame may be lost, and then its
// sender sends another: so a frame without room in the queue, or without a connection, is dropped.
// Frames of one connection come in order.
//
// Each node dials each other one, and only sends over what it has dialled. Both sides prove their
// names by certificates: a certificate of the cluster's authority names a node, its role, and the
// cluster, in one DNS name, NAME.voter.CLUSTER.exchange. A frame comes from the node that the
// certificate names, whatever the frame claims. Without certificates all addresses are of the
// loopback: then each process of the machine can impersonate any node.
//
// Each connection begins with a greeting of persistence/line, which is answered; frames and copies
// are its messages. Other connections serve the layers above: Dial opens one, and Accept takes it.
// They need the same certificate, name and membership, within the same time. The link does not read
// them, but closes them: at Close, with the peer, and when a peer opens too many. They fail within
// seconds when the other machine is unreachable (on systems other than Linux later, while bytes are
// in flight).
//
// An observer is no node. Its certificate has another role, NAME.observer.CLUSTER.exchange, which
// lets it open connections with Dial, but neither send frames nor fetch copies. It does not listen.
//
//	link.go       listening, and incoming connections
//	arriving.go   connections that are not identified yet, and their bound
//	send.go       outgoing frames
//	copy.go       copies of a store, on connections of their own
//	call.go       connections for the layers above
//	guest.go      observers, whose connections these may be
//	alive_linux.go, alive_other.go  a bound for unacknowledged bytes
//	identity.go   names in certificates, and addresses
//	authority.go  the cluster's authority, and certificates in files
package link
