package wal

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence/internal/codec"
)

// tear changes the last durably written byte, as if the write was interrupted.
func tear(t *testing.T, fs vfs.FS, name string, at int64) {
	t.Helper()
	f, err := fs.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	succeeds(t, err)
	b := make([]byte, 1)
	_, err = f.ReadAt(b, at)
	if err == nil {
		b[0] ^= 1
		_, err = f.WriteAt(b, at)
	}
	succeeds(t, err, f.Sync(), f.Close())
}

// An append was torn, its head is whole, and the next append goes into another segment. A reader of
// the first segment does not find the head, not even if the power fails at once.
func TestTornHeadIsRemovedBeforeNextSegment(t *testing.T) {
	fs := vfs.NewCrashableMem()
	w := open(t, fs)
	w.append(1000)
	torn := w.next(500)
	w.must(w.log.Append(torn.prev, torn.next, codec.Digest([]byte(torn.data)), []byte(torn.data)))
	name, end := w.log.active.name, w.log.end.used-recordBytes(500)+recordHead+500
	w.close()
	tear(t, fs, name, end-1)
	w.reopen()
	if seq, _ := w.log.End(); seq != w.end || !w.log.torn {
		t.Fatalf("the log ends at %d, torn: %v; want %d", seq, w.log.torn, w.end)
	}
	w.append(minSegmentBytes) // which has no room there
	if w.log.active.number != 2 {
		t.Fatalf("it continues in segment %d", w.log.active.number)
	}
	w.wantAfter(0)
	left := fs.CrashClone(vfs.CrashCloneCfg{})
	w.close()
	w.fs = left
	w.reopen()
	w.wantAfter(0)
}
