package loadtest

import (
	"fmt"
	"io"
	"iter"
	"strings"
	"text/tabwriter"
)

// WriteText writes the report for people.
func (r *Report) WriteText(out io.Writer) error {
	b := &strings.Builder{}
	o := &r.Options
	loop := "closed loop"
	if o.Rate > 0 {
		loop = fmt.Sprintf("open loop, %s/s asked for", thousands(uint64(o.Rate)))
	}
	if n := len(r.Stages); n > 0 {
		loop = fmt.Sprintf("open loop of %d stages", n)
	}
	if r.Ramp != nil {
		loop = "ramp, p99 of at most " + ms(r.Ramp.Bound)
	}
	fmt.Fprintf(b, "%s, %s, mix %s, seed %d: %d pairs, %d accounts, %s, %.1f s",
		o.Model, loop, o.Mix, o.Seed, o.Pairs, o.Accounts, o.ways(), r.Seconds)
	if r.Interrupted {
		b.WriteString(", interrupted")
	}
	fmt.Fprintf(b, "\n%s\n%s\n", r.headline(), r.Warmup.line())
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "operation\trequests\trate/s\tp50\tp90\tp99\tp99.9\tp99.99\tmax\t")
	row := func(name string, rate float64, l Latency) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", name, thousands(uint64(l.Count)),
			thousands(uint64(rate+0.5)), ms(l.P50), ms(l.P90), ms(l.P99), ms(l.P999), ms(l.P9999),
			ms(l.Max))
	}
	for _, x := range r.Operations {
		row(x.Name, x.Rate, x.Latency)
	}
	row("all done", r.Rate, r.Latency)
	for name, l := range r.notDone() {
		row(name, float64(l.Count)/max(r.Seconds, 1e-6), *l)
	}
	w.Flush()
	fmt.Fprintf(b, "\n%s done, %s cancels and changes came too late, %s refused, "+
		"%s without an outcome",
		thousands(r.Done), thousands(r.Late), thousands(r.Refused), thousands(r.Unknown))
	if r.Options.open() {
		fmt.Fprintf(b, ", %s due and not sent", thousands(r.Unsent))
	}
	for _, line := range r.remarks() {
		b.WriteString("\n" + line)
	}
	fmt.Fprintf(b, "\nCPU of this program: %.1f us a request, %.1f us with all else that it does\n",
		r.CPU.Generator, r.CPU.Process)
	for _, line := range r.Server.lines() {
		fmt.Fprintln(b, line)
	}
	r.writeErrors(b)
	r.writeStages(b)
	r.writePairs(b)
	r.writeAddresses(b)
	r.writeChannels(b)
	r.writeMinutes(b)
	r.writeRamp(b)
	r.writeVerification(b)
	_, err := io.WriteString(out, b.String())
	return err
}

// writeErrors writes the kinds of errors.
func (r *Report) writeErrors(b *strings.Builder) {
	if len(r.Errors) == 0 {
		return
	}
	b.WriteString("\nerrors\n")
	for _, k := range r.Errors {
		fmt.Fprintf(b, "%12s  %s\n", thousands(k.Count), k.Kind)
	}
	for _, k := range r.Errors {
		if strings.HasPrefix(k.Kind, "429 ") {
			b.WriteString(
				"The server limits how often requests come: start it with --no-rate-limits, " +
					"or use more accounts.\n")
			break
		}
	}
}

// line describes the warmup on its own line; "" if there was none.
func (w *Warmup) line() string {
	if w == nil {
		return ""
	}
	text := fmt.Sprintf("Not counted: a warmup of %.1f s with %s requests, %s refused, "+
		"%s without an outcome", w.Seconds, thousands(w.Requests), thousands(w.Refused),
		thousands(w.Unknown))
	if w.Unsent > 0 {
		text += fmt.Sprintf(", %s due and not sent", thousands(w.Unsent))
	}
	return text + "\n"
}

// headline describes how much was done, and which share was not.
func (r *Report) headline() string {
	of := float64(max(r.Requests+r.Unsent, 1))
	text := fmt.Sprintf("%s/s done of %s/s asked for", thousands(uint64(r.Rate+0.5)),
		thousands(uint64(of/max(r.Seconds, 1e-6)+0.5)))
	for name, l := range r.notDone() {
		text += fmt.Sprintf(", %.3g %% %s", 100*float64(l.Count)/of, name)
	}
	return text
}

// remarks list substituted requests, and how busy the machine was.
func (r *Report) remarks() (all []string) {
	if n := r.Substituted.Cancels; n > 0 {
		all = append(all, fmt.Sprintf("in place of orders %s cancels were sent: an account keeps "+
			"at most %s open orders", thousands(n), thousands(mostOpen)))
	}
	if n := r.Substituted.Orders; n > 0 {
		all = append(all, fmt.Sprintf("in place of cancels %s orders were sent: nothing rested",
			thousands(n)))
	}
	if r.Machine != nil {
		all = append(all, r.Machine.String())
	}
	return all
}

// notDone returns the latencies of requests that were not done, by outcome.
func (r *Report) notDone() iter.Seq2[string, *Latency] {
	return func(yield func(string, *Latency) bool) {
		for _, x := range []struct {
			name string
			l    *Latency
		}{{"too late", &r.Lates}, {"refused", &r.Refusals}, {"without an outcome", &r.Unknowns},
			{"due and not sent", &r.UnsentLatency}} {
			if x.l.Count > 0 && !yield(x.name, x.l) {
				return
			}
		}
	}
}

// worstPairs is the number of pairs with a row in the text.
const worstPairs = 5

// writePairs writes the pairs with the highest p99.
func (r *Report) writePairs(b *strings.Builder) {
	if len(r.Pairs) < 2 || r.Pairs[0].P99 == 0 {
		return
	}
	fmt.Fprintf(b, "\nof %d pairs the slowest\n", len(r.Pairs))
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "pair\tdone/s\tp50\tp99\t")
	for _, p := range r.Pairs[:min(len(r.Pairs), worstPairs)] {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", p.Pair, thousands(uint64(p.Rate+0.5)), ms(p.P50),
			ms(p.P99))
	}
	w.Flush()
}

func (r *Report) writeChannels(b *strings.Builder) {
	if len(r.Subscribers) == 0 {
		return
	}
	b.WriteByte('\n')
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "channel\tsubscribers\tevents\tevents/s\tMB\twhole books\tlost\t")
	for _, c := range r.Subscribers {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%.1f\t%d\t%d\t\n", c.Channel, c.Subscribers,
			thousands(c.Events), thousands(uint64(c.Rate)), float64(c.Bytes)/1e6, c.Wholes,
			c.Lost)
	}
	w.Flush()
	for _, c := range r.Subscribers {
		if l := c.Lag; l != nil {
			fmt.Fprintf(b, "own: from an order's acknowledgement to its event p50 %s, p99 %s; "+
				"%s of %s events came before\n", ms(l.P50), ms(l.P99), thousands(c.Before),
				thousands(uint64(l.Count)))
		}
	}
}

// ways describes the transport of orders.
func (o *Summary) ways() string {
	text := fmt.Sprintf("%d connections", o.Connections)
	if o.Sockets > 0 {
		text = fmt.Sprintf("%d sockets", o.Sockets)
	}
	if o.Batch > 0 {
		text += fmt.Sprintf(", batches of %d", o.Batch)
	}
	return text
}

func (r *Report) writeRamp(b *strings.Builder) {
	if r.Ramp == nil {
		return
	}
	b.WriteString("\nramp\n")
	for _, s := range r.Ramp.Steps {
		fmt.Fprintf(b, "  %s\n", s)
	}
	if r.Ramp.Highest == 0 {
		fmt.Fprintf(b, "No rate held a p99 of %s.\n", ms(r.Ramp.Bound))
		return
	}
	fmt.Fprintf(b, "The highest rate that held a p99 of %s: %s/s\n", ms(r.Ramp.Bound),
		thousands(uint64(r.Ramp.Highest)))
}

func (r *Report) writeVerification(b *strings.Builder) {
	v := r.Verification
	if v == nil {
		b.WriteString("\nNothing was verified.\n")
		return
	}
	fmt.Fprintf(b,
		"\nverified in %.1f s: %s orders, %s cancels and %s trades as they were acknowledged, "+
			"wallets of %s accounts,\n%s events of the stream, %d local books",
		v.Took, thousands(v.Orders), thousands(v.Cancels), thousands(v.Trades),
		thousands(v.Accounts), thousands(v.Updates), v.Books)
	if len(r.Addresses) > 1 {
		fmt.Fprintf(b, "\n%s of these orders were read at another address than they were sent to, "+
			"%s orders at once,\nand the books of %d pairs are the same at all addresses that "+
			"answer", thousands(v.Across), thousands(v.Witnessed), v.Alike)
	}
	for _, address := range v.NotRead {
		fmt.Fprintf(b, "\nnothing was read at %s, which does not answer any more", address)
	}
	if v.UnknownIn+v.UnknownOut > 0 {
		fmt.Fprintf(b, "\norders without an outcome: %s are in, %s are not", thousands(v.UnknownIn),
			thousands(v.UnknownOut))
	}
	if v.Audit != "" {
		fmt.Fprintf(b, "; the audit is %s", strings.Replace(v.Audit, "differs", "NOT clean", 1))
	}
	b.WriteByte('\n')
	for _, text := range v.NotChecked {
		fmt.Fprintf(b, "not checked, %s\n", text)
	}
	if v.Incomplete != "" {
		fmt.Fprintf(b, "The verification did not finish: %s\n", v.Incomplete)
	}
	switch {
	case v.Found > 0:
		fmt.Fprintf(b, "%s differences:\n", thousands(v.Found))
		for _, d := range v.Differences {
			fmt.Fprintf(b, "  %s\n", d)
		}
		if more := v.Found - uint64(len(v.Differences)); more > 0 {
			fmt.Fprintf(b, "  and %s more\n", thousands(more))
		}
	case v.Incomplete == "":
		b.WriteString("No difference was found.\n")
	}
}
