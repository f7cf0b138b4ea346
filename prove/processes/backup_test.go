//go:build prove

package processes

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shopspring/decimal"

	"exchange/persistence/redistest"
	"exchange/prove/exchangetest"
)

// An exchange on Pebble that archives its journal is backed up under load, killed, audited from its
// first record, and backed up again. Restored into Redis, it resumes with everything acknowledged.
func TestABackupIsServedFromTheOtherStore(t *testing.T) {
	archive, backups := filepath.Join(t.TempDir(), "archive"), filepath.Join(t.TempDir(), "backups")
	s := exchangetest.New(t, "pebble:"+t.TempDir(), "--archive", archive)
	s.Env = append(s.Env, manySnapshots...)
	s.Start()
	w := opened(t, s, 4)
	w.load(500, func() {
		w.run(0, "", "backup", backups)
		// The number of snapshots depends on the batches; the load runs until there are enough.
		exchangetest.Eventually(t, "parts of the journal are archived", func() bool {
			parts, err := filepath.Glob(filepath.Join(archive, "journal-*.zst"))
			return err == nil && len(parts) > 1
		})
	})
	w.compare()
	w.books(archive)
	w.load(300, func() { s.Kill(); s.Start() })
	w.compare()
	w.books(archive)
	// now it contains everything acknowledged
	out := w.run(0, "", "backup", backups, "--json")
	var newest struct {
		File     string
		Sequence uint64
	}
	if err := json.Unmarshal([]byte(out), &newest); err != nil || newest.Sequence == 0 {
		t.Fatalf("%s: %v", out, err)
	}
	w.moveTo(backups, newest.File, newest.Sequence, archive)
}

var manySnapshots = []string{"EXCHANGE_SNAPSHOT_MIN_RECORDS=50",
	"EXCHANGE_SNAPSHOT_MAX_RECORDS=100", "EXCHANGE_TIMING_SNAPSHOT_MIN_MS=0"}

// run runs an operator's command, expects an exit code and a word in the error, and returns the
// output.
func (w *world) run(code int, word string, args ...string) string {
	w.t.Helper()
	out, errOut, got := w.s.Command(args...)
	if got != code || !strings.Contains(errOut, word) || word == "" && errOut != "" {
		w.t.Fatalf("%v ends with %d, want %d and %q; it says\n%s%s", args, got, code, word, out,
			errOut)
	}
	return out
}

// books runs the commands about the exchange's books.
func (w *world) books(archive string) {
	w.t.Helper()
	for _, args := range [][]string{{"audit"}, {"audit", "--archive", archive}} {
		out := w.run(0, "", args...)
		if !strings.Contains(out, "The books balance") {
			w.t.Fatalf("%v says\n%s", args, out)
		}
	}
	w.run(64, "the server archives to "+archive, "audit", "--archive", archive+"/other")
	trades := map[string]bool{}
	for _, t := range w.traders {
		var wallet []walletRow
		rows, err := pages(t, "/api/v1/exchanges/own/",
			500, func(r tradeRow) uint64 { return r.ID })
		if err == nil {
			err = t.get("/api/v1/wallets/", &wallet)
		}
		succeeds(w.t, err)
		for _, r := range rows {
			trades[fmt.Sprintf("%d %v %v", r.ID, r.Price, r.Amount)] = true
		}
		w.statementOf(t, wallet)
	}
	// Complete as text, and in a file.
	file := filepath.Join(w.t.TempDir(), "trades.csv")
	w.run(0, "", "export", "trades", "--pair", "BTC_USDT", "--output", file)
	b, err := os.ReadFile(file)
	if err != nil || string(b) != w.run(0, "", "export", "trades", "--pair", "BTC_USDT") {
		w.t.Fatalf("the file is not what is printed: %v", err)
	}
	exported, err := csv.NewReader(strings.NewReader(string(b))).ReadAll()
	if err != nil || len(exported) != 1+len(trades) || len(trades) == 0 {
		w.t.Fatalf("%d lines are exported of %d trades, %v", len(exported), len(trades), err)
	}
	for _, row := range exported[1:] {
		if text := fmt.Sprintf("%s %v %v", row[0], decimal.RequireFromString(row[4]),
			decimal.RequireFromString(row[5])); !trades[text] {
			w.t.Fatalf("trade %s is exported, and nobody has it", text)
		}
	}
}

// statementOf expects a statement to begin with the account's balances, and each change to lead
// from one to the next.
func (w *world) statementOf(t *trader, wallet []walletRow) {
	w.t.Helper()
	next := map[string]decimal.Decimal{}
	for _, h := range wallet {
		next[h.Currency] = h.Balance
	}
	for line := range strings.Lines(w.run(0, "", "statement", t.name, "--json")) {
		var l struct {
			Currency        string
			Change, Balance decimal.Decimal
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			w.t.Fatalf("%s: %v", line, err)
		}
		if !l.Balance.Equal(next[l.Currency]) {
			w.t.Fatalf("%s: there were %v after it", line, next[l.Currency])
		}
		next[l.Currency] = l.Balance.Sub(l.Change)
	}
	for currency, balance := range next {
		if !balance.IsZero() {
			w.t.Fatalf("the statement of %s begins with %v %s", t.name, balance, currency)
		}
	}
}

// changed returns a copy of a file with its last byte changed: a part of its authentication.
func changed(t *testing.T, file, to string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		b[len(b)-1] ^= 1
		err = os.WriteFile(to, b, 0o600)
	}
	succeeds(t, err)
	return to
}

// tampersWith changes an archive's newest part, expects detection, and restores it.
func (w *world) tampersWith(archive string) {
	w.t.Helper()
	parts, err := filepath.Glob(filepath.Join(archive, "journal-*.zst"))
	if err != nil || len(parts) == 0 {
		w.t.Fatalf("there are %v, %v", parts, err)
	}
	newest := parts[len(parts)-1]
	away := filepath.Join(w.t.TempDir(), "part")
	succeeds(w.t, os.Rename(newest, away))
	changed(w.t, away, newest)
	w.run(70, "authentication is wrong", "audit", "--archive", archive)
	out, errOut, code := w.s.Command("audit", "--archive", archive, "--without-authentication")
	if code != 0 || !strings.Contains(errOut, "WITHOUT AUTHENTICATION") ||
		!strings.Contains(out, "The books balance") {
		w.t.Fatalf("without authentication: %d %s %s", code, out, errOut)
	}
	succeeds(w.t, os.Rename(away, newest))
}

// moveTo restores the newest backup of a folder into Redis and continues there, with an archive
// that begins with the backup's state.
func (w *world) moveTo(backups, newest string, sequence uint64, archive string) {
	w.t.Helper()
	old := w.s
	s := exchangetest.New(w.t, redistest.Start(w.t).URL())
	restore := append([]string{"restore", backups}, s.Args[1:]...)
	w.run(64, "there is no secret key in "+s.Data("exchange.key"), restore...)
	(&target{Server: s}).bring(w.t, old)
	forged := changed(w.t, newest, filepath.Join(w.t.TempDir(), "forged.backup"))
	w.run(70, "authentication is wrong", append([]string{"restore", forged}, s.Args[1:]...)...)
	out := w.run(0, "", restore...)
	for _, word := range []string{newest + ", the newest of 2",
		fmt.Sprintf("sequence       %d\n", sequence), "authenticated  yes", "exchange serve"} {
		if !strings.Contains(out, word) {
			w.t.Errorf("%q is not said:\n%s", word, out)
		}
	}
	args := s.Args
	s.Args = append(args[:len(args):len(args)], "--archive", archive)
	s.Refuses(64, "the journal does not have its last batch", "Name an empty folder")
	later := w.t.TempDir()
	s.Args = append(args[:len(args):len(args)], "--archive", later)
	s.Env = append(s.Env, manySnapshots...)
	old.Kill()
	s.Start()
	w.turnTo(s)
	w.compare()
	w.run(75, "is held by pid", restore...) // which leaves the running exchange alone
	w.run(75, "the archive is still empty", "audit", "--archive", later)
	w.load(200, func() {
		exchangetest.Eventually(w.t, "an archive is begun", func() bool {
			parts, err := filepath.Glob(filepath.Join(later, "journal-*.zst"))
			return err == nil && len(parts) > 1
		})
	})
	w.compare()
	out = w.run(0, "", "audit", "--archive", later)
	if !strings.Contains(out, fmt.Sprintf("replayed from                  %d\n", sequence)) {
		w.t.Fatalf("an audit from the new archive says\n%s", out)
	}
	w.tampersWith(later)
	s.Kill()
	s.Start()
	w.compare()
}
