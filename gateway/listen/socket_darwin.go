package listen

import "golang.org/x/sys/unix"

// OverflowUser is no user's id: this system has no user namespaces.
func OverflowUser() int { return -1 }

// userOf is the id of the user that opened the other end of a socket, as the kernel recorded it.
func userOf(fd int) (int, error) {
	peer, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}
