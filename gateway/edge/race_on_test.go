//go:build race

package gateway

// raceDetector: under it sync.Pool drops things at random, so allocations cannot be counted.
const raceDetector = true
