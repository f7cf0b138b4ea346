//go:build prove

package recorded

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exchange/gateway/api"
	"exchange/persistence/redistest"
	"exchange/prove/exchangetest"
)

// statusLines are the page's lines about operators' settings, for any store.
var statusLines = []string{"version  " + api.Version, "ready  yes", "cluster  -",
	"maintenance on  yes", "maintenance since  TIME", "maintenance message  At 9.",
	"frozen accounts  1", "frozen first  bob", "held accounts  0", "held first  -",
	"closed accounts  0", "pending withdraws new  1", "pending withdraws verified  0",
	"pending withdraws oldest  TIME", "switches  0", "open orders  1", "last backup ok  yes",
	"last backup result  all of it was sent", "last audit ok  yes",
	"halted:\nPAIR  SINCE\nBTC_USDT  TIME"}

func TestOperatorsSeeWhatTheySet(t *testing.T) {
	server := redistest.Start(t)
	for _, store := range []string{"pebble:" + t.TempDir(), server.URL()} {
		s := newSession(t, store)
		s.play(opening)
		s.play(`
alice POST /api/v1/order/ amount=1&pair=BTC_USDT&price=100&type=sell
alice POST /api/v1/withdraw/ address=bc1q&amount=1&currency=BTC
$pair halt BTC_USDT
$account freeze bob
$maintenance on --message 'At 9.'
$audit
`)
		s.command("backup " + filepath.Join(t.TempDir(), "backup"))
		out, errOut, code := s.s.Command("status")
		if code != 0 || errOut != "" {
			t.Fatalf("status ends with %d: %s", code, errOut)
		}
		text := masked(out)
		for _, line := range statusLines {
			if !strings.Contains("\n"+text, "\n"+line+"\n") {
				t.Errorf("%s\nlacks %s", text, line)
			}
		}
		var a map[string]any
		out, _, code = s.s.Command("status", "--json")
		if json.Unmarshal([]byte(out), &a) != nil || code != 0 || a["version"] != api.Version ||
			a["cluster"] != nil || a["ready"] != true {
			t.Errorf("%d %s", code, out)
		}
		none := filepath.Join(t.TempDir(), "none")
		if _, errOut, code := s.s.Command("backup", filepath.Join(none, "backup")); code != 64 ||
			!strings.Contains(errOut, "the folder "+none) {
			t.Errorf("a backup below nothing: %d %s", code, errOut)
		}
		if out, errOut, code := s.s.Command("secret-key", "show", "--data",
			s.s.Data("")); code != 0 || !strings.Contains(out, "seals and opens") {
			t.Errorf("secret-key show: %d %s%s", code, out, errOut)
		}
		tasksSurviveRestart(t, s.s, out)
		s.s.Terminate()
		// Without a reachable process the page names the missing information.
		if _, errOut, code := s.s.Command("status"); code != 75 || errOut == "" {
			t.Errorf("without a server it ends with %d: %s", code, errOut)
		}
	}
}

// tasksSurviveRestart checks that the last backup and audit of a page are shown by the next
// process, too, on its page and in its metrics.
func tasksSurviveRestart(t *testing.T, s *exchangetest.Server, page string) {
	t.Helper()
	type tasks struct {
		Backup, Audit struct{ Began, Ended, Result string }
	}
	read := func(page string) (a tasks) {
		t.Helper()
		var all map[string]json.RawMessage
		if json.Unmarshal([]byte(page), &all) != nil ||
			json.Unmarshal(all["last_backup"], &a.Backup) != nil ||
			json.Unmarshal(all["last_audit"], &a.Audit) != nil {
			t.Fatalf("the page is %s", page)
		}
		return a
	}
	s.Kill()
	s.Start()
	again, errOut, code := s.Command("status", "--json")
	if before, now := read(page), read(again); code != 0 || now != before ||
		now.Backup.Began == "" || now.Audit.Began == "" {
		t.Errorf("%d %s\nbefore %+v\nafter a restart %+v", code, errOut, before, now)
	}
	if info, err := os.Stat(s.Data("tasks.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	var m map[string]float64
	exchangetest.Eventually(t, "the scrape has what takes longer", func() bool {
		m = s.Metrics()
		return m[`exchange_disk_free_bytes{folder="data"}`] > 0 &&
			m[`exchange_pair_open_orders{pair="BTC_USDT"}`] == 1
	})
	backup, audit := m["exchange_backup_success_timestamp_seconds"],
		m["exchange_audit_success_timestamp_seconds"]
	if backup < audit || audit == 0 {
		t.Errorf("a backup at %v, an audit at %v", backup, audit)
	}
}

// Through any node of a cluster operators see the leader's settings.
func TestOperatorsSeeWhatTheySetThroughEachNode(t *testing.T) {
	c := exchangetest.NewCluster(t)
	for _, s := range c.Processes {
		configure(t, s)
	}
	_, s := c.Start(exchangetest.Follower)
	if out, errOut, code := s.Command("pair", "halt", "--all"); code != 0 {
		t.Fatal(out, errOut, code)
	}
	for _, node := range c.Processes[:len(c.Processes)-1] {
		var a struct {
			Cluster *struct{ Role, Node, Leader string }
			Halted  []struct{ Pair, Since string }
		}
		var out, errOut string
		var code int
		exchangetest.Eventually(t, "the node passes requests on", func() bool {
			out, errOut, code = node.Command("status", "--json")
			return code == 0
		})
		if json.Unmarshal([]byte(out), &a) != nil || a.Cluster == nil ||
			a.Cluster.Role != "leader" || a.Cluster.Node != a.Cluster.Leader ||
			len(a.Halted) != 1 || a.Halted[0].Since == "" {
			t.Error(out, errOut)
		}
		for _, args := range [][]string{{"pair", "list"}, {"fees", "list"}, {"order", "list"},
			{"account", "list", "--frozen", "--totals"}, {"maintenance", "status"}, {"actions"}} {
			if out, errOut, code := node.Command(slices.Concat(args,
				[]string{"--json"})...); code != 0 || !json.Valid([]byte(out)) {
				t.Errorf("%q: %d %s%s", args, code, out, errOut)
			}
		}
	}
}
