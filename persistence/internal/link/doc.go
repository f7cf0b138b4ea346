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
//	link.go       listening, and what comes in
//	send.go       what goes out
//	copy.go       copies of a store, on connections of their own
//	identity.go   names in certificates, and addresses
//	authority.go  the cluster's authority, and certificates in files
package link
