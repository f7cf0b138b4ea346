package committed

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAnUploadRestsNineTimesAsLongAsItWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hurry, begin := make(chan struct{}), time.Now()
		p := &pace{hurry: hurry, worked: begin, until: begin.Add(time.Minute)}
		rest := func(work, want time.Duration) {
			t.Helper()
			time.Sleep(work)
			from := time.Now()
			if err := p.rest(); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(from); got != want {
				t.Errorf("behind a piece of %v it rests %v, want %v", work, got, want)
			}
		}
		rest(0, 0)
		rest(time.Millisecond, 9*time.Millisecond)
		rest(2*time.Millisecond, 18*time.Millisecond)
		rest(time.Second, restMost)
		time.AfterFunc(time.Second+time.Millisecond, func() { close(hurry) })
		rest(time.Second, time.Millisecond) // the end of the exchange waits
		rest(time.Second, 0)
		p.hurry, p.worked = nil, time.Now()
		rest(time.Minute, 0) // it must come to its end
	})
}
