package edge

import (
	"strconv"
	"strings"
)

// acceptsJSON reports whether an Accept header allows JSON. The most specific matching range
// decides.
func acceptsJSON(header string) bool {
	best, ok := 0, false
	for part := range strings.SplitSeq(header, ",") {
		kind, parameters, _ := strings.Cut(part, ";")
		rank := 0
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "application/json":
			rank = 3
		case "application/*":
			rank = 2
		case "*/*":
			rank = 1
		}
		if rank < best || rank == 0 {
			continue
		}
		best, ok = rank, wanted(parameters)
	}
	return ok
}

// wanted reports whether the parameters of a coding have no q of 0, which forbids the coding.
func wanted(parameters string) bool {
	for p := range strings.SplitSeq(parameters, ";") {
		if name, value, _ := strings.Cut(strings.TrimSpace(p), "="); strings.EqualFold(name, "q") {
			q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return err == nil && q > 0
		}
	}
	return true
}

// accepts reports whether an Accept-Encoding header takes a coding. * stands for each coding that
// the header does not name.
func accepts(header, wantedCoding string) (ok bool) {
	for part := range strings.SplitSeq(header, ",") {
		coding, parameters, _ := strings.Cut(part, ";")
		switch coding = strings.TrimSpace(coding); {
		case strings.EqualFold(coding, wantedCoding):
			return wanted(parameters)
		case coding == "*":
			ok = wanted(parameters)
		}
	}
	return ok
}
