package config

import "testing"

func TestContact(t *testing.T) {
	for contact, good := range map[string]bool{"": true, "api@example.org": true,
		"https://example.org/api": true, "http://example.org": false, "https://": false,
		"mailto:api@example.org": false, "Api <api@example.org>": false, "us": false} {
		c := Demo()
		c.Contact = contact
		if err := c.Finish(); (err == nil) != good {
			t.Errorf("%q: %v", contact, err)
		} else if got, _ := err.(problemList); !good {
			expect(t, got, "write an e-mail address or an https address")
		}
	}
}
