package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A scale has the names of a unit's multiples, from the smallest.
type scale []multiple

type multiple struct {
	size float64
	name string
}

var (
	timeScale = scale{{1e-9, " ns"}, {1e-6, " µs"}, {1e-3, " ms"}, {1, " s"}, {60, " min"},
		{3600, " h"}, {86400, " d"}}
	byteScale  = scale{{1, " B"}, {1 << 10, " KiB"}, {1 << 20, " MiB"}, {1 << 30, " GiB"}}
	rateScale  = scale{{1, " B/s"}, {1e3, " kB/s"}, {1e6, " MB/s"}, {1e9, " GB/s"}}
	plainScale = scale{{1, ""}, {1e3, "K"}, {1e6, "M"}, {1e9, "G"}}
)

// show returns a value in a unit of Grafana's: at most so many digits, with the unit behind.
func show(v float64, unit string, digits int) string {
	switch unit {
	case "s":
		return timeScale.show(v, digits)
	case "bytes":
		return byteScale.show(v, digits)
	case "Bps":
		return rateScale.show(v, digits)
	case "ops":
		return plainScale.show(v, digits) + " ops/s"
	case "reqps":
		return plainScale.show(v, digits) + " req/s"
	case "dateTimeAsIso": // milliseconds
		return time.UnixMilli(int64(v)).UTC().Format(time.DateTime)
	case "percentunit":
		return short(100*v, digits) + "%"
	}
	return plainScale.show(v, digits)
}

func (s scale) show(v float64, digits int) string {
	unit := s[0]
	for _, u := range s {
		if math.Abs(v) >= u.size*0.9995 || v == 0 && u.size == 1 {
			unit = u
		}
	}
	return short(v/unit.size, digits) + unit.name
}

// short writes a number with so many digits at most, and never with an exponent.
func short(v float64, digits int) string {
	if v == 0 {
		return "0"
	}
	after := max(digits-1-int(math.Floor(math.Log10(math.Abs(v)))), 0)
	text := strconv.FormatFloat(v, 'f', after, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// showStat is show for a panel of one value: the field may say how many decimals there are.
func showStat(v float64, f *field) string {
	if math.IsNaN(v) {
		return "no data"
	}
	if f.Decimals == nil {
		return show(v, f.Unit, 3)
	}
	if f.Unit == "percentunit" {
		return fmt.Sprintf("%.*f%%", *f.Decimals, 100*v)
	}
	return fmt.Sprintf("%.*f", *f.Decimals, v)
}
