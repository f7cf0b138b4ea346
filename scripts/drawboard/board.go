package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// A board is what the picture needs of a Grafana board.
type board struct {
	Title  string  `json:"title"`
	Panels []panel `json:"panels"`
}

type panel struct {
	Title   string `json:"title"`
	Type    string `json:"type"` // row, stat or timeseries
	GridPos struct {
		X, Y, W, H int // in units of the grid: 24 make the width
	} `json:"gridPos"`
	FieldConfig struct {
		Defaults field `json:"defaults"`
	} `json:"fieldConfig"`
	Options struct {
		TextMode string `json:"textMode"` // "name": a stat shows the legend and not the value
	} `json:"options"`
	Targets []target `json:"targets"`
}

// A field is how values are shown.
type field struct {
	Unit       string   `json:"unit"`
	Decimals   *int     `json:"decimals"`
	Min        *float64 `json:"min"`
	Thresholds struct {
		Steps []struct {
			Color string   `json:"color"`
			Value *float64 `json:"value"` // nil: from below
		} `json:"steps"`
	} `json:"thresholds"`
	Mappings []struct {
		Options map[string]struct{ Text, Color string } `json:"options"`
	} `json:"mappings"`
	Custom struct {
		FillOpacity float64 `json:"fillOpacity"` // in percent
		LineWidth   float64 `json:"lineWidth"`
		Stacking    struct {
			Mode string `json:"mode"`
		} `json:"stacking"`
		Scale struct {
			Type string `json:"type"`
		} `json:"scaleDistribution"`
	} `json:"custom"`
}

type target struct {
	Expr   string `json:"expr"`
	Legend string `json:"legendFormat"`
}

func readBoard(file string) (*board, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	b := &board{}
	if err := json.Unmarshal(text, b); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return b, nil
}

// A placed panel is one that is drawn, at a height of its own because rows above may be closed.
type placed struct {
	*panel
	y      int // in units of the grid
	hidden int // the panels of a closed row
}

// layout returns what is drawn and how many units high that is: each row, and the panels of the
// rows that are open.
func (b *board) layout(open []string) (all []placed, height int, err error) {
	for i := 0; i < len(b.Panels); {
		row := &b.Panels[i]
		if row.Type != "row" {
			return nil, 0, fmt.Errorf("the panel %q stands in no row", row.Title)
		}
		under := b.Panels[i+1:]
		if next := slices.IndexFunc(under, func(p panel) bool {
			return p.Type == "row"
		}); next >= 0 {
			under = under[:next]
		}
		i += 1 + len(under)
		isOpen := slices.Contains(open, row.Title)
		head := placed{panel: row, y: height}
		if !isOpen {
			head.hidden = len(under)
		}
		all = append(all, head)
		top := height - row.GridPos.Y
		height += row.GridPos.H
		for j := range under {
			if p := &under[j]; isOpen {
				all = append(all, placed{panel: p, y: top + p.GridPos.Y})
				height = max(height, top+p.GridPos.Y+p.GridPos.H)
			}
		}
	}
	for _, title := range open {
		isRow := func(p panel) bool { return p.Type == "row" && p.Title == title }
		if !slices.ContainsFunc(b.Panels, isRow) {
			return nil, 0, fmt.Errorf("the board has no row %q", title)
		}
	}
	return all, height, nil
}
