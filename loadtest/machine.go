package loadtest

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// A Machine is the load of the load tester's machine while the load ran.
type Machine struct {
	Processors int     `json:"processors"`
	Load       float64 `json:"load"`          // mean of the last minute, at the end
	Busy       float64 `json:"busy_percent"`  // of its processors' time, with all programs
	Steal      float64 `json:"steal_percent"` // taken by other machines on the same host
	Own        float64 `json:"own_cores"`     // of this program, mean
}

// A usage is Linux's processor time since the machine started, in ticks.
type usage struct{ all, idle, stolen float64 }

// readUsage reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq and
// steal.
func readUsage(stat string) (u usage, ok bool) {
	line, _, _ := strings.Cut(stat, "\n")
	var t [8]float64
	if _, err := fmt.Sscanf(line, "cpu %g %g %g %g %g %g %g %g", &t[0], &t[1], &t[2], &t[3], &t[4],
		&t[5], &t[6], &t[7]); err != nil {
		return usage{}, false
	}
	for _, v := range t {
		u.all += v
	}
	u.idle, u.stolen = t[3]+t[4], t[7]
	return u, true
}

// usageNow returns the usage; false if the system does not report it.
func usageNow() (usage, bool) {
	text, _ := os.ReadFile("/proc/stat")
	return readUsage(string(text))
}

// machineSince returns the machine's load since a usage; nil if the system does not report it.
func machineSince(before usage, took, own time.Duration) *Machine {
	now, ok := usageNow()
	load, err := os.ReadFile("/proc/loadavg")
	if !ok || err != nil {
		return nil
	}
	m := now.since(before)
	fmt.Sscan(string(load), &m.Load) //nolint:errcheck // 0: not reported
	m.Own = own.Seconds() / max(took.Seconds(), 1e-6)
	return m
}

// since returns the processors' load since a usage.
func (u usage) since(before usage) *Machine {
	all := max(u.all-before.all, 1)
	stolen := u.stolen - before.stolen
	return &Machine{Processors: runtime.NumCPU(), Steal: 100 * stolen / all,
		Busy: 100 * (all - (u.idle - before.idle) - stolen) / all}
}

func (m *Machine) String() string {
	return fmt.Sprintf("machine: load %.1f on %d processors, %.0f %% busy, %.1f %% stolen by "+
		"other machines; this program used %.2f processors", m.Load, m.Processors, m.Busy,
		m.Steal, m.Own)
}
