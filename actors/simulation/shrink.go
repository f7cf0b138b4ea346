package simulation

import "slices"

// Shrink leaves out of a list of actions what is not needed for it to fail: halves first, then smaller and
// smaller parts, down to single ones (delta debugging). fails runs a list; it is asked at most so many times.
// What remains fails.
func Shrink[T any](actions []T, most int, fails func([]T) bool) []T {
	for part := (len(actions) + 1) / 2; part > 0; {
		shorter := false
		for from := 0; from < len(actions) && most > 0; {
			without := slices.Delete(slices.Clone(actions), from, min(from+part, len(actions)))
			most--
			if fails(without) {
				actions, shorter = without, true
			} else {
				from += part
			}
		}
		switch {
		case most <= 0:
			return actions
		case part > 1:
			part = (part + 1) / 2
		case !shorter:
			return actions
		}
	}
	return actions
}
