//go:build prove && linux

package processes

import (
	"context"
	"encoding/json"
	"errors"
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

// A machine is a folder that stands for a machine's root. Absolute paths of a page are below it.
type machine struct {
	t    *testing.T
	root string
	s    *exchangetest.Server // its program, environment and mails
	more []string             // further variables of the environment

	lan *lan // shared with the machines that it reaches
}

// A lan connects machines that reach each other.
type lan struct {
	nodes []string // names and addresses of a cluster's
	stand []string // addresses of pages, each with the one that stands for it
}

// systemctl stands for systemd: it keeps the unit's process, and supports a drop-in of /run. Its
// start returns when /readyz answers 200, as a reader would wait. Over ssh it returns at once.
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
	. ROOT/etc/exchange/environment
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
*) echo "this systemctl has no $1" >&2; exit 1 ;;
esac
`

// newMachine creates a machine with the unit installed, and starts nothing. more are lines of its
// configuration.
func newMachine(t *testing.T, s *exchangetest.Server, more string) *machine {
	t.Helper()
	root, err := os.MkdirTemp("", "m") // short, because of the socket's path
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, root: root, s: s, lan: &lan{}}
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
	m.write("/etc/exchange/environment", "", 0o600)
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
	for _, folder := range []string{"/var/lib/exchange", "/root", "/run/hosts", "/safe", "/tmp",
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

// sh runs commands of a page on the machine, and returns their output and error.
func (m *machine) sh(commands string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "sh", "-eu", "-c",
		strings.NewReplacer(m.lan.stand...).Replace(m.rooted(commands)))
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

// refuses runs commands that must fail with words.
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

// key creates an account, if missing, and a key of it. call reads the account's wallets with it.
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

// works checks whether a key is accepted.
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

// ssh and scp stand for the connections from the office to the nodes' machines.
const (
	ssh = `#!/bin/sh
set -eu
root=$(readlink ROOT/run/hosts/$1)
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
	cp $recursive "$1" "$(readlink ROOT/run/hosts/$node)${place#ROOT}"
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

// reaches lets a machine, and those that it reaches, reach another one by its name.
func (m *machine) reaches(name string, other *machine) {
	m.t.Helper()
	err1 := os.Symlink(other.root, m.path("/run/hosts/"+name))
	err2 := os.Remove(other.path("/run/hosts"))
	err3 := os.Symlink(m.path("/run/hosts"), other.path("/run/hosts"))
	if err := errors.Join(err1, err2, err3); err != nil {
		m.t.Fatal(err)
	}
	other.lan = m.lan
}

// nodes returns machines for nodes of a cluster, by name, and starts none. They name each other,
// and earlier ones. m reaches them.
func (m *machine) nodes(names ...string) map[string]*machine {
	m.t.Helper()
	for _, name := range names {
		address := exchangetest.FreeAddress(m.t)
		m.lan.nodes = append(m.lan.nodes, name+"="+address)
		m.lan.stand = append(m.lan.stand, fmt.Sprintf("10.0.0.%d:7000", len(m.lan.nodes)), address)
	}
	all := map[string]*machine{}
	for _, name := range names {
		n := newMachine(m.t, exchangetest.New(m.t, ""), "cluster:\n  nodes: "+
			strings.Join(m.lan.nodes, ",")+"\n  folder: /etc/exchange/cluster\n")
		n.write("/etc/exchange/environment", "EXCHANGE_CLUSTER_NODE="+name+
			"\nEXCHANGE_CLUSTER_PUBLIC_URL=http://"+n.s.Listen+"\n", 0o600)
		m.reaches(name, n)
		all[name] = n
	}
	return all
}
