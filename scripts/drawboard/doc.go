// Command drawboard draws a Grafana board as one SVG, without Grafana: the board's JSON says which
// panels there are and where, and a Prometheus evaluates their expressions. scripts/pictures runs
// it.
//
//   - main.go: the command
//   - board.go: what is read of a board, and where each panel stands
//   - prometheus.go: the expressions and their samples
//   - picture.go: the whole picture, its rows and its panels of one value
//   - series.go: the panels of lines over time, with their legends
//   - axis.go: values to places, and the values that an axis names
//   - unit.go: values as text, in the board's units
package main
