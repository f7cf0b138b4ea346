package main

import "math"

// An axis maps values to places from the bottom of a plot to its top.
type axis struct {
	from, to    float64
	log         bool
	bottom, top float64
	step        float64 // between the values that it names, if it is linear
}

// newAxis returns an axis for lines, or for their sums where they are stacked. It has no place for
// NaN, nor for 0 if it is logarithmic.
func newAxis(lines []line, f *field, bottom, top float64) axis {
	a := axis{from: math.Inf(1), to: math.Inf(-1), log: f.Custom.Scale.Type == "log",
		bottom: bottom, top: top}
	for _, l := range lines {
		for _, v := range l.values {
			if a.has(v) {
				a.from, a.to = min(a.from, v), max(a.to, v)
			}
		}
	}
	switch {
	case a.from > a.to:
		a.from, a.to = 0, 1
		a.log = false
	case a.log:
		a.from = math.Pow(10, math.Floor(math.Log10(a.from)+1e-9))
		a.to = math.Pow(10, math.Ceil(math.Log10(a.to)-1e-9))
		if a.from == a.to {
			a.to *= 10
		}
	case f.Min != nil:
		a.from = min(a.from, *f.Min)
	}
	if !a.log {
		a.from = min(a.from, 0)
		if a.to <= a.from {
			a.to = a.from + 1
		}
		a.step = niceStep((a.to-a.from)/4, f.Unit)
		a.to = a.step * math.Ceil(a.to/a.step-1e-9)
	}
	return a
}

// has reports whether a value has a place.
func (a axis) has(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!a.log || v > 0)
}

func (a axis) place(v float64) float64 {
	share := (v - a.from) / (a.to - a.from)
	if a.log {
		share = math.Log10(v/a.from) / math.Log10(a.to/a.from)
	}
	return a.bottom + (a.top-a.bottom)*share
}

// ticks returns the values that the axis names: at most seven.
func (a axis) ticks() (all []float64) {
	if !a.log {
		for i := 0; a.from+float64(i)*a.step <= a.to*1.0001; i++ {
			all = append(all, a.from+float64(i)*a.step)
		}
		return all
	}
	decades := math.Round(math.Log10(a.to / a.from))
	if decades == 1 {
		return []float64{a.from, 2 * a.from, 5 * a.from, a.to}
	}
	for i := 0.0; i <= decades; i += math.Ceil(decades / 6) {
		all = append(all, a.from*math.Pow(10, i))
	}
	return all
}

// niceStep returns 1, 2 or 5 of a power of ten that is not less; for bytes, of a power of 1024.
func niceStep(least float64, unit string) float64 {
	base := 1.0
	for unit == "bytes" && 4*least >= 1024*base {
		base *= 1024
	}
	power := base * math.Pow(10, math.Floor(math.Log10(least/base)))
	for _, k := range []float64{1, 2, 5} {
		if k*power >= least*0.9999 {
			return k * power
		}
	}
	return 10 * power
}
