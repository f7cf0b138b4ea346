package api

import "testing"

// A bound with a fraction is the next second inside it.
func TestTheBoundsOfAChartAreWholeSecondsInsideThem(t *testing.T) {
	f := func(text string, since, until int64) {
		t.Helper()
		var c Call
		if err := c.Query.ParseQuery([]byte("t=" + text)); err != nil {
			t.Fatal(err)
		}
		if s, u := c.moment("t", true, 7),
			c.moment("t", false, 7); s != since || u != until || len(c.fields) > 0 {
			t.Errorf("%s: since %d until %d, want %d and %d; %v", text, s, u, since, until,
				c.fields)
		}
	}
	f("0", 0, 0)
	f("12", 12, 12)
	f("12.00", 12, 12)
	f("12.00000001", 13, 12)
	f("12.99999999", 13, 12)
	f("0.00000001", 1, 0)
	f("1e3", 1000, 1000)
	f("92233720368.54775807", 92233720369, 92233720368)
}
