//go:build prove && linux

package processes

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange/prove/exchangetest"
)

// allows limits the open files of the next starts.
func allows(t *testing.T, s *exchangetest.Server, files int) {
	t.Helper()
	script := filepath.Join(t.TempDir(), "limited")
	text := fmt.Sprintf("#!/bin/sh\nulimit -n %d\nexec '%s' \"$@\"\n", files, s.Program())
	succeeds(t, os.WriteFile(script, []byte(text), 0o700))
	s.Use(script)
}

// crowd opens connections until they are refused, and replaces closed ones, until it is stopped. It
// sends nothing on them. It opens one each millisecond, to leave processor time to others.
func crowd(t *testing.T, address string, most int) (stop func()) {
	t.Helper()
	stopped := make(chan struct{})
	pace := time.NewTicker(time.Millisecond)
	var wg sync.WaitGroup
	for range most {
		wg.Go(func() {
			var one [1]byte
			for {
				select {
				case <-stopped:
					return
				case <-pace.C:
				}
				c, err := net.Dial("tcp", address)
				if err != nil {
					continue // there is no room in the queue
				}
				closed := make(chan struct{})
				go func() {
					c.Read(one[:]) //nolint:errcheck // it ends when the connection does
					close(closed)
				}()
				select {
				case <-stopped:
				case <-closed:
				}
				c.Close()
				<-closed
			}
		})
	}
	return sync.OnceFunc(func() {
		close(stopped)
		wg.Wait()
		pace.Stop()
	})
}

// Clients hold more connections than there are descriptors, and the store can still open its files.
func TestConnectionsLeaveTheStoreItsDescriptors(t *testing.T) {
	const files = 900
	folder := t.TempDir()
	s := exchangetest.New(t, "pebble:"+folder)
	s.Env = append(s.Env, manySnapshots...)
	allows(t, s, files)
	s.Start()
	for _, word := range []string{"held=134", "open_files=900", "kept_for_the_store=766"} {
		if !strings.Contains(s.Log(), word) {
			t.Errorf("the start does not say %s:\n%s", word, s.Log())
		}
	}
	w := opened(t, s, 4)
	stop := crowd(t, s.Listen, 2*files)
	defer stop()
	segment := filepath.Join(folder, "journal.main", "00000003.journal")
	w.load(100, func() {
		exchangetest.Eventually(t, "ten snapshots, and three segments", func() bool {
			_, err := os.Stat(segment)
			return err == nil && strings.Count(s.Log(), "snapshot taken") >= 10
		})
	})
	stop()
	w.compare()
	if log := s.Log(); strings.Contains(log, "too many open files") {
		t.Errorf("the store had no descriptor:\n%.4000s", log)
	}
	stops(t, s)
}

func TestAStartWithTooFewDescriptorsIsRefused(t *testing.T) {
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	allows(t, s, 800)
	s.Refuses(64, "allows 800 open files", "830 are needed", "ulimit -n")
}
