package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Cluster makes the exchange one of several nodes that share a journal, or an observer of them.
type Cluster struct {
	Node      string // this node's name; "": the exchange runs on this machine alone
	nodes     string // all nodes, in the form of ParseNodes; "": this is an observer
	Observer  bool   // this process is no node of the cluster
	follow    string // nodes that an observer connects to
	observers string // names of accepted observers
	Folder    string // of this node's certificate; "": plain connections on loopback
	TickMs    int
	LogMax    int
	PublicURL string // clients' address of this node; "": the others do not announce it
}

// On reports whether the exchange is a node of a cluster, or an observer.
func (c *Cluster) On() bool { return c.Node != "" }

// Nodes returns all nodes; for an observer, those it connects to.
func (c *Cluster) Nodes() []Node {
	if c.Observer {
		return parsed(parseList(c.follow))
	}
	return parsed(ParseNodes(c.nodes))
}

func parsed(list []Node, err error) []Node {
	if err != nil {
		panic("BUG: the nodes were not checked: " + err.Error())
	}
	return list
}

// Observers returns the names of the accepted observers.
func (c *Cluster) Observers() (names []string) {
	for name := range strings.SplitSeq(c.observers, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// A Node is a member of a cluster.
type Node struct {
	Name    string // 1 to 63 characters of a-z, 0-9 and '-'
	Address string // host:port for the other nodes
}

const (
	leastNodes = 3
	maxNodes   = 9
	// maxLabel bounds a node's name, which is a part of a DNS name, in characters.
	maxLabel = 63
	// maxURL bounds cluster.public_url, in bytes: it is part of the owner's name in the journal.
	maxURL = 200
)

// ParseNodes reads a=HOST:PORT,b=HOST:PORT,c=HOST:PORT: three to nine nodes with distinct names and
// addresses.
func ParseNodes(text string) (list []Node, err error) {
	list, err = parseList(text)
	if n := len(list); err == nil && n < leastNodes {
		return nil, fmt.Errorf("%d nodes tolerate no failure, because more than half of them "+
			"must be up: name three", n)
	}
	return list, err
}

// parseList is ParseNodes of one node or more.
func parseList(text string) (list []Node, err error) {
	seen := map[string]bool{}
	for entry := range strings.SplitSeq(text, ",") {
		node, err := ParseNode(strings.TrimSpace(entry))
		if err != nil {
			return nil, err
		}
		for _, one := range []string{node.Name, node.Address} {
			if seen[one] {
				return nil, fmt.Errorf("%q is there twice: each node has a name and an address of "+
					"its own", one)
			}
			seen[one] = true
		}
		list = append(list, node)
	}
	if n := len(list); n > maxNodes {
		return nil, fmt.Errorf("%d nodes are too many: name at most %d", n, maxNodes)
	}
	return list, nil
}

// ParseNode reads a=HOST:PORT.
func ParseNode(entry string) (Node, error) {
	name, address, ok := strings.Cut(entry, "=")
	if !ok {
		return Node{}, fmt.Errorf("%q is no node such as a=10.0.0.1:7000", entry)
	}
	if !validLabel(name) {
		return Node{}, fmt.Errorf("the name %q: a node's name has 1 to %d characters of a-z and "+
			"0-9, and '-' between them", name, maxLabel)
	}
	host, port, err := net.SplitHostPort(address)
	if n, e := strconv.Atoi(port); err != nil || e != nil || n < 1 || n > 65535 ||
		everyInterface(host) || strings.ContainsFunc(host, unicode.IsSpace) {
		return Node{}, fmt.Errorf("the address of node %s is %q: write a host and a port from 1 "+
			"to 65535, such as 10.0.0.1:7000, at which the other nodes reach it", name, address)
	}
	return Node{name, address}, nil
}

// validLabel reports whether s can be the name of a node.
func validLabel(s string) bool {
	return s != "" && len(s) <= maxLabel && s[0] != '-' && s[len(s)-1] != '-' &&
		!strings.ContainsFunc(s, func(r rune) bool {
			return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
		})
}

// cluster checks the options of a node, if the exchange is one.
func (v *validator) cluster(taken *ports) {
	c := &v.c.Cluster
	if c.Observer {
		v.observer()
		return
	}
	if c.follow != "" {
		v.problem("cluster.follow", strconv.Quote(c.follow), "it is for an observer; set "+
			"cluster.observer, or name all nodes in cluster.nodes")
	}
	switch {
	case c.Node == "" && c.nodes == "":
		for _, x := range []struct{ key, value string }{{"cluster.folder", c.Folder},
			{"cluster.public_url", c.PublicURL}, {"cluster.observers", c.observers}} {
			if x.value != "" {
				v.problem(x.key, strconv.Quote(x.value),
					"it is for a node of a cluster; name cluster.node and cluster.nodes, too")
			}
		}
		return
	case c.Node == "":
		v.problem("cluster.node", "empty", "cluster.nodes is set; name the node that this one is")
		return
	case c.nodes == "":
		v.problem("cluster.nodes", "empty",
			"cluster.node is set; name all nodes, as a=HOST:PORT,b=HOST:PORT,c=HOST:PORT")
		return
	}
	list, err := ParseNodes(c.nodes)
	if err != nil {
		v.problem("cluster.nodes", strconv.Quote(c.nodes), "%v", err)
		return
	}
	v.nodes(list, taken)
	v.publicURL()
	names := c.Observers()
	for i, name := range names {
		if !validLabel(name) || slices.Contains(names[:i], name) {
			v.problem("cluster.observers", strconv.Quote(c.observers), "the name %q: write names "+
				"of 1 to %d characters of a-z and 0-9, and '-' between them, each once, such as "+
				"o1,o2", name, maxLabel)
		}
	}
	if v.c.isRedis() {
		v.problem("store", strconv.Quote(RedactURL(v.c.Store)),
			"a node of a cluster keeps its part in an embedded store; write pebble:FOLDER")
	}
}

func (v *validator) publicURL() {
	if url := v.c.Cluster.PublicURL; !validPublicURL(url) {
		v.problem("cluster.public_url", strconv.Quote(RedactURL(url)),
			"write http://HOST or https://HOST, with a port if it is not the usual one, and "+
				"nothing after that")
	}
}

// observer checks the options of an observer.
func (v *validator) observer() {
	c := &v.c.Cluster
	if !validLabel(c.Node) {
		v.problem("cluster.node", strconv.Quote(c.Node), "an observer has a name, too, which "+
			"identifies it to the nodes: 1 to %d characters of a-z and 0-9, and '-' between them",
			maxLabel)
	}
	for _, x := range []struct{ key, value, why string }{
		{"cluster.nodes", c.nodes, "an observer is no node; name those that it calls in " +
			"cluster.follow"},
		{"cluster.observers", c.observers, "an observer takes no observers; leave it out"},
		{"archive", v.c.Archive, "an observer keeps no journal; leave it out"},
	} {
		if x.value != "" {
			v.problem(x.key, strconv.Quote(x.value), "%s", x.why)
		}
	}
	v.publicURL()
	list, err := parseList(c.follow)
	if err != nil {
		v.problem("cluster.follow", strconv.Quote(c.follow), "%v; name all nodes of the cluster, "+
			"as a=HOST:PORT,b=HOST:PORT,c=HOST:PORT", err)
		return
	}
	for _, n := range list {
		v.private("cluster.follow", c.follow, n)
		if n.Name == c.Node {
			v.problem("cluster.node", strconv.Quote(c.Node),
				"it is the name of a node in cluster.follow; an observer has a name of its own")
		}
	}
}

// private refuses a node on another machine without certificates.
func (v *validator) private(key, value string, n Node) {
	host, _, _ := net.SplitHostPort(n.Address)
	if ip, err := netip.ParseAddr(host); v.c.Cluster.Folder == "" &&
		(err != nil || !ip.IsLoopback()) {
		v.problem(key, strconv.Quote(value),
			"node %s is at %s, and without certificates only loopback addresses such as "+
				"127.0.0.1:7000 are possible, because any other machine could be a node; run "+
				"`exchange cluster init` and set cluster.folder", n.Name, n.Address)
	}
}

// nodes checks that this node is one of the nodes, and their addresses.
func (v *validator) nodes(list []Node, taken *ports) {
	c := &v.c.Cluster
	names, there := make([]string, 0, len(list)), false
	for _, n := range list {
		names = append(names, n.Name)
		v.private("cluster.nodes", c.nodes, n)
		host, text, _ := net.SplitHostPort(n.Address)
		if n.Name != c.Node {
			continue
		}
		there = true
		number, _ := strconv.Atoi(text)
		own := endpoint{host, number}
		for _, at := range *taken {
			if own.conflictsWith(at.endpoint) {
				v.problem("cluster.nodes", strconv.Quote(c.nodes),
					"node %s has the port of %s; give it another", n.Name, at.key)
			}
		}
		*taken = append(*taken, port{"cluster.nodes", own})
	}
	if !there {
		v.problem("cluster.node", strconv.Quote(c.Node),
			"it is none of cluster.nodes, which are %s", strings.Join(names, ", "))
	}
}

// validPublicURL reports whether a text names a listener without a path.
func validPublicURL(text string) bool {
	if text == "" {
		return true
	}
	u, err := url.Parse(text)
	return err == nil && len(text) <= maxURL && (u.Scheme == "http" || u.Scheme == "https") &&
		u.Hostname() != "" && u.User == nil && text == u.Scheme+"://"+u.Host &&
		!strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}
