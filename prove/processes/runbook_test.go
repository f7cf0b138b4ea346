//go:build prove && linux

package processes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/persistence/redistest"
	"exchange/prove/exchangetest"
)

// The pages' procedures are played as written: each block of commands, by a shell, on a machine of
// its own with the documented unit.

// alone returns a running machine, with an account, its key, and a backup of both.
func alone(t *testing.T, more string, env ...string) (m *machine, call func() (string, error)) {
	t.Helper()
	m = newMachine(t, exchangetest.New(t, ""), more)
	m.more = env
	m.does("systemctl start exchange; install -m 0600 data/exchange.key /safe/exchange.key")
	_, call = m.key("alice")
	m.does("exchange deposit alice BTC 2 --reference first; exchange backup /backups")
	return m, call
}

// lost ends a machine, and returns a fresh one with the copies of its key and its backups.
func (m *machine) lost(more string) (fresh *machine) {
	m.t.Helper()
	m.does("kill -9 $(cat /run/exchange.pid)")
	fresh = newMachine(m.t, exchangetest.New(m.t, ""), more)
	for _, folder := range []string{"/safe", "/backups"} {
		err := os.CopyFS(fresh.path(folder), os.DirFS(m.path(folder)))
		if err != nil {
			m.t.Fatal(err)
		}
	}
	return fresh
}

// lostKeyIsVoid plays the procedure without a copy of the key, and checks the result.
func (m *machine) lostKeyIsVoid(call func() (string, error)) {
	m.t.Helper()
	m.refuses("systemctl restart exchange", "--revoke-lost-keys")
	m.play("runbook.md", "There is no copy of the key")
	m.works("a key that was sealed under the lost one", call, false)
	_, renewed := m.key("alice")
	m.works("a new key", renewed, true)
	if out, _ := renewed(); !strings.Contains(out, `"balance": 2,`) {
		m.t.Errorf("the balance is not as before: %s", out)
	}
	exchangetest.Eventually(m.t, "the owner is notified", func() bool {
		return m.s.Mails.HasNotice("alice@example.com", "API keys of account alice")
	})
	m.does("systemctl restart exchange; exchange audit")
	m.works("a new key after an ordinary start", renewed, true)
}

// played are the chapters with commands, and the functions that play them.
var played = map[string]map[string]func(t *testing.T){"runbook.md": {
	"Audit differences": func(t *testing.T) {
		m, call := alone(t, "")
		m.play("runbook.md", "Audit differences")
		m.works("the key after the maintenance", call, true)
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
		list := chapters(t, "runbook.md")["A stolen exchange.key"] // alone, and of a cluster
		m.does(list[0])
		m.works("the key", call, true)
		if keys := strings.Fields(m.does("cat data/exchange.key*")); len(keys) != 1 ||
			strings.HasPrefix(m.does("cat /backups/*.backup"), keys[0]) {
			t.Errorf("%d keys are there", len(keys))
		}
		office, nodes := threeMachines(t)
		before := office.does("cat certs/exchange.key")
		_, call = nodes["a"].key("alice")
		office.does(list[1])
		nodes["a"].works("the key in the cluster", call, true)
		for _, file := range []string{"certs/exchange.key", "certs/b/exchange.key"} {
			if now := office.does("cat " + file); len(strings.Fields(now)) != 1 || now == before {
				t.Errorf("%s has not the new key alone", file)
			}
		}
		nodes["b"].does("exchange cluster status | grep 'fault *-'")
		nodes["b"].write("/etc/exchange/cluster/exchange.key", before, 0o600)
		nodes["b"].does("SSH_CONNECTION=none systemctl restart exchange\n" +
			"until exchange cluster status | grep 'fault .*sealed with another secret key'; do " +
			"sleep 0.2; done")
	},
	"A journal that only an audit finds damaged": func(t *testing.T) {
		m, call := alone(t, "")
		m.does("exchange deposit alice BTC 1 --reference second")
		m.play("runbook.md", "A journal that only an audit finds damaged")
		if out, _ := call(); !strings.Contains(out, `"balance": 3,`) {
			t.Errorf("the deposit after the first backup is lost: %s", out)
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
		list := chapters(t, "runbook.md")["A stolen token of operators"] // alone, and of a cluster
		m.does(list[0])
		m.more = append(m.more, "EXCHANGE_OPERATOR_TOKEN="+stolen)
		m.refuses("exchange status", "token")
		office, nodes := threeMachines(t)
		stolen = office.does("cat certs/operator.token")
		office.does(list[1])
		office.does("exchange cluster certify certs d")
		for name, m := range map[string]*machine{"certs/d": office,
			"/etc/exchange/cluster": nodes["c"]} {
			if m.does("cat "+name+"/operator.token") == stolen {
				t.Errorf("the stolen token is in %s", name)
			}
		}
		for name, m := range nodes { // followers relay with their token, once they have read it
			m.does("until exchange account create " + name + "; do sleep 0.2; done")
		}
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
}, "operations/run.md": {
	"Change the configuration": aloneWith("Change the configuration",
		"ln -s /etc/exchange/exchange.yaml ."),
	"Maintenance, and the state at a glance": aloneWith(
		"Maintenance, and the state at a glance", ""),
	"Deposits of a file": aloneWith("Deposits of a file",
		`printf 'account,currency,amount,reference\nalice,BTC,1,wire-1\n' >deposits.csv`),
	"Corrections":            aloneWith("Corrections", ""),
	"Statements and exports": aloneWith("Statements and exports", ""),
	"E-mail addresses, and accounts that end": aloneWith(
		"E-mail addresses, and accounts that end",
		"exchange adjust alice BTC -2 --reason test --reference all"),
}, "operations/cluster.md": {
	"Three nodes": func(t *testing.T) {
		_, nodes := threeMachines(t)
		list := chapters(t, "operations/cluster.md")["Three nodes"] // the first has made them
		nodes["a"].does("ln -s /etc/exchange/exchange.yaml .\n" + list[len(list)-1])
	},
	"When two disks of three are gone": func(t *testing.T) {
		_, nodes := threeMachines(t)
		nodes["a"].does("systemctl stop exchange")
		nodes["b"].does("systemctl stop exchange")
		c := nodes["c"]
		c.play("operations/cluster.md", "When two disks of three are gone")
		c.does("exchange deposit alice BTC 1 --reference second")
	},
	"A standby": func(t *testing.T) {
		store := "store: " + redistest.Start(t).URL() + "\n"
		m, call := alone(t, store)
		standby := newMachine(t, exchangetest.New(t, ""), store)
		m.reaches("standby", standby)
		list := chapters(t, "operations/cluster.md")["A standby"] // to take over, and to stand by
		m.does(list[1])
		exchangetest.Eventually(t, "the standby looks", func() bool {
			log, err := os.ReadFile(standby.path("/log"))
			return err == nil && strings.Contains(string(log), "standby")
		})
		m.does("kill -9 $(cat /run/exchange.pid)")
		exchangetest.Eventually(t, "it has taken over", func() bool {
			return standby.s.Ready() == nil
		})
		own := m.s
		m.s = standby.s
		m.works("the key at the standby", call, true)
		m.s = own
		m.does("SSH_CONNECTION=none systemctl start exchange") // it waits in its turn
		m.does(list[0])
		m.works("the key where it was", call, true)
	},
	"From one machine to three": func(t *testing.T) {
		m, call := alone(t, "")
		nodes := m.nodes("a", "b", "c")
		list := chapters(t, "operations/cluster.md")["From one machine to three"]
		m.does(list[0])
		nodes["a"].does(list[1])
		nodes["a"].does(list[2])
		m.s = nodes["b"].s
		m.works("the key at another node", call, true)
	},
	"Add, replace and remove nodes": func(t *testing.T) {
		office, nodes := threeMachines(t)
		d := office.nodes("d")["d"]
		list := chapters(t, "operations/cluster.md")["Add, replace and remove nodes"]
		nodes["a"].does(list[0])
		office.does(list[1])
		nodes["a"].does(list[2])
		d.does("systemctl start exchange; exchange audit")
		nodes["b"].refuses("systemctl start exchange", "was removed from its cluster")
		nodes["a"].does(list[3])
	},
}, "operations/backup.md": {
	"Archive and audit": func(t *testing.T) {
		m, _ := alone(t, "archive: /safe/archive\n", "DIR="+t.TempDir())
		list := chapters(t, "operations/backup.md")["Archive and audit"]
		m.does("systemctl restart exchange") // something is archived
		m.does(list[0])
		m.does(strings.ReplaceAll(list[1], "DIR", "/safe/archive"))
	},
	"Backup and restore": func(t *testing.T) {
		m, call := alone(t, "")
		list := chapters(t, "operations/backup.md")["Backup and restore"]
		m.does(list[0])
		fresh := m.lost("")
		fresh.does(list[1])
		m.s = fresh.s
		m.works("the key", call, true)
	},
	"Continue at a fresh host without HEAD": func(t *testing.T) {
		store := "store: " + redistest.Start(t).URL() + "\n"
		m, call := alone(t, store)
		fresh := m.lost(store)
		fresh.play("operations/backup.md", "Continue at a fresh host without HEAD")
		m.s = fresh.s
		m.works("the key", call, true)
	},
}, "operations/upgrade.md": {
	"A cluster": func(t *testing.T) {
		office, nodes := threeMachines(t)
		office.does("cp /usr/local/bin/exchange /tmp/exchange")
		list := chapters(t, "operations/upgrade.md")["A cluster"] // the upgrade, and the way back
		office.does(list[0])
		office.does(list[1])
		nodes["b"].does("exchange deposit alice BTC 1 --reference behind")
		office.does(list[2])
		list = chapters(t, "operations/cluster.md")["From one machine to three"]
		nodes["a"].does(list[1])
		nodes["a"].does(list[2])
		nodes["c"].does("systemctl start exchange")
		nodes["c"].refuses("exchange account show alice | grep BTC", "")
	},
	"One machine": func(t *testing.T) {
		m, call := alone(t, "")
		m.does("cp /usr/local/bin/exchange /tmp/exchange")
		list := chapters(t, "operations/upgrade.md")["One machine"] // the upgrade, and the way back
		m.does(list[0])
		m.works("the key after the upgrade", call, true)
		m.does("exchange deposit alice BTC 1 --reference behind")
		m.does(list[1])
		m.refuses("exchange maintenance status | grep off", "")
		m.does("exchange maintenance off; exchange audit")
		if out, _ := call(); !strings.Contains(out, `"balance": 2,`) {
			t.Errorf("the balance is not that of the backup: %s", out)
		}
	},
}, "operations/keys-and-tls.md": {
	"Changing keys and tokens": func(t *testing.T) {
		m, call := alone(t, "")
		m.play("operations/keys-and-tls.md", "Changing keys and tokens")
		m.works("the key", call, true)
	},
}, "first-customer.md": {
	"From a start to a withdrawal": func(t *testing.T) {
		m := newMachine(t, exchangetest.New(t, ""), "")
		m.more = []string{"EXCHANGE_LISTEN=" + m.s.Listen}
		list := chapters(t, "first-customer.md")["From a start to a withdrawal"]
		for _, commands := range list[:4] {
			m.does(commands)
		}
		exchangetest.Eventually(t, "the code is mailed", func() bool {
			return m.s.Mails.Code(1) != ""
		})
		m.more = append(m.more, "CODE="+m.s.Mails.Code(1))
		m.does(list[4])
		out := m.does("exchange call carol /api/v1/wallets/ --key-file carol.key")
		if !strings.Contains(out, `"balance": 1,`) || !strings.Contains(out, `"reserve": 0.2`) {
			t.Errorf("carol has %s", out)
		}
	},
}}

// aloneWith plays a chapter of operations/run.md on a machine that was prepared by commands.
func aloneWith(chapter, before string) func(t *testing.T) {
	return func(t *testing.T) {
		m, _ := alone(t, "")
		m.does(before)
		m.play("operations/run.md", chapter)
	}
}

// unplayed are the chapters whose commands nothing plays here, each with its reason.
var unplayed = map[string]map[string]string{"operations/run.md": {
	"An exchange of your own": "readme_test.go of prove/clients opens it as it says",
	"Start and stop": "the installation needs root and the system's users; machines are made by " +
		"newMachine as it says",
	"Calls of the API": "the demo and a usual address; command_call_test.go of cmd/exchange " +
		"has each call",
}, "operations/cluster.md": {
	"Observers": "a certificate is copied by hand; observer_test.go starts observers so",
}, "operations/keys-and-tls.md": {
	"TLS": "names and certificates of a real host; the flags are tried by tls_test.go of " +
		"cmd/exchange",
}, "operations/watch.md": {
	"What the disk must do": "a program of others measures a disk",
	"Profiles":              "half a minute of profiles, and a browser: a person looks at them",
}}

// Each chapter with commands is in one of the two lists.
func TestEachProcedureIsPlayedOrSaysWhyNot(t *testing.T) {
	files, err := filepath.Glob("../../docs/operations/*.md")
	if err != nil || len(files) < 7 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range append(files, "../../docs/runbook.md", "../../docs/first-customer.md") {
		page := strings.TrimPrefix(filepath.ToSlash(file), "../../docs/")
		list := chapters(t, page)
		for chapter := range list {
			if why := unplayed[page][chapter]; (played[page][chapter] == nil) == (why == "") {
				t.Errorf("%s: %q is played: %t, and its reason not to be is %q", page, chapter,
					played[page][chapter] != nil, why)
			}
		}
		for chapter := range unplayed[page] {
			if list[chapter] == nil {
				t.Errorf("%s has no commands under %q", page, chapter)
			}
		}
	}
}

// threeMachines returns the office of a cluster, with the folder of `cluster init`, and the running
// machines of its nodes.
func threeMachines(t *testing.T) (office *machine, nodes map[string]*machine) {
	t.Helper()
	office = newMachine(t, exchangetest.New(t, ""), "")
	office.more = []string{"NODES=a b c"}
	nodes = office.nodes("a", "b", "c")
	office.does(chapters(t, "operations/cluster.md")["Three nodes"][0])
	office.does("for node in $NODES; do ssh $node systemctl start exchange; done")
	nodes["a"].does("systemctl start exchange; exchange account create alice")
	return office, nodes
}

func TestProceduresArePlayedAsTheyAreWritten(t *testing.T) {
	for _, plays := range played {
		for chapter, play := range plays {
			t.Run(chapter, play)
		}
	}
}
