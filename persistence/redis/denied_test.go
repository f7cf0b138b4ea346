package redis

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

// A rejected URL is distinguished from an unreachable Redis: a retry is useless.
func TestRejectedURLDiffersFromUnreachableRedis(t *testing.T) {
	for text, want := range map[string]error{
		"WRONGPASS invalid username-password pair":                      fs.ErrPermission,
		"NOAUTH Authentication required.":                               fs.ErrPermission,
		"NOPERM this user has no permissions to run the 'ping' command": fs.ErrPermission,
		"DENIED Redis is running in protected mode":                     fs.ErrPermission,
		"ERR AUTH <password> called without any password configured":    fs.ErrPermission,
		"ERR DB index is out of range":                                  fs.ErrInvalid,
		"LOADING Redis is loading the dataset in memory":                nil,
		"ERR max number of clients reached":                             nil,
		"MASTERDOWN Link with MASTER is down":                           nil,
	} {
		if err := denied(fmt.Errorf("connecting: %w", answer(text))); err != want {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
	if err := denied(errors.New("WRONGPASS")); err != nil {
		t.Errorf("an error that is not Redis's: %v", err)
	}
}
