package edge

import "testing"

func TestACodingIsSentToClientsThatTakeIt(t *testing.T) {
	for header, want := range map[string]bool{"gzip": true, "br, GZip ": true, "gzip;q=0.1": true,
		"*": true, "br;q=1, *;q=0.5": true,
		"": false, "br": false, "gzip;q=0": false, "gzip; q=0.000, br": false, "*, gzip;q=0": false,
		"gzip;q=0, *": false, "gzip;q=x": false, "*;q=0": false, "gzipped": false} {
		if got := accepts(header, "gzip"); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
}
