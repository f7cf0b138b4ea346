//go:build race

package edge_test

// raceDetector: under it sync.Pool drops things at random, so allocations cannot be counted.
const raceDetector = true
