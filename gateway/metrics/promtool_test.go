//go:build prove

package metrics_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// alertCases contain for each alert the series at which it fires after ten minutes, or an hour if
// it waits for that long, and those at which it must not. Series have a sample each five seconds,
// as promtool writes.
var alertCases = map[string]struct{ fires, quiet []string }{
	"ExchangeDown": {[]string{`up{job="exchange"} 0x120`}, []string{`up{job="exchange"} 1x120`}},
	"ExchangeNotReady": {
		[]string{`exchange_ready 0x120`, `exchange_standby 0x120`},
		[]string{`exchange_ready 0x120`, `exchange_standby 1x120`}},
	"ExchangeStoreStalled": {[]string{`exchange_store_stalled 1x120`},
		[]string{`exchange_store_stalled 0x119 1`}},
	"ExchangeAppendsSlow": {
		[]string{`exchange_store_append_duration_seconds_bucket{le="0.1"} 0+9x120`,
			`exchange_store_append_duration_seconds_bucket{le="0.2"} 0+10x120`,
			`exchange_store_append_duration_seconds_bucket{le="+Inf"} 0+10x120`},
		[]string{`exchange_store_append_duration_seconds_bucket{le="0.1"} 0+1000x120`,
			`exchange_store_append_duration_seconds_bucket{le="0.2"} 0+1001x120`,
			`exchange_store_append_duration_seconds_bucket{le="+Inf"} 0+1001x120`}},
	"ExchangeFaults": {
		[]string{`exchange_http_requests_total{listener="public",code="500"} 0x110 1x9`},
		[]string{`exchange_http_requests_total{listener="public",code="503"} 0+9x120`,
			`exchange_http_requests_total{listener="operator",code="500"} 0+9x120`}},
	"ExchangeOutcomesUnknown": {
		[]string{`exchange_unanswered_total{kind="command"} 0x110 1x9`},
		[]string{`exchange_unanswered_total{kind="read"} 0+9x120`}},
	"ExchangeRefusesLoad": {
		[]string{`exchange_requests_turned_away_total{reason="busy"} 0+6x120`},
		[]string{`exchange_requests_turned_away_total{reason="busy"} 0+4x120`,
			`exchange_requests_turned_away_total{reason="maintenance"} 0+600x120`}},
	"ExchangeHistoryBehind": {
		[]string{`exchange_projection_lag_rows{instance="a"} 6x120`,
			`exchange_limits{limit="projection_lag",instance="a"} 10x120`},
		[]string{`exchange_projection_lag_rows{instance="a"} 5x120`,
			`exchange_limits{limit="projection_lag",instance="a"} 10x120`,
			`exchange_limits{limit="fold_lag",instance="a"} 2x120`}},
	"ExchangeHistoryDamaged": {
		[]string{`exchange_history_damaged_total{list="trades"} 0x60 1x60`},
		[]string{`exchange_history_damaged_total{list="trades"} 1x120`}},
	"ExchangeJournalNotTrimmed": {
		[]string{`exchange_store_failures_total{operation="trim"} 0x60 1x60`},
		[]string{`exchange_store_failures_total{operation="apply"} 0+1x120`}},
	"ExchangeSnapshotsFail": {[]string{`exchange_snapshot_lag_records 3000001x120`},
		[]string{`exchange_snapshot_lag_records 3000000x120`}},
	"ExchangeArchiveFails": {[]string{`exchange_archive_failures_total 0x60 1x60`},
		[]string{`exchange_archive_failures_total 1x120`}},
	"ExchangeDiskNearlyFull": {
		[]string{`exchange_disk_free_bytes{folder="data"} 9e9x120`,
			`exchange_disk_size_bytes{folder="data"} 1e11x120`},
		[]string{`exchange_disk_free_bytes{folder="data"} 1e10x120`,
			`exchange_disk_size_bytes{folder="data"} 1e11x120`,
			`exchange_disk_free_bytes{folder="archive"} 1e11x120`, // of a large disk 5 % are enough
			`exchange_disk_size_bytes{folder="archive"} 2e12x120`}},
	"ExchangeDiskFillsSoon": {
		[]string{`exchange_disk_free_bytes{folder="data"} 100000000000-10000000x740`},
		[]string{`exchange_disk_free_bytes{folder="data"} 100000000000-1000000x740`,
			`exchange_disk_free_bytes{folder="archive"} 1e9x740`}},
	"ExchangeRedisMemoryNearlyFull": {
		[]string{`exchange_store_memory_bytes 86x120`, `exchange_store_memory_limit_bytes 100x120`},
		[]string{`exchange_store_memory_bytes{instance="a"} 85x120`,
			`exchange_store_memory_limit_bytes{instance="a"} 100x120`,
			`exchange_store_memory_bytes{instance="b"} 0x120`, // another store
			`exchange_store_memory_limit_bytes{instance="b"} 0x120`,
			`exchange_store_memory_bytes{instance="c"} 9x120`, // unknown limit
			`exchange_store_memory_limit_bytes{instance="c"} 0x120`}},
	// Times are negative, because promtool's clock begins at 0. A node without a backup does not
	// count beside one that has one, also when that one is gone.
	"ExchangeBackupOld": {
		[]string{`exchange_backup_success_timestamp_seconds{job="j",instance="a"} -129601x740`,
			`exchange_backup_success_timestamp_seconds{job="j",instance="b"} -999999x740`},
		[]string{`exchange_backup_success_timestamp_seconds{job="j",instance="a"} -120000x3`,
			`exchange_backup_success_timestamp_seconds{job="j",instance="b"} -999999x740`}},
	"ExchangeAuditOld": {
		[]string{`exchange_audit_success_timestamp_seconds{job="j",instance="a"} -691201x740`,
			`exchange_audit_success_timestamp_seconds{job="j",instance="b"} -999999x740`},
		[]string{`exchange_audit_success_timestamp_seconds{job="j",instance="a"} -680000x3`,
			`exchange_audit_success_timestamp_seconds{job="j",instance="b"} -999999x740`}},
	"ExchangeWithdrawsWait": {
		[]string{`exchange_pending_withdraw_age_seconds{status="verified"} 86401x120`},
		[]string{`exchange_pending_withdraw_age_seconds{status="verified"} 86400x120`,
			`exchange_pending_withdraw_age_seconds{status="new"} 99999x120`}},
	"ExchangeHaltForgotten": {[]string{`exchange_halted_pairs 2x740`},
		[]string{`exchange_halted_pairs 2x700 0 2x40`}},
	"ExchangeMailsWait": {[]string{`exchange_outbox_mails 101x120`},
		[]string{`exchange_outbox_mails 101x30 100 101x30 100x60`}},
	"ExchangeCertificateEnds": {
		[]string{`exchange_tls_certificate_expiry_timestamp_seconds 1209000x120`},
		[]string{`exchange_tls_certificate_expiry_timestamp_seconds 1300000x120`}},
	"ExchangeCertificateStale": {[]string{`exchange_tls_certificate_stale 1x120`},
		[]string{`exchange_tls_certificate_stale 0x115 1x5`}},
	"ExchangeConfigStale": {[]string{`exchange_config_stale 1x120`},
		[]string{`exchange_config_stale 0x70 1x50`}},
	"ExchangeMaintenanceForgotten": {[]string{`exchange_maintenance 1x740`},
		[]string{`exchange_maintenance 1x700 0 1x40`}},
	"ExchangeDescriptorsShort": {
		[]string{`process_open_fds{job="exchange"} 81x120`,
			`process_max_fds{job="exchange"} 100x120`},
		[]string{`process_open_fds{job="exchange"} 80x120`,
			`process_max_fds{job="exchange"} 100x120`,
			`process_open_fds{job="another"} 100x120`, `process_max_fds{job="another"} 100x120`}},
	"ExchangeClusterHasNoLeader": {
		[]string{`exchange_cluster_leads{instance="a"} 0x120`,
			`exchange_cluster_leads{instance="b"} 0x120`},
		[]string{`exchange_cluster_leads{instance="a"} 0x120`,
			`exchange_cluster_leads{instance="b"} 1x120`}},
	"ExchangeNodeBehind": {
		[]string{`exchange_cluster_peer_lag_entries{node="b"} 100001x120`},
		[]string{`exchange_cluster_peer_lag_entries{node="b"} 100000x120`}},
	"ExchangeNodeSilent": {[]string{`exchange_cluster_peer_silent_seconds{node="b"} 61x120`},
		[]string{`exchange_cluster_peer_silent_seconds{node="b"} 60x120`}},
	"ExchangeNodeLogGrows": {[]string{`exchange_cluster_log_bytes 20000000001x120`},
		[]string{`exchange_cluster_log_bytes 20000000000x120`}},
	"ExchangeClockWrong": {[]string{`exchange_cluster_clock_offset_seconds -0.2x120`},
		[]string{`exchange_cluster_clock_offset_seconds 0.1x120`}},
	"ExchangeNodeWithoutLink": {
		[]string{`exchange_cluster_links{direction="to",instance="a"} 0x120`,
			`exchange_cluster_leads{instance="a"} 0x120`},
		[]string{`exchange_cluster_links{direction="to",instance="a"} 0x120`,
			`exchange_cluster_leads{instance="a"} 1x120`,
			`exchange_cluster_links{direction="to",instance="b"} 1x120`,
			`exchange_cluster_links{direction="from",instance="b"} 0x120`,
			`exchange_cluster_leads{instance="b"} 0x120`}},
	"ExchangeNodeFault": {[]string{`exchange_cluster_fault 1x120`},
		[]string{`exchange_cluster_fault 0x120`}},
	"ExchangeElectionsOften": {[]string{`exchange_cluster_elections_total 0x60 4x60`},
		[]string{`exchange_cluster_elections_total 0x60 2x60`}},
}

// fields are a part of a file that promtool reads.
type fields = map[string]any

// caseOf is a test of promtool: with these series, how many alerts of a rule fire?
func caseOf(rule alertRule, list []string, firing ...fields) fields {
	after := "10m"
	if rule.For == "1h" {
		after = "61m"
	}
	var series []fields
	for _, line := range list {
		name, values, _ := strings.Cut(line, " ")
		series = append(series, fields{"series": name, "values": values})
	}
	return fields{"interval": "5s", "input_series": series,
		"promql_expr_test": []fields{{
			"expr":      fmt.Sprintf(`count(ALERTS{alertname=%q,alertstate="firing"})`, rule.Alert),
			"eval_time": after, "exp_samples": append([]fields{}, firing...)}}}
}

// Prometheus itself reads the alerts, and each one fires when it must and not otherwise.
func TestEachAlertFiresWhenItMust(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("there is no promtool: scripts/test gets it; the alerts are compared with the " +
			"metrics only")
	}
	folder := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	write := func(name string, content any) string {
		t.Helper()
		text, err := yaml.Marshal(content)
		file := filepath.Join(folder, name)
		if err = errors.Join(err, os.WriteFile(file, text, 0o600)); err != nil {
			t.Fatal(err)
		}
		return file
	}
	run("check", "rules", "../../docs/alerts.yaml")
	missing := maps.Clone(alertCases)
	for _, rule := range readAlerts(t) {
		c, there := alertCases[rule.Alert]
		if delete(missing, rule.Alert); !there {
			t.Errorf("no case of %s", rule.Alert)
			continue
		}
		alone := write("rule.yaml", fields{"groups": []fields{{"name": rule.Alert,
			"rules": []fields{{"alert": rule.Alert, "expr": rule.Expr,
				"for": cmp.Or(rule.For, "0s")}}}}})
		run("test", "rules", write("cases.yaml", fields{"rule_files": []string{alone},
			"evaluation_interval": "5s",
			"tests": []fields{caseOf(rule, c.fires, fields{"labels": "{}", "value": 1}),
				caseOf(rule, c.quiet)}}))
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		t.Errorf("there is no alert %s", name)
	}
}
