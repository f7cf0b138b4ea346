package operator

import "testing"

func TestEachRouteHasAnAnswerAndEachRefusalARoute(t *testing.T) {
	for name, d := range descriptions {
		if len(d.Answers) == 0 && d.Kind == "" {
			t.Errorf("%s is not described: %+v", name, d)
		}
	}
	for name := range refusals {
		if _, ok := routes[name]; !ok {
			t.Errorf("%s is refused and is no route", name)
		}
	}
}
