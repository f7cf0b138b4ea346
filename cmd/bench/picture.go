package main

import (
	"errors"
	"fmt"
	"os"

	"exchange/cmd/internal/bars"
)

// drawPicture writes how far the rows are from their aims into a file; "" writes none. A row
// without an aim, or without values, is left out.
func drawPicture(file, machine string, o options, rows []*row) error {
	if file == "" {
		return nil
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = pictureOf(machine, o, rows).WriteTo(f)
	return errors.Join(err, f.Close())
}

func pictureOf(machine string, o options, rows []*row) *bars.Chart {
	c := &bars.Chart{Title: "Each row of the benchmark as times of its aim: to the right is better",
		From: 1, Begin: "the aim",
		Ticks: []bars.Tick{{Value: 0.1, Text: "0.1 x"}, {Value: 0.5, Text: "0.5 x"},
			{Value: 2, Text: "2 x"}, {Value: 5, Text: "5 x"}, {Value: 20, Text: "20 x"}},
		Footer: fmt.Sprintf("%s; medians of %d rounds, thin lines from the lowest to the highest",
			machine, o.rounds)}
	for _, r := range rows {
		s := spreadOf(r.ofAim())
		if s == nil || s.Lowest <= 0 {
			continue
		}
		text := show(spreadOf(r.values).Median) + " " + r.unit
		if ratio := spreadOf(r.ratios()); ratio != nil {
			text += fmt.Sprintf(", %.2f x", ratio.Median)
		}
		c.Rows = append(c.Rows, bars.Row{Name: r.subject, Value: s.Median, Low: s.Lowest,
			High: s.Highest, Text: text + " (" + r.aim.String() + ")", Poor: s.Median < 1})
	}
	return c
}

// ofAim returns each round's value as times of the aim: 1 and more meets it. Of several aims it is
// the one that the row is farthest from. Without an aim of a value or a ratio it is nil.
func (r *row) ofAim() (worst []float64) {
	try := func(values []float64, aim float64, most bool) {
		if aim == 0 || len(values) == 0 {
			return
		}
		list := make([]float64, len(values))
		for i, v := range values {
			if list[i] = v / aim; most {
				list[i] = aim / v
			}
		}
		if worst == nil || median(list) < median(worst) {
			worst = list
		}
	}
	ratios := r.ratios()
	try(r.values, r.aim.least, false)
	try(r.values, r.aim.most, true)
	try(ratios, r.aim.leastRatio, false)
	try(ratios, r.aim.mostRatio, true)
	return worst
}
