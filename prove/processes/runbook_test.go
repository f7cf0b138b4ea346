//go:build prove && linux

package processes

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange/prove/exchangetest"
)

// The pages' procedures are played as they are written: each block of commands, by a shell, on a
// machine of its own that has the documented unit.

// A machine is a folder that stands for the root of one. Absolute paths of a page are below it.
type machine struct {
	t    *testing.T
	root string
	s    *exchangetest.Server // its program, environment and mails
	more []string             // further variables of the environment

	stand []string // addresses of pages, each with the one that stands for it
}

// systemctl stands for systemd: it keeps the unit's process, and knows a drop-in of /run. Its start
// returns when /readyz answers 200, which is what a reader waits for. Over ssh it returns at once.
const systemctl = `#!/bin/sh
set -eu
pid=ROOT/run/exchange.pid log=ROOT/log
alive() { [ -s $pid ] && [ -n "$(readlink /proc/$(cat $pid)/exe)" ]; }
launch() {
	command=$(cat ROOT/etc/systemd/system/exchange.service \
		ROOT/run/systemd/system/exchange.service.d/*.conf 2>/dev/null |
		sed -n 's/^ExecStart=//p' | tail -n 1)
	cd ROOT/var/lib/exchange
	set -a
	[ ! -e ROOT/etc/exchange/environment ] || . ROOT/etc/exchange/environment
	setsid $command >$log 2>&1 </dev/null &
	echo $! >$pid
}
start() {
	alive || launch
	[ -z "${SSH_CONNECTION-}" ] || return 0
	until curl -fso ROOT/run/ready http://LISTEN/readyz; do
		alive || { cat $log >&2; exit 1; }
		sleep 0.05
	done
}
stop() {
	alive || return 0
	kill $(cat $pid)
	while alive; do sleep 0.05; done
}
case $1 in
start) start ;;
stop) stop ;;
restart) stop; start ;;
reload) kill -HUP $(cat $pid) ;;
enable) start ;; # --now
disable) stop ;; # --now
daemon-reload) ;;
*) echo "this systemctl knows no $1" >&2; exit 1 ;;
esac
`

// newMachine makes a machine with the unit installed, and starts nothing. more are lines of its
// configuration.
func newMachine(t *testing.T, s *exchangetest.Server, more string) *machine {
	t.Helper()
	root, err := os.MkdirTemp("", "m") // short, because of the socket's path
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, root: root, s: s}
	t.Cleanup(func() {
		if log, err := os.ReadFile(m.path("/log")); t.Failed() && err == nil {
			t.Logf("the log of %s:\n%s", root, log)
		}
		m.sh("systemctl stop exchange")
		os.RemoveAll(root) //nolint:errcheck // the system removes it
	})
	unit, err := os.ReadFile("../../docs/exchange.service")
	if err != nil {
		t.Fatal(err)
	}
	m.write("/etc/systemd/system/exchange.service", m.rooted(string(unit)), 0o600)
	m.write("/etc/exchange/exchange.yaml", exchangetest.Settings+"listen: "+s.Listen+"\n"+
		m.rooted(more), 0o600)
	asks, err := exec.LookPath("curl")
	if err != nil {
		t.Fatal(err)
	}
	here := strings.NewReplacer("ROOT", root, "LISTEN", s.Listen, "CURL", asks)
	for name, text := range map[string]string{"systemctl": systemctl, "ssh": ssh, "scp": scp,
		"curl": curl, "chown": "#!/bin/sh\n"} { // all users are one here
		m.write("/usr/bin/"+name, here.Replace(text), 0o700)
	}
	for _, folder := range []string{"/var/lib/exchange", "/root", "/run", "/safe", "/tmp",
		"/usr/local/bin"} {
		if err := os.MkdirAll(m.path(folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(s.Program(), m.path("/usr/local/bin/exchange")); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) path(name string) string { return filepath.Join(m.root, name) }

func (m *machine) write(name, text string, mode os.FileMode) {
	m.t.Helper()
	name = m.path(name)
	err := os.MkdirAll(filepath.Dir(name), 0o700)
	if err == nil {
		err = os.WriteFile(name, []byte(text), mode)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// absolute matches the paths of pages.
var absolute = regexp.MustCompile(`(^|[\s='":>])(/(?:etc|var|usr|run|safe|backups|tmp)\b)`)

// rooted returns a text with its absolute paths below the machine's root.
func (m *machine) rooted(text string) string {
	return absolute.ReplaceAllString(text, "${1}"+m.root+"${2}")
}

// sh runs commands of a page where the exchange runs, and returns what they print and the error.
func (m *machine) sh(commands string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "sh", "-eu", "-c",
		strings.NewReplacer(m.stand...).Replace(m.rooted(commands)))
	c.Dir = m.path("/var/lib/exchange")
	c.Env = slices.DeleteFunc(slices.Clone(m.s.Env), func(v string) bool {
		return strings.HasPrefix(v, "EXCHANGE_OPERATOR") // the usual socket
	})
	c.Env = append(append(c.Env, m.more...), "PATH="+m.path("/usr/bin")+":"+
		m.path("/usr/local/bin")+":"+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	return string(out), err
}

// does runs commands that must succeed.
func (m *machine) does(commands string) string {
	m.t.Helper()
	out, err := m.sh(commands)
	if err != nil {
		m.t.Fatalf("%v:\n%s\nits output:\n%s", err, commands, out)
	}
	return out
}

// refuses runs commands that must fail, and say words.
func (m *machine) refuses(commands, words string) {
	m.t.Helper()
	if out, err := m.sh(commands); err == nil || !strings.Contains(out, words) {
		m.t.Errorf("%s: %v; %q is not said:\n%s", commands, err, words, out)
	}
}

// play runs all blocks of a chapter of a page.
func (m *machine) play(page, chapter string) {
	m.t.Helper()
	list := chapters(m.t, page)[chapter]
	if len(list) == 0 {
		m.t.Fatalf("%s has no commands under %q", page, chapter)
	}
	for _, commands := range list {
		m.does(commands)
	}
}

// key makes an account, if it has none, and a key of it. call asks for the account's wallets by it.
func (m *machine) key(account string) (public string, call func() (string, error)) {
	m.t.Helper()
	m.sh("exchange account create " + account + " --email " + account + "@example.com")
	text := m.does("exchange key create " + account + " --json")
	var key struct{ Key string }
	if err := json.Unmarshal([]byte(text), &key); err != nil {
		m.t.Fatal(err, text)
	}
	file := "/var/lib/exchange/" + key.Key
	m.write(file, text, 0o600)
	return key.Key, func() (string, error) {
		return m.sh(fmt.Sprintf("exchange call %s /api/v1/wallets/ --key-file %s --address "+
			"%s", account, file, m.s.Listen))
	}
}

// works checks whether a key is taken.
func (m *machine) works(what string, call func() (string, error), want bool) {
	m.t.Helper()
	if out, err := call(); (err == nil) != want {
		m.t.Errorf("%s: works %t, want %t: %s", what, err == nil, want, out)
	}
}

var (
	heading = regexp.MustCompile(`(?m)^##+ (.*)$`)
	block   = regexp.MustCompile("(?ms)^( *)```sh\n(.*?)^ *```$")
)

// chapters returns the blocks of commands of each chapter of a page.
func chapters(t *testing.T, page string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	found := heading.FindAllSubmatchIndex(text, -1)
	for i, h := range found {
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		for _, b := range block.FindAllSubmatch(text[h[1]:end], -1) {
			name := string(text[h[2]:h[3]])
			all[name] = append(all[name], strings.ReplaceAll("\n"+string(b[2]), "\n"+string(b[1]),
				"\n"))
		}
	}
	return all
}

// alone returns a machine that runs, with an account, its key, and a backup of both.
func alone(t *testing.T, more string, env ...string) (m *machine, call func() (string, error)) {
	t.Helper()
	m = newMachine(t, exchangetest.New(t, ""), more)
	m.more = env
	m.does("systemctl start exchange; install -m 0600 data/exchange.key /safe/exchange.key")
	_, call = m.key("alice")
	m.does("exchange deposit alice BTC 2 --reference first; exchange backup /backups")
	return m, call
}

// lostKeyIsVoid plays what there is to do without a copy of the key, and looks at the result.
func (m *machine) lostKeyIsVoid(call func() (string, error)) {
	m.t.Helper()
	m.refuses("systemctl restart exchange", "--revoke-lost-keys")
	m.play("runbook.md", "There is no copy of the key")
	m.works("a key that was sealed under the lost one", call, false)
	_, anew := m.key("alice")
	m.works("a new key", anew, true)
	if out, _ := anew(); !strings.Contains(out, `"balance": 2,`) {
		m.t.Errorf("the balance is not as before: %s", out)
	}
	exchangetest.Eventually(m.t, "the owner is told", func() bool {
		return m.s.Mails.Told("alice@example.com", "API keys of account alice")
	})
	m.does("systemctl restart exchange; exchange audit")
	m.works("a new key behind an ordinary start", anew, true)
}

// played are the chapters that have commands, and what plays them.
var played = map[string]map[string]func(t *testing.T){"runbook.md": {
	"Audit differences": func(t *testing.T) {
		m, call := alone(t, "")
		m.play("runbook.md", "Audit differences")
		m.works("the key behind the maintenance", call, true)
	},
	"A lost exchange.key": func(t *testing.T) {
		m, call := alone(t, "")
		m.does("rm data/exchange.key")
		m.play("runbook.md", "A lost exchange.key")
		m.does("systemctl stop exchange; rm data/exchange.key")
		m.refuses("systemctl start exchange", "bring exchange.key back")
		m.play("runbook.md", "A lost exchange.key")
		m.works("the key", call, true)
	},
	"There is no copy of the key": func(t *testing.T) {
		m, call := alone(t, "")
		m.does("rm data/exchange.key") // the exchange still runs
		m.lostKeyIsVoid(call)
	},
	"The store and the key are gone": func(t *testing.T) {
		m, call := alone(t, "")
		m.does("systemctl stop exchange; rm -r data/*")
		m.play("runbook.md", "The store and the key are gone")
		m.lostKeyIsVoid(call)
	},
	"A stolen exchange.key": func(t *testing.T) {
		m, call := alone(t, "")
		m.play("runbook.md", "A stolen exchange.key")
		m.works("the key", call, true)
		if keys := strings.Fields(m.does("cat data/exchange.key*")); len(keys) != 1 ||
			strings.HasPrefix(m.does("cat /backups/*.backup"), keys[0]) {
			t.Errorf("%d keys are there", len(keys))
		}
	},
	"A stolen node.key or ca.key": func(t *testing.T) {
		office, nodes := threeMachines(t)
		office.play("runbook.md", "A stolen node.key or ca.key")
		nodes["a"].does("exchange deposit alice BTC 1 --reference second")
		nodes["b"].does("exchange audit")
		office.does("scp certs-before/c/node.key certs-before/c/node.crt c:/etc/exchange/cluster/")
		nodes["c"].refuses("timeout 10 systemctl restart exchange", "") // it is never ready
	},
	"A stolen token of operators": func(t *testing.T) {
		operator := exchangetest.FreeAddress(t)
		m, _ := alone(t, "", "EXCHANGE_OPERATOR="+operator)
		stolen := strings.TrimSpace(m.does("cat data/operator.token"))
		m.play("runbook.md", "A stolen token of operators")
		m.more = append(m.more, "EXCHANGE_OPERATOR_TOKEN="+stolen)
		m.refuses("exchange status", "token")
	},
	"A stolen API key": func(t *testing.T) {
		m, call := alone(t, "")
		stolen, used := m.key("alice")
		m.more = append(m.more, "KEY="+stolen, "ACCOUNT=alice")
		m.play("runbook.md", "A stolen API key")
		m.works("the stolen key", used, false)
		m.works("another key of the account", call, true)
	},
	"A stolen mailbox, or an owner who has lost theirs": func(t *testing.T) {
		m, call := alone(t, "")
		m.more = append(m.more, "ACCOUNT=alice", "ADDRESS=alice@new.example")
		m.play("runbook.md", "A stolen mailbox, or an owner who has lost theirs")
		m.works("the key", call, true)
		if text := m.does("exchange account show alice"); !strings.Contains(text,
			"alice@new.example") {
			t.Errorf("it has another address:\n%s", text)
		}
	},
}, "operations.md": {
	"Changing keys and tokens": func(t *testing.T) {
		m, call := alone(t, "")
		m.play("operations.md", "Changing keys and tokens")
		m.works("the key", call, true)
	},
	"When two disks of three are gone": func(t *testing.T) {
		_, nodes := threeMachines(t)
		nodes["a"].does("systemctl stop exchange")
		nodes["b"].does("systemctl stop exchange")
		c := nodes["c"]
		c.play("operations.md", "When two disks of three are gone")
		c.does("exchange deposit alice BTC 1 --reference second")
	},
	"One machine": func(t *testing.T) {
		m, call := alone(t, "")
		m.does("cp /usr/local/bin/exchange /tmp/exchange")
		list := chapters(t, "operations.md")["One machine"] // the upgrade, and the way back
		m.does(list[0])
		m.works("the key behind the upgrade", call, true)
		m.does("exchange deposit alice BTC 1 --reference behind")
		m.does(list[1])
		m.refuses("exchange maintenance status | grep off", "")
		m.does("exchange maintenance off; exchange audit")
		if out, _ := call(); !strings.Contains(out, `"balance": 2,`) {
			t.Errorf("the balance is not that of the backup: %s", out)
		}
	},
}}

// ssh and scp stand for what reaches the nodes' machines from the office.
const (
	ssh = `#!/bin/sh
set -eu
root=$(readlink ROOT/run/$1)
shift
cd $root/root
export SSH_CONNECTION=office PATH=$root/usr/bin:$root/usr/local/bin:$PATH
exec sh -c "$(printf '%s' "$*" | sed "s|ROOT|$root|g")"
`
	scp = `#!/bin/sh
set -eu
recursive=
[ "$1" != -r ] || { recursive=-r; shift; }
for to; do :; done
node=${to%%:*} place=${to#*:}
while [ $# -gt 1 ]; do
	cp $recursive "$1" "$(readlink ROOT/run/$node)${place#ROOT}"
	shift
done
`
	// curl asks the machine's own exchange.
	curl = `#!/bin/sh
for a; do
	shift
	set -- "$@" "$(printf '%s' "$a" | sed s/127.0.0.1:8080/LISTEN/)"
done
exec CURL "$@"
`
)

// reaches lets a machine reach another one by its name.
func (m *machine) reaches(name string, other *machine) {
	m.t.Helper()
	if err := os.Symlink(other.root, m.path("/run/"+name)); err != nil {
		m.t.Fatal(err)
	}
}

// nodes returns machines that are to be nodes of a cluster, by name, and starts none. m reaches them.
func (m *machine) nodes(names ...string) map[string]*machine {
	m.t.Helper()
	all, list := map[string]*machine{}, []string(nil)
	for i, name := range names {
		address := exchangetest.FreeAddress(m.t)
		list = append(list, name+"="+address)
		m.stand = append(m.stand, fmt.Sprintf("10.0.0.%d:7000", i+1), address)
	}
	for _, name := range names {
		n := newMachine(m.t, exchangetest.New(m.t, ""), "cluster:\n  nodes: "+
			strings.Join(list, ",")+"\n  folder: /etc/exchange/cluster\n")
		n.write("/etc/exchange/environment", "EXCHANGE_CLUSTER_NODE="+name+
			"\nEXCHANGE_CLUSTER_PUBLIC_URL=http://"+n.s.Listen+"\n", 0o600)
		n.stand = m.stand
		m.reaches(name, n)
		all[name] = n
	}
	return all
}

// threeMachines returns the office of a cluster, with the folder of `cluster init`, and the
// machines of its nodes, which run.
func threeMachines(t *testing.T) (office *machine, nodes map[string]*machine) {
	t.Helper()
	office = newMachine(t, exchangetest.New(t, ""), "")
	office.more = []string{"NODES=a b c"}
	nodes = office.nodes("a", "b", "c")
	office.does(chapters(t, "operations.md")["Three nodes"][0])
	office.does("for node in $NODES; do ssh $node systemctl start exchange; done")
	nodes["a"].does("systemctl start exchange; exchange account create alice")
	return office, nodes
}

func TestProceduresArePlayedAsTheyAreWritten(t *testing.T) {
	for page, plays := range played {
		for chapter, play := range plays {
			t.Run(chapter, play)
		}
		if page != "runbook.md" {
			continue
		}
		for chapter := range chapters(t, page) {
			if plays[chapter] == nil {
				t.Errorf("%s: nothing plays the commands of %q", page, chapter)
			}
		}
	}
}
