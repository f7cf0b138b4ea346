package replicated

import (
	"errors"

	"exchange/persistence"
)

// A folderCopy is a copy of a node's whole folder, made while the node ran.
type folderCopy struct {
	disk *disk
	id   uint64
	boot uint64 // of the running start
}

// keep copies the node's folder, as a snapshot of a virtual machine does.
func (s *simulated) keep() {
	if s.node != nil && !s.unfit {
		s.copied = &folderCopy{s.disk.crash(s.w.T, s.w.rng), s.node.id, s.log.Own().Boot}
		s.w.counts["copies"]++
	}
}

// putBack replaces the node's folder by the older copy. Each other member has received a newer
// start of the node: a later copy cannot be distinguished from the folder.
func (s *simulated) putBack() {
	w := s.w
	if s.copied == nil || !w.mayLose(s) {
		return
	}
	for _, peer := range w.nodes {
		if peer != s && !peer.spare &&
			(peer.node == nil || peer.log.RecordedStart(s.copied.id).Boot <= s.copied.boot) {
			return
		}
	}
	s.crash()
	s.disk, s.copied, s.unfit = s.copied.disk, nil, true
	w.counts["put back"]++
	s.start()
}

// flip ends the node as a kill does, and changes a bit in its folder.
func (s *simulated) flip() {
	w := s.w
	if s.node == nil || !w.mayLose(s) {
		return
	}
	s.down()
	s.disk = s.disk.flip(w.T, w.rng, folder, folder+"/log")
	s.unfit = true
	w.counts["flips"]++
	s.start()
	if s.node != nil { // it may meet the bit later, when it truncates its log
		w.counts["flips without effect"]++
	}
}

// refuses reports whether a node has ended because its folder is unfit. That of a node which has
// formed again may be: its peers may have received an earlier start.
func (s *simulated) refuses(err error) bool {
	return (s.unfit || s.again) && (errors.Is(err, persistence.ErrCorrupt) ||
		errors.Is(err, errOlderCopy) || errors.Is(err, errLogTruncated))
}

// lose replaces the disk by an empty one.
func (s *simulated) lose() {
	w := s.w
	if w.votes(s) {
		w.replaced = s.name()
	}
	s.crash()
	s.gone, s.again, s.unfit, s.copied = true, false, false, nil
	s.disk = newDisk()
	s.start()
}
