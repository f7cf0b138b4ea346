package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// The operator's command that shows the state of the exchange on one page.

type (
	statusAnswer struct {
		Version  string            `json:"version"`
		Commit   string            `json:"commit"`
		Go       string            `json:"go"`
		Started  string            `json:"started"`
		Uptime   int64             `json:"uptime_seconds"`
		Ready    *bool             `json:"ready"`
		Store    statusStore       `json:"store"`
		Cluster  *statusSeat       `json:"cluster"` // null: the exchange runs on one machine
		Sequence json.Number       `json:"sequence"`
		Time     string            `json:"time"`
		Lag      statusLag         `json:"projection_lag"`
		Snapshot statusSnapshot    `json:"snapshot"`
		Closed   closedAnswer      `json:"maintenance"`
		Halted   []statusHalt      `json:"halted"`
		Frozen   statusSome        `json:"frozen"`
		Held     *statusSome       `json:"held,omitempty"` // null: the server is older
		Ended    json.Number       `json:"closed_accounts,omitempty"`
		Pending  statusWithdrawals `json:"pending_withdraws"`
		Switches json.Number       `json:"switches"`
		Open     json.Number       `json:"open_orders"`
		Mails    json.Number       `json:"mails_waiting"`
		Backup   *statusTask       `json:"last_backup"` // null: there is none
		Audit    *statusTask       `json:"last_audit"`  // null: there is none
	}
	statusStore struct {
		Name  string `json:"name"`
		Bytes *int64 `json:"bytes"` // null: it does not tell
	}
	statusSeat struct {
		Node     string      `json:"node"`
		Role     string      `json:"role"`
		Leader   string      `json:"leader"`
		Term     json.Number `json:"term"`
		LogBytes int64       `json:"log_bytes"`
	}
	statusLag struct {
		Records json.Number `json:"records"`
		Rows    json.Number `json:"rows"`
	}
	statusSnapshot struct {
		Lag   json.Number `json:"lag_records"`
		Age   int64       `json:"age_seconds"`
		Bytes int64       `json:"bytes"`
	}
	closedAnswer struct {
		On      *bool  `json:"on"`
		Since   string `json:"since"` // "": that is not known any more
		Message string `json:"message"`
		Cancels bool   `json:"cancels,omitempty"` // clients may cancel
	}
	statusHalt struct {
		Pair  string `json:"pair"`
		Since string `json:"since"` // "": that is not known any more
	}
	statusSome struct {
		Accounts int      `json:"accounts"`
		First    []string `json:"first"`
	}
	statusWithdrawals struct {
		New      json.Number `json:"new"`
		Verified json.Number `json:"verified"`
		Oldest   string      `json:"oldest"` // "": there is none
	}
	statusTask struct {
		Began  string `json:"began"`
		Ended  string `json:"ended"`
		OK     bool   `json:"ok"`
		Result string `json:"result"`
	}
)

func (a *statusAnswer) complete() bool {
	return a.Version != "" && a.Ready != nil && a.Store.Name != "" && a.Sequence != "" &&
		a.Lag.Records != "" && a.Lag.Rows != "" && a.Snapshot.Lag != "" && a.Closed.complete() &&
		a.Halted != nil && a.Frozen.First != nil && a.Pending.New != "" &&
		a.Pending.Verified != "" && a.Switches != "" && a.Open != "" && a.Mails != ""
}
func (a *closedAnswer) complete() bool { return a.On != nil }

func (p *program) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the state of the running exchange on one page",
		Long: "Shows version, store, lags, and all that is out of the ordinary or waits for an " +
			"operator. Backups and audits are those of this node, also before a restart. In a " +
			"cluster the node that leads answers; `exchange cluster status` shows each node.",
		Args: takes(),
		RunE: run(func(ctx context.Context, _ []string) error {
			var a statusAnswer
			if err := p.ask(ctx, "/operator/v1/status", &a); err != nil {
				return err
			}
			return p.print(&a, a.write)
		}),
	}
}

func (a *statusAnswer) write(w *tabwriter.Writer) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	version := plain(a.Version)
	if a.Commit != "" {
		version += " (" + plain(a.Commit) + ")"
	}
	row("version", "%s", version)
	row("up", "%s, since %s", time.Duration(a.Uptime)*time.Second, plain(a.Started))
	row("takes commands", "%s", either(*a.Ready, "yes", "no"))
	size := "size unknown"
	if a.Store.Bytes != nil {
		size = megabytes(*a.Store.Bytes)
	}
	row("store", "%s, %s", plain(a.Store.Name), size)
	if c := a.Cluster; c != nil {
		row("cluster", "node %s, %s; node %s leads, term %s; log %s", plain(c.Node), plain(c.Role),
			orDash(c.Leader), c.Term, megabytes(c.LogBytes))
	}
	row("sequence", "%s%s", a.Sequence, at(", at ", a.Time))
	row("history", "lacks %s records, %s rows", a.Lag.Records, a.Lag.Rows)
	row("snapshot", "%s, %s old, lacks %s records", megabytes(a.Snapshot.Bytes),
		time.Duration(a.Snapshot.Age)*time.Second, a.Snapshot.Lag)
	row("maintenance", "%s", a.Closed.text())
	row("halted pairs", "%s", a.halts())
	row("frozen accounts", "%s", a.Frozen.text())
	if a.Held != nil {
		row("held withdraws", "%s", a.Held.text())
	}
	if a.Ended != "" {
		row("closed accounts", "%s", a.Ended)
	}
	row("pending withdraws", "%s verified, to be approved; %s new, to be confirmed%s",
		a.Pending.Verified, a.Pending.New, at("; the oldest is of ", a.Pending.Oldest))
	row("armed switches", "%s", a.Switches)
	row("open orders", "%s", a.Open)
	row("waiting mails", "%s", a.Mails)
	row("last backup", "%s", a.Backup.text())
	row("last audit", "%s", a.Audit.text())
}

// at returns a text with a time, nothing if there is no time.
func at(text, time string) string {
	if time == "" {
		return ""
	}
	return text + plain(time)
}

// since says since when something lasts.
func since(time string) string {
	return "since " + cmp.Or(plain(time), "longer than the newest actions tell")
}

func (a *closedAnswer) text() string {
	if !*a.On {
		return "off"
	}
	text := either(a.Cancels, "on with cancels ", "on ") + since(a.Since)
	if a.Message != "" {
		text += "; clients are told: " + plain(a.Message)
	}
	return text
}

// shownHalts bounds the halted pairs that the page names.
const shownHalts = 20

func (a *statusAnswer) halts() string {
	var names []string
	for _, h := range a.Halted[:min(len(a.Halted), shownHalts)] {
		names = append(names, plain(h.Pair)+" "+since(h.Since))
	}
	return listed(len(a.Halted), names)
}

func (f *statusSome) text() string {
	var names []string
	for _, name := range f.First {
		names = append(names, plain(name))
	}
	return listed(f.Accounts, names)
}

// listed names the first of n.
func listed(n int, first []string) string {
	if n == 0 {
		return "none"
	}
	text := fmt.Sprintf("%d: %s", n, strings.Join(first, ", "))
	if n > len(first) {
		text += ", ..."
	}
	return text
}

func (t *statusTask) text() string {
	if t == nil {
		return "none that this node knows of"
	}
	return plain(t.Ended) + ": " + plain(t.Result)
}
