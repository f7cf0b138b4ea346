package operator

import "testing"

func TestEachRouteHasAnAnswerAndEachRefusalARoute(t *testing.T) {
	for name, r := range routes() {
		if len(r.out) == 0 && !r.binary {
			t.Errorf("%s has no answer", name)
		}
	}
	for name := range refusals {
		if routes()[name] == nil {
			t.Errorf("%s is refused and is no route", name)
		}
	}
}
