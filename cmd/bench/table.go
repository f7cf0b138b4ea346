package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A row is a line of the table.
type row struct {
	subject   string
	unit      string
	group     int // rows of a lower group come first
	yardstick *row
	aim       aim
	wanted    bool

	values []float64 // one for each round; none when it could not be measured
	allocs []float64 // the same; none when they are not counted
}

// bytesHeld is the unit of bytes that stay in memory.
const bytesHeld = "bytes"

// An aim bounds the medians of a row; a zero bounds nothing.
type aim struct {
	least, most float64
	leastRatio  float64 // of the value to the yardstick's
	mostRatio   float64
	noAllocs    bool
}

// A spread is the median of a few values, and how far they reach.
type spread struct {
	Median  float64 `json:"median"`
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`
}

// spreadOf returns nil when there are no values.
func spreadOf(v []float64) *spread {
	if len(v) == 0 {
		return nil
	}
	return &spread{median(v), slices.Min(v), slices.Max(v)}
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// ratios returns each round's value over the yardstick's of the same round, because a slow round
// slows both.
func (r *row) ratios() (v []float64) {
	if r.yardstick == nil || len(r.yardstick.values) != len(r.values) {
		return nil
	}
	for i, value := range r.values {
		v = append(v, value/r.yardstick.values[i])
	}
	return v
}

func (a aim) String() string {
	var list []string
	if a.least != 0 {
		list = append(list, ">= "+show(a.least))
	}
	if a.most != 0 {
		list = append(list, "<= "+show(a.most))
	}
	if a.leastRatio != 0 {
		list = append(list, fmt.Sprintf(">= %.2f x", a.leastRatio))
	}
	if a.mostRatio != 0 {
		list = append(list, fmt.Sprintf("<= %.2f x", a.mostRatio))
	}
	if a.noAllocs {
		list = append(list, "0 allocs")
	}
	return strings.Join(list, ", ")
}

// verdict reports whether the aim is met, and otherwise by how much it is missed. It is "" without
// an aim.
func (r *row) verdict() string {
	if r.aim == (aim{}) {
		return ""
	}
	value, ratio, allocs := spreadOf(r.values), spreadOf(r.ratios()), spreadOf(r.allocs)
	if value == nil || (r.aim.leastRatio != 0 || r.aim.mostRatio != 0) && ratio == nil ||
		r.aim.noAllocs && allocs == nil {
		return "not measured"
	}
	var short []string
	if r.aim.least != 0 && value.Median < r.aim.least ||
		r.aim.most != 0 && value.Median > r.aim.most {
		short = append(short, show(value.Median))
	}
	if r.aim.leastRatio != 0 && ratio.Median < r.aim.leastRatio ||
		r.aim.mostRatio != 0 && ratio.Median > r.aim.mostRatio {
		short = append(short, fmt.Sprintf("%.2f x", ratio.Median))
	}
	if r.aim.noAllocs && allocs.Median > 0 {
		short = append(short, show(allocs.Median)+" allocs")
	}
	if short == nil {
		return "met"
	}
	return "short: " + strings.Join(short, ", ")
}

// columns of the table; numbers are right-aligned.
var columns = []struct {
	title string
	right bool
	cell  func(*row) string
}{
	{"subject", false, func(r *row) string { return r.subject }},
	{"value", true, func(r *row) string {
		if s := spreadOf(r.values); s != nil {
			return show(s.Median)
		}
		return "not measured"
	}},
	{"unit", false, func(r *row) string { return r.unit }},
	{"ratio", true, func(r *row) string {
		if s := spreadOf(r.ratios()); s != nil {
			return fmt.Sprintf("%.2f", s.Median)
		}
		return ""
	}},
	{"x of yardstick", false, func(r *row) string {
		if r.yardstick != nil {
			return r.yardstick.subject
		}
		return ""
	}},
	{"aim", false, func(r *row) string { return r.aim.String() }},
	{"", false, (*row).verdict},
	{"allocs", true, func(r *row) string {
		if s := spreadOf(r.allocs); s != nil {
			return show(s.Median)
		}
		return ""
	}},
	{"lowest-highest", false, func(r *row) string {
		var list []string
		if s := spreadOf(r.values); s != nil {
			list = append(list, show(s.Lowest)+"-"+show(s.Highest))
		}
		if s := spreadOf(r.ratios()); s != nil {
			list = append(list, fmt.Sprintf("%.2f-%.2f x", s.Lowest, s.Highest))
		}
		return strings.Join(list, ", ")
	}},
}

const explanation = `
Values are medians over the rounds; ratios are medians of the ratios of each round.
matching: 50 % orders that rest, 45 % cancels, 5 % orders that cross.
gateway's work: route, parse, verify, validate, encode; the engine is not asked. engine: without gateway and store.
fold, ledger, event: an op on warm memory. recovery: until orders are taken, with all projections to catch up.
account: it has three balances, 100,000 of them are in an engine.
start: of the process, until /readyz is 200, from a snapshot on Pebble; its files are in the page cache.
HTTP: 60 % orders and 40 % cancels, signed, each answered after its sync.
CPU: of the server's processes, Redis included. no-op: a fasthttp server that answers all alike.
refused: cancels of orders that were filled before.
no-op and fdatasync: the no-op, answering when bytes of the length of a journal record are durable, together with all that wait.
resting orders: the mix, with this many deep orders beside; its cancels take the oldest, its orders replace them.
200 pairs: the 10,000 accounts take turns on the same connections; accounts trade one pair each.
open loop: requests are due at half of the exchange's highest rate; latency counts from then. longest: of all requests.
overload: orders come at twice the best rate of a closed loop, and no more than that has in flight are admitted; the rest is refused with 503.
CPU of a refusal: during maintenance. What refusals leave: CPU, if an order costs what it costs in the closed loop. Back: 0.9 of the best rate.
flood: four times as many connections as elsewhere send what they can; the others' 400 requests a second are due at even distances.
allocations: of the whole process, its scrape left out. GC: of gc + user as Go's runtime counts them, over whole cycles.
orders one in each request, in batches, over sockets: of exchange loadtest, 60 % orders and 40 % cancels; each item counts.
A socket has 64 in flight. The CPU is that of the exchange, between its samples before and after the load.
load tester: the process of exchange loadtest while it loads, verifying nothing; generator: this program; same mix and server.
stream: subscribers are websockets in a process of their own; each burst goes out when the one before has arrived
everywhere. One write for each message, and the bare loop: the same bytes to the same connections, from as many
goroutines as the stream has. Sustained: trades at even distances for half a second, all of which arrive within another
half, and nobody is disconnected. Commit: the return of the journal's append. Wake-up: of a goroutine that writes a frame.
own: 1,000 accounts take turns on the same connections; their subscribers receive each change of each account.
three nodes: they share this machine's processors and its disk; a tick is 30 ms. Silence: the longest time without an
acknowledgement for any of 16 clients, each of which asks another node when it is refused or has waited for 0.2 s.
load at another: 512 connections to a node that follows. One machine and three nodes are loaded in turns, twice.
subscribers at an observer: orders go to the node that leads; to the observer: what its feed brings, in both cases.
`

// printTable writes the table with its columns aligned.
func printTable(w io.Writer, machine string, o options, rows []*row) {
	lines := make([][]string, 1+len(rows))
	widths := make([]int, len(columns))
	for i, c := range columns {
		lines[0] = append(lines[0], c.title)
		for j, r := range rows {
			lines[1+j] = append(lines[1+j], c.cell(r))
		}
		for _, line := range lines {
			widths[i] = max(widths[i], utf8.RuneCountInString(line[i]))
		}
	}
	fmt.Fprintf(w, "%s; rounds: %d; connections over HTTP: %d\n\n", machine, o.rounds,
		o.connections)
	for _, line := range lines {
		var b strings.Builder
		for i, cell := range line {
			width := widths[i]
			if !columns[i].right {
				width = -width
			}
			fmt.Fprintf(&b, "%*s  ", width, cell)
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
	fmt.Fprint(w, explanation)
}

// A noted subject has more to tell than fits into rows.
type noted interface{ note() string }

// printNotes writes the notes of the subjects below the table.
func printNotes(w io.Writer, subjects []subject) {
	for _, s := range subjects {
		if n, ok := s.(noted); ok {
			fmt.Fprint(w, n.note())
		}
	}
}

// show writes three digits of a number, or all of those before the point.
func show(v float64) string {
	if v < 999.5 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	s := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// machine describes the machine of the measurements.
func machine() string {
	model := ""
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, after, _ := bytes.Cut(b, []byte("model name"))
		line, _, _ := bytes.Cut(after, []byte("\n"))
		model = " " + strings.TrimSpace(strings.TrimLeft(string(line), "\t: "))
	}
	return fmt.Sprintf("%s %s/%s, %d x%s", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), model)
}

// A report is the file of -json; nil when there is none to write.
type report struct{ *os.File }

func jsonFile(name string) (*report, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Create(name)
	return &report{f}, err
}

type jsonRow struct {
	Subject   string    `json:"subject"`
	Unit      string    `json:"unit"`
	Value     *spread   `json:"value"` // null when it could not be measured
	Yardstick string    `json:"yardstick,omitempty"`
	Ratio     *spread   `json:"ratio,omitempty"`
	Aim       string    `json:"aim,omitempty"`
	Verdict   string    `json:"verdict,omitempty"`
	Allocs    *spread   `json:"allocs,omitempty"`
	Rounds    []float64 `json:"rounds"`
}

func (f *report) write(machine string, o options, rows []*row) error {
	if f == nil {
		return nil
	}
	list := make([]jsonRow, 0, len(rows))
	for _, r := range rows {
		j := jsonRow{Subject: r.subject, Unit: r.unit, Value: spreadOf(r.values),
			Ratio: spreadOf(r.ratios()), Aim: r.aim.String(),
			Verdict: r.verdict(), Allocs: spreadOf(r.allocs), Rounds: r.values}
		if r.yardstick != nil {
			j.Yardstick = r.yardstick.subject
		}
		list = append(list, j)
	}
	e := json.NewEncoder(f)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{"machine": machine, "rounds": o.rounds,
		"connections": o.connections, "rows": list})
}

func (f *report) close() {
	if f != nil {
		f.Close()
	}
}
