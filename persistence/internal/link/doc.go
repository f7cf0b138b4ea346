// Package link takes frames from one node of a cluster to another, over TCP. A frame may be lost,
// and then its sender sends another: so a frame for which there is no room, or no connection, is
// dropped. Frames of one connection come in order.
//
// Each node dials each other one, and only sends over what it has dialled. Both sides prove their
// names by certificates: a certificate of the cluster's authority names a node, its role, and the
// cluster, in one DNS name, NAME.voter.CLUSTER.exchange. A frame comes from the node that the
// certificate names, whatever the frame says. Without certificates all addresses are of the
// loopback: then each process of the machine can say that it is any node.
//
// Each connection begins with a greeting of persistence/line, which is answered; frames and copies
// are its messages. Besides there are connections for what is above: Dial opens one, and Accept
// takes it. The same certificate, name and membership let it in, within the same time. Then the
// link has no part in what is said, but ends it: at Close, with the peer, and when a peer opens too
// many. It fails within seconds when the other machine is gone (on systems other than Linux later,
// while bytes are on their way).
//
// An observer is no node. Its certificate has another role, NAME.observer.CLUSTER.exchange, which
// lets it open connections with Dial, and neither send frames nor have copies. It listens nowhere.
//
//	link.go       listening, and what comes in
//	arriving.go   connections that are not known yet, and their bound
//	send.go       what goes out
//	copy.go       copies of a store, on connections of their own
//	call.go       connections for what is above
//	guest.go      observers, whose connections these may be
//	alive_linux.go, alive_other.go  a bound for what is not acknowledged
//	identity.go   names in certificates, and addresses
//	authority.go  the cluster's authority, and certificates in files
package link
