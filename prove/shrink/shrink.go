// Package shrink reduces a failing list of actions to a short one that fails the same way. Only
// tests use it.
package shrink

import (
	"regexp"
	"slices"
	"strings"
)

// SameFailure reports whether two failures are of one kind: their first lines differ at most in
// numbers and names, which a shorter list of actions changes.
func SameFailure(a, b error) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return kindOf(a) == kindOf(b)
}

// particular matches the differences between failures of one kind: values in braces, brackets and
// quotes, words with digits or capitals (numbers, currencies, hashes, client order ids), and
// accounts, also within the name of a key.
var particular = regexp.MustCompile(
	`[{\["].*[}\]"]|[\w.-]*[0-9A-Z][\w.-]*|\b(ann|ben|cid|dan|eve|fees)\b`)

func kindOf(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.Join(strings.Fields(particular.ReplaceAllString(line, "")), " ")
}

// Shrink removes the actions that a list does not need to fail (delta debugging): halves first,
// then smaller and smaller parts, down to single actions. fails runs a list; Shrink runs at most
// mostRuns lists. It returns a failing list.
func Shrink[T any](actions []T, mostRuns int, fails func([]T) bool) []T {
	for part := (len(actions) + 1) / 2; part > 0; {
		shorter := false
		for from := 0; from < len(actions) && mostRuns > 0; {
			without := slices.Delete(slices.Clone(actions), from, min(from+part, len(actions)))
			mostRuns--
			if fails(without) {
				actions, shorter = without, true
			} else {
				from += part
			}
		}
		switch {
		case mostRuns <= 0:
			return actions
		case part > 1:
			part = (part + 1) / 2
		case !shorter:
			return actions
		}
	}
	return actions
}
