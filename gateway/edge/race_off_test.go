//go:build !race

package edge_test

const raceDetector = false
