package operator

import (
	"maps"
	"slices"
	"testing"
)

func TestEveryRouteIsDescribed(t *testing.T) {
	for _, name := range Routes() {
		d, ok := descriptions[name]
		if !ok {
			t.Errorf("%s has no description in described.go", name)
			continue
		}
		if d.Summary == "" || d.Text == "" || len(d.Answers) == 0 && d.Kind == "" {
			t.Errorf("%s is not described: %+v", name, d)
		}
		if post := name[:5] == "POST "; post != (d.Body != nil) {
			t.Errorf("%s has the body %T", name, d.Body)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(descriptions)) {
		if _, ok := routes[name]; !ok {
			t.Errorf("%s is described and is no route", name)
		}
	}
	for name := range refusals {
		if _, ok := routes[name]; !ok {
			t.Errorf("%s is refused and is no route", name)
		}
	}
	if !t.Failed() {
		newDocument() // panics if a member has no description, or a description no member
	}
}
