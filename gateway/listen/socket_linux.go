package listen

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// OverflowUser returns the id that the kernel shows for users of another user namespace, which have
// no id here.
func OverflowUser() int {
	text, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil {
		return usualOverflow
	}
	user, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return usualOverflow
	}
	return user
}

// usualOverflow is OverflowUser where no administrator has changed it.
const usualOverflow = 65534

// userOf returns the id of the user that opened the other end of a socket, as the kernel recorded
// it.
func userOf(fd int) (int, error) {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}
