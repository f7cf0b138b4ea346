//go:build prove

package processes

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"exchange/prove/exchangetest"
)

// A cluster is three nodes on this machine, with certified names.
type cluster struct {
	t      *testing.T
	folder string // of `exchange cluster init`
	names  []string
	list   []string // of names and addresses
	nodes  []*exchangetest.Server
	// between returns the address by which one node reaches another one; nil: its own
	between func(from, to, address string) string
}

// newCluster starts three nodes with additional environment variables.
func newCluster(t *testing.T, env ...string) *cluster {
	t.Helper()
	c := prepareCluster(t, nil)
	c.runs(env...)
	return c
}

func (c *cluster) runs(env ...string) {
	for _, s := range c.nodes {
		s.Env = append(s.Env, env...)
		s.Run()
	}
}

// led waits for a leader that the others follow.
func (c *cluster) led() *exchangetest.Server {
	c.t.Helper()
	led := c.leader(nil)
	for _, s := range c.others(led) {
		c.follows(s, led)
	}
	return led
}

// prepareCluster creates the nodes' files, and starts none. between may be nil.
func prepareCluster(t *testing.T, between func(from, to, address string) string) *cluster {
	t.Helper()
	c := &cluster{t: t, between: between, folder: filepath.Join(t.TempDir(), "cluster")}
	for _, name := range []string{"a", "b", "c"} {
		c.list = append(c.list, name+"="+exchangetest.FreeAddress(t))
	}
	for _, name := range []string{"a", "b", "c"} {
		if s := c.node(name); name == "a" {
			c.command(s, append([]string{"cluster", "init", c.folder}, c.list...)...)
		}
	}
	return c
}

// node prepares a node with an empty folder, which names all nodes of the list.
func (c *cluster) node(name string) *exchangetest.Server {
	c.t.Helper()
	reached := slices.Clone(c.list)
	for i, entry := range reached {
		if to, address, _ := strings.Cut(entry, "="); c.between != nil && to != name {
			reached[i] = to + "=" + c.between(name, to, address)
		}
	}
	s := exchangetest.NewNode(c.t, c.folder, name, reached)
	if len(c.nodes) > 0 { // whichever node leads, its mails are found
		s.SendsMailsTo(c.nodes[0].Mails)
	}
	c.names, c.nodes = append(c.names, name), append(c.nodes, s)
	return s
}

// further prepares and starts an additional node, and returns it with its name and address.
func (c *cluster) further(name string) (s *exchangetest.Server, entry string) {
	c.t.Helper()
	entry = name + "=" + exchangetest.FreeAddress(c.t)
	c.list = append(c.list, entry)
	c.command(c.nodes[0], "cluster", "certify", c.folder, name)
	s = c.node(name)
	s.Run()
	return s, entry
}

// command runs an operator's command that succeeds.
func (c *cluster) command(s *exchangetest.Server, args ...string) string {
	c.t.Helper()
	return does(c.t, s, args...)
}

// removed waits until a removed node has ended, and checks that it ends again.
func (c *cluster) removed(s *exchangetest.Server) {
	c.t.Helper()
	name := c.name(s)
	endsWith(c.t, s, 77, "node "+name+", which is removed,")
	const words = "this node was removed from its cluster"
	if !strings.Contains(s.Log(), words) {
		c.t.Errorf("node %s does not say why it ends", name)
	}
	s.Refuses(77, words)
	i := slices.Index(c.nodes, s)
	c.nodes, c.names = slices.Delete(c.nodes, i, i+1), slices.Delete(c.names, i, i+1)
}

// status returns the status of a path at a node; 0: no answer.
func (c *cluster) status(s *exchangetest.Server, path string) int {
	status, _, err := s.Client.Get(nil, "http://"+s.Listen+path)
	if err != nil {
		return 0
	}
	return status
}

// leader waits for a leader other than not, and returns it.
func (c *cluster) leader(not *exchangetest.Server) (led *exchangetest.Server) {
	c.t.Helper()
	exchangetest.Eventually(c.t, "a node leads", func() bool {
		for _, s := range c.nodes {
			if s != not && c.status(s, "/leaderz") == 200 {
				led = s
				return true
			}
		}
		return false
	})
	return led
}

// name returns a node's name.
func (c *cluster) name(s *exchangetest.Server) string {
	for i, x := range c.nodes {
		if x == s {
			return c.names[i]
		}
	}
	c.t.Fatal("it is no node")
	return ""
}

// entry returns a node's name and its address for the others.
func (c *cluster) entry(s *exchangetest.Server) string {
	return c.list[slices.Index(c.names, c.name(s))]
}

// emptied removes a node's folders.
func (c *cluster) emptied(s *exchangetest.Server) {
	c.t.Helper()
	store := s.Args[slices.Index(s.Args, "--store")+1]
	succeeds(c.t, os.RemoveAll(s.Data("")), os.RemoveAll(strings.TrimPrefix(store, "pebble:")))
}

// others returns all nodes but one.
func (c *cluster) others(s *exchangetest.Server) (list []*exchangetest.Server) {
	for _, x := range c.nodes {
		if x != s {
			list = append(list, x)
		}
	}
	return list
}

// A clusterView is a node's status for operators.
type clusterView struct {
	Role, Leader string
	Term         uint64
	Folded       uint64
	Fault        string
	Format       int // the newest enabled one
	Nodes        []member
}

// A member is a node as another one sees it.
type member struct{ Name, Role string }

func (c *cluster) view(s *exchangetest.Server) (k clusterView, err error) {
	_, err = s.Call("GET", "/operator/v1/cluster", nil, &k)
	return k, err
}

// follows waits until a node follows another one and has caught up.
func (c *cluster) follows(s, led *exchangetest.Server) {
	c.t.Helper()
	exchangetest.Eventually(c.t, "node "+c.name(s)+" has caught up", func() bool {
		own, err1 := c.view(s)
		its, err2 := c.view(led)
		return cmp.Or(err1, err2) == nil && own.Role == "follower" && own.Leader == c.name(led) &&
			own.Folded >= its.Folded && own.Fault == ""
	})
	exchangetest.Eventually(c.t, "node "+c.name(s)+" serves", func() bool {
		return c.status(s, "/readyz") == 200
	})
	for path, want := range map[string]int{"/healthz": 200, "/leaderz": 503,
		"/api/v1/ticker/": 200, "/api/v1/wallets/": 401} { // reads wait for a confirmation
		exchangetest.Eventually(c.t, path+" of a node that follows is answered as it should",
			func() bool { return c.status(s, path) == want })
	}
	var out, text string
	var code int
	exchangetest.Eventually(c.t, "the load lets a command in", func() bool {
		out, text, code = s.Command("account", "list")
		return code != 75 // not now
	})
	if code != 0 {
		c.t.Errorf("a command at a node that follows ends with %d: %s%s", code, out, text)
	}
}

// same waits until all nodes have the same sequence, without load, and compares their states.
func (c *cluster) same() {
	c.t.Helper()
	type hash struct {
		Node     string
		Sequence uint64
		Hash     string
	}
	var all []hash
	exchangetest.Eventually(c.t, "all nodes are at the same sequence", func() bool {
		all = all[:0]
		for _, s := range c.nodes {
			var h hash
			if _, err := s.Call("GET", "/operator/v1/cluster/hash", nil, &h); err != nil {
				return false
			}
			if all = append(all, h); h.Sequence != all[0].Sequence {
				return false
			}
		}
		return true
	})
	for _, h := range all {
		if h.Hash != all[0].Hash || h.Hash == "" {
			c.t.Fatalf("the nodes have other states at the same sequence: %+v", all)
		}
	}
}

// handsOver lets an operator hand the lead over to a node.
func (c *cluster) handsOver(to *exchangetest.Server) {
	c.t.Helper()
	from := c.leader(nil)
	if _, text, code := from.Command("cluster", "transfer", c.name(to)); code != 0 {
		c.t.Fatalf("the lead of %s is not handed over to %s: %s", c.name(from), c.name(to), text)
	}
	exchangetest.Eventually(c.t, "node "+c.name(to)+" leads", func() bool {
		return c.status(to, "/leaderz") == 200
	})
}

// The leader of three nodes is killed under load. Another one resumes with everything acknowledged,
// the killed one comes back and catches up, the lead is handed from one to the next, and each one's
// books balance.
func TestTheClusterResumesWhenItsLeaderIsKilled(t *testing.T) {
	c := newCluster(t)
	led := c.leader(nil)
	w := opened(t, led, 2)
	for _, s := range c.others(led) {
		c.follows(s, led)
	}
	w.load(60, led.Kill)
	killed := led
	led = c.leader(killed)
	w.turnTo(led)
	w.compare()
	w.load(20, func() {})

	killed.Run()
	c.follows(killed, led)
	for _, s := range append(c.others(killed), killed) {
		if s != led {
			c.handsOver(s)
			w.turnTo(s)
			w.load(20, func() {})
			led = s
			clean(t, led)
		}
	}
	_, text, code := led.Command("cluster", "transfer", c.name(led))
	if code != 64 || !strings.Contains(text, "leads already") {
		t.Errorf("%d %s", code, text)
	}

	// The leader hands over before it ends, so the next one leads without an election timeout.
	for _, s := range []*exchangetest.Server{led, c.others(led)[0], c.others(led)[1]} {
		if code := s.Terminate(); code != 0 {
			t.Errorf("node %s ends with %d", c.name(s), code)
		}
	}
	c.runs()
	w.turnTo(c.leader(nil))
	w.compare()
}

// A single-machine exchange resumes as the first node of a cluster, with everything acknowledged.
func TestABackupBecomesTheFirstNodeOfACluster(t *testing.T) {
	backups := filepath.Join(t.TempDir(), "backups")
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	s.Start()
	w := opened(t, s, 3)
	w.load(200, func() {})
	w.compare()
	w.run(0, "", "backup", backups)
	c := prepareCluster(t, nil)
	a := &target{Server: c.nodes[0]}
	c.bring(s)

	// nothing is written without the cluster's files
	env := a.Env
	a.Env = append(slices.Clip(env), "EXCHANGE_CLUSTER_FOLDER="+filepath.Join(c.folder, "none"))
	if out, text, code := a.Command(a.restore(backups)...); code != 64 ||
		!strings.Contains(text, "cluster's id") || !strings.Contains(text, "nothing was written") {
		t.Fatalf("a restore without the cluster's files ends with %d:\n%s%s", code, out, text)
	}
	a.Env = env
	a.fill(t, backups)
	_, text, code := a.Command(a.restore(backups)...)
	if code != 64 || !strings.Contains(text, "is that of a cluster's node") {
		t.Errorf("a restore over a node ends with %d: %s", code, text)
	}
	a.Start()
	if text := a.Log(); !strings.Contains(text, "a new history begins") {
		t.Errorf("the log does not say that a new history begins:\n%s", text)
	}
	w.turnTo(a.Server)
	w.compare()
	w.load(50, func() { a.Kill(); a.Start() })
	w.compare()
	clean(t, a.Server)
	if k, err := c.view(a.Server); err != nil || k.Role != "leader" || k.Leader != "a" {
		t.Error(k, err)
	}

	// another node joins under load, with a copy of the first one's store, and serves
	b := c.nodes[1]
	b.Run()
	w.load(50, func() { c.command(a.Server, "cluster", "add", c.list[1]) })
	c.follows(b, a.Server)
	b.Kill()
	b.Run()
	c.follows(b, a.Server)
	c.handsOver(b)
	w.turnTo(b)
	w.compare()
	clean(t, b)
	c.handsOver(a.Server)
	c.command(a.Server, "cluster", "remove", "b")

	// it does not serve as a single-machine exchange, which would abandon its log
	a.Kill()
	a.Args = withoutCluster(a.Args)
	a.Env = slices.DeleteFunc(a.Env, func(v string) bool {
		return strings.HasPrefix(v, "EXCHANGE_CLUSTER_")
	})
	a.Refuses(64, "is that of a cluster's node")
}

// survive returns the command that lets a node survive alone.
func survive(s *exchangetest.Server, more ...string) []string {
	return slices.Concat([]string{"cluster", "survive"}, s.Args[1:], more)
}

// Three nodes are killed under load and two lose their folders. The third survives alone with all
// of its data, and its books balance. A node that comes back with an empty folder is refused with a
// reason.
func TestANodeSurvivesTheOthers(t *testing.T) {
	c := newCluster(t)
	led := c.leader(nil)
	w := opened(t, led, 2)
	w.load(60, func() {})
	w.compare()
	for _, s := range c.others(led) {
		c.follows(s, led)
	}
	if _, text, code := led.Command(survive(led, "--yes")...); code != 75 {
		t.Fatalf("a node that runs survives with %d: %s", code, text)
	}
	for _, s := range c.nodes {
		s.Kill()
	}
	others := c.others(led)
	c.emptied(others[1])
	_, text, code := led.Command(survive(led)...)
	if code != 64 || !strings.Contains(text, "The members were not changed") {
		t.Fatalf("without --yes it ends with %d: %s", code, text)
	}
	out, text, code := led.Command(survive(led, "--yes")...)
	if code != 0 || !strings.Contains(out, "continues alone after sequence") {
		t.Fatalf("it ends with %d: %s%s", code, out, text)
	}
	led.Start()
	if text := led.Log(); !strings.Contains(text, "a new history begins") {
		t.Errorf("the log does not say that a new history begins:\n%s", text)
	}
	w.compare()
	w.load(30, func() { led.Kill(); led.Start() })
	w.compare()
	clean(t, led)
	c.emptied(others[0])
	for _, s := range others {
		s.Run()
		exchangetest.Eventually(t, "a node with a new folder says why it does not get in",
			func() bool { return strings.Contains(s.Log(), "does not await the node") })
		s.Kill()
	}
}

// bring gives all nodes the key that seals an exchange's secrets.
func (c *cluster) bring(from *exchangetest.Server) {
	c.t.Helper()
	key, err := os.ReadFile(from.Data("exchange.key"))
	for _, name := range c.names {
		if err == nil {
			err = os.WriteFile(filepath.Join(c.folder, name, "exchange.key"), key, 0o600)
		}
	}
	succeeds(c.t, err)
}

// withoutCluster returns a node's arguments without those of the cluster.
func withoutCluster(args []string) (alone []string) {
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "--node", "--nodes", "--public-url":
			i++
		default:
			alone = append(alone, args[i])
		}
	}
	return alone
}

// Under load another node replaces a follower, a fourth one is added, and one is removed. Removed
// nodes end, nothing acknowledged is missing, and the books of a joined node balance.
func TestTheNodesOfAClusterChangeUnderLoad(t *testing.T) {
	c := newCluster(t)
	led := c.leader(nil)
	w := opened(t, led, 2)
	w.load(30, func() {})
	b := c.others(led)[0]
	replaced := c.name(b)
	d, entry := c.further("d")
	w.load(30, func() {
		out := c.command(led, "cluster", "replace", c.name(b), entry)
		if !strings.Contains(out, "node d is a voter\n") {
			t.Error(out)
		}
	})
	c.removed(b)
	c.follows(d, led)
	w.compare()

	e, entry := c.further("e")
	w.load(30, func() { c.command(led, "cluster", "add", entry) })
	c.follows(e, led)
	out := c.command(led, "cluster", "status")
	for _, line := range []string{`(?m)^log bytes +\d{4,}$`, `(?m)^d +voter +- +\d+ +\d+ +\d+ `,
		`(?m)^e +voter +- +\d+ +\d+ +\d+ `} {
		if !regexp.MustCompile(line).MatchString(out) {
			t.Errorf("%s has no %s", out, line)
		}
	}
	again := "node e is a voter, and joined last: it is not replaced once more"
	if out := c.command(led, "cluster", "replace", "e", entry); !strings.Contains(out, again) {
		t.Error(out)
	}
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"remove", c.name(led)}, "hand the lead over first"},
		{[]string{"remove", "x"}, "there is no such node"},
		{[]string{"replace", "d", "d=127.0.0.1:1"}, "lives and has its log"},
	} {
		_, text, code := led.Command(append([]string{"cluster"}, x.args...)...)
		if code != 64 || !strings.Contains(text, x.want) {
			t.Errorf("%q ends with %d: %s", x.args, code, text)
		}
	}
	c.handsOver(d)
	w.turnTo(d)
	w.load(30, func() { c.command(d, "cluster", "remove", c.name(e)) })
	c.removed(e)
	w.compare()
	out = c.command(d, "actions", "--limit", "100000")
	for _, line := range []string{`had node d at \S+ begin to replace node ` + replaced,
		`added node e at \S+ to the cluster`, `made node e a voter`,
		`asked for the lead to be handed over from node ` + c.name(led) + ` to d`,
		`removed node e from the cluster`} {
		if !regexp.MustCompile(`(?m) from .* ` + line + `$`).MatchString(out) {
			t.Errorf("the log of actions has no %q:\n%s", line, out)
		}
	}
	clean(t, d)
}
