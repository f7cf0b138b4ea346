package config

import (
	"maps"
	"strings"
	"testing"
)

const threeNodes = "a=127.0.0.1:7001,b=127.0.0.1:7002,c=127.0.0.1:7003"

func TestNodes(t *testing.T) {
	const far = "a=10.0.0.1:7000,b=10.0.0.2:7000,c=10.0.0.3:7000"
	for _, x := range []clusterCase{
		{"", "", nil, ""},
		{"a", threeNodes, nil, ""},
		{"c", " a=127.0.0.1:7001, b=127.0.0.1:7002, c=[::1]:7003 ", nil, ""},
		{"a", far, map[string]string{"CLUSTER_FOLDER": "/etc/exchange/cluster"}, ""},
		{"a", threeNodes, map[string]string{"CLUSTER_PUBLIC_URL": "https://a.example.org:8443"}, ""},
		{"", threeNodes, nil, "cluster.node is empty (--node): cluster.nodes is set"},
		{"a", "", nil, "cluster.nodes is empty (--nodes): cluster.node is set"},
		{"d", threeNodes, nil, `cluster.node is "d" (--node): it is none of cluster.nodes, which ` +
			`are a, b, c.`},
		{"a", far, nil, "node b is at 10.0.0.2:7000, and without certificates only loopback"},
		{"a", strings.ReplaceAll(threeNodes, "127.0.0.1", "localhost"), nil, "only loopback"},
		{"a", "a=127.0.0.1:7001", nil, "1 nodes tolerate no failure"},
		{"a", "a=127.0.0.1:7001,b=127.0.0.1:7002", nil, "2 nodes tolerate no failure"},
		{"a", threeNodes + ",d=127.0.0.1:7004", nil, ""},
		{"a", strings.Repeat(threeNodes+",", 2) + threeNodes, nil, "there twice"},
		{"a", strings.Replace(threeNodes, "b=", "a=", 1), nil, `"a" is there twice`},
		{"a", strings.Replace(threeNodes, "7002", "7001", 1), nil,
			`"127.0.0.1:7001" is there twice`},
		{"A", strings.Replace(threeNodes, "a=", "A=", 1), nil, `the name "A"`},
		{"-a", strings.Replace(threeNodes, "a=", "-a=", 1), nil, `the name "-a"`},
		{"a", threeNodes + ",", nil, `"" is no node such as`},
		{"a", strings.Replace(threeNodes, ":7001", "", 1), nil,
			`the address of node a is "127.0.0.1"`},
		{"a", strings.Replace(threeNodes, ":7001", ":0", 1), nil, "a port from 1 to"},
		{"a", strings.Replace(threeNodes, "127.0.0.1:7001", ":7001", 1), nil, "write a host"},
		{"a", strings.Replace(threeNodes, "7001", "8080", 1), nil, "node a has the port of listen"},
		{"b", strings.Replace(threeNodes, "7001", "8080", 1), nil, ""},
		{"a", threeNodes, map[string]string{"METRICS_LISTEN": "127.0.0.1:7001"},
			"it has the port of cluster.nodes"},
		{"a", threeNodes, map[string]string{"STORE": "redis://localhost"},
			"a node of a cluster keeps its part in an embedded store"},
		{"a", threeNodes, map[string]string{"ARCHIVE": "/archive"}, ""},
		{"", "", map[string]string{"CLUSTER_PUBLIC_URL": "https://a"}, "name cluster.node and"},
		{"", "", map[string]string{"CLUSTER_FOLDER": "/a"}, "name cluster.node and"},
		{"", "", map[string]string{"CLUSTER_OBSERVERS": "o1"}, "name cluster.node and"},
		{"a", threeNodes, map[string]string{"CLUSTER_OBSERVERS": " o1 ,o2"}, ""},
		{"a", threeNodes, map[string]string{"CLUSTER_OBSERVERS": "o1,O2"}, `the name "O2"`},
		{"a", threeNodes, map[string]string{"CLUSTER_OBSERVERS": "o1,o1"}, `the name "o1"`},
		{"a", threeNodes, map[string]string{"CLUSTER_FOLLOW": threeNodes}, "set cluster.observer"},
	} {
		c, err := x.load(t, "cluster.nodes")
		if err == nil && c.Cluster.On() && len(c.Cluster.Nodes()) != strings.Count(x.nodes, "=") {
			t.Errorf("%+v: %v", x, c.Cluster.Nodes())
		}
	}
}

// A clusterCase is the options of a cluster's process, and their problem.
type clusterCase struct {
	node, nodes string
	more        map[string]string // variables of the environment
	want        string            // "": accepted
}

// load loads a case, with the nodes under a key, and checks its problems. The error is nil if it is
// accepted.
func (x *clusterCase) load(t *testing.T, key string) (*Config, error) {
	t.Helper()
	src := Sources{File: write(t, market), Flags: map[string]string{"cluster.node": x.node,
		key: x.nodes}}
	for name, value := range x.more {
		src.Environ = append(src.Environ, "EXCHANGE_"+name+"="+value)
	}
	return loads(t, src, x.want, x)
}

func TestAPublicURLNamesAListenerAndNothingBelowIt(t *testing.T) {
	for text, good := range map[string]bool{
		"": true, "http://10.0.0.1:8080": true, "https://a.example.org": true, "http://[::1]:80": true,
		"a.example.org": false, "ftp://a": false, "https://": false, "https://a/": false,
		"https://a/b": false, "https://a?b": false, "https://a#b": false, "https://u:p@a": false,
		"https://a b": false, "https://a\r\nX-B: c": false, "https://" + strings.Repeat("a", 200): false,
	} {
		if validPublicURL(text) != good {
			t.Errorf("%q", text)
		}
	}
}

// An observer names the nodes that it connects to, and is none of them.
func TestAnObserverNamesTheNodesThatItFollows(t *testing.T) {
	const far = "a=10.0.0.1:7000,b=10.0.0.2:7000"
	for _, x := range []clusterCase{
		{"o1", threeNodes, nil, ""},
		{"a", threeNodes, nil, "it is the name of a node"},
		{"o1", "a=127.0.0.1:7001", nil, ""},
		{"o1", far, map[string]string{"CLUSTER_FOLDER": "/etc/exchange/cluster"}, ""},
		{"o1", far, nil, "without certificates only loopback"},
		{"", threeNodes, nil, `cluster.node is "" (--node): an observer has a name`},
		{"O", threeNodes, nil, `cluster.node is "O" (--node): an observer has a name`},
		{"o1", "", nil, "cluster.follow is"},
		{"o1", "a", nil, `"a" is no node such as`},
		{"o1", "a=127.0.0.1:1,a=127.0.0.1:2", nil, `"a" is there twice`},
		{"o1", threeNodes, map[string]string{"CLUSTER_NODES": threeNodes},
			"an observer is no node"},
		{"o1", threeNodes, map[string]string{"CLUSTER_OBSERVERS": "o2"}, "takes no observers"},
		{"o1", threeNodes, map[string]string{"ARCHIVE": "/archive"}, "keeps no journal"},
		{"o1", threeNodes, map[string]string{"CLUSTER_PUBLIC_URL": "ftp://a"}, "write http://HOST"},
	} {
		observes := map[string]string{"CLUSTER_OBSERVER": "true"}
		maps.Copy(observes, x.more)
		x.more = observes
		c, err := x.load(t, "cluster.follow")
		if err == nil && (!c.Cluster.On() ||
			len(c.Cluster.Nodes()) != strings.Count(x.nodes, "=")) {
			t.Errorf("%+v: %v", x, c.Cluster.Nodes())
		}
	}
	c := Cluster{observers: " o1 ,o2"}
	if names := c.Observers(); len(names) != 2 || names[0] != "o1" || names[1] != "o2" {
		t.Error(names)
	}
}
