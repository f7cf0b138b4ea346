//go:build !race

package socketio

const raceDetector = false
