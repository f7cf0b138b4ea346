package generator

import (
	"errors"
	"io"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// An epollPoller is one epoll instance over non-blocking sockets: a request costs a write, a read,
// and its share of a wait, and wakes no other goroutine.
type epollPoller struct {
	epoll  int
	timer  int   // for waits finer than epoll's milliseconds
	fds    []int // by number of the connection, -1: none
	events []unix.EpollEvent
}

const timerNumber = -1

func NewPoller() (Poller, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		unix.Close(epoll)
		return nil, err
	}
	// Edge-triggered: it need not be read.
	err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, timer,
		&unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: timerNumber})
	if err != nil {
		unix.Close(epoll)
		unix.Close(timer)
		return nil, err
	}
	return &epollPoller{epoll: epoll, timer: timer, events: make([]unix.EpollEvent, 256)}, nil
}

func (p *epollPoller) Add(i int, conn io.ReadWriteCloser) error {
	of, ok := conn.(syscall.Conn)
	if !ok {
		return errors.New("a connection has no descriptor")
	}
	// The runtime does not watch a second descriptor; otherwise each answer would wake another of
	// its threads.
	defer conn.Close()
	raw, err := of.SyscallConn()
	if err != nil {
		return err
	}
	fd, failed := -1, error(nil)
	err = raw.Control(func(n uintptr) { fd, failed = unix.FcntlInt(n, unix.F_DUPFD_CLOEXEC, 0) })
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd,
		&unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}); err != nil {
		unix.Close(fd)
		return err
	}
	for len(p.fds) <= i {
		p.fds = append(p.fds, -1)
	}
	p.fds[i] = fd
	return nil
}

func (p *epollPoller) Remove(i int) {
	if i < len(p.fds) && p.fds[i] >= 0 {
		unix.Close(p.fds[i]) // which removes it from epoll
		p.fds[i] = -1
	}
}

func (p *epollPoller) Write(i int, b []byte) error {
	n, err := unix.Write(p.fds[i], b)
	if err == nil && n != len(b) {
		err = errPartWritten
	}
	return err
}

func (p *epollPoller) Read(i int, b []byte) (int, error) {
	n, err := unix.Read(p.fds[i], b)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return 0, ErrAgain
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (p *epollPoller) Wait(d time.Duration, ready []int) ([]int, error) {
	ms := int(d / time.Millisecond)
	if ms < 10 && d > 0 { // to the microsecond
		ms = 10
		at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
		if err := unix.TimerfdSettime(p.timer, 0, &at, nil); err != nil {
			return ready, err
		}
	}
	n, err := unix.EpollWait(p.epoll, p.events, ms)
	if err == unix.EINTR {
		return ready, nil
	}
	for _, e := range p.events[:max(n, 0)] {
		if e.Fd != timerNumber {
			ready = append(ready, int(e.Fd))
		}
	}
	return ready, err
}

func (p *epollPoller) Close() {
	for i := range p.fds {
		p.Remove(i)
	}
	unix.Close(p.timer)
	unix.Close(p.epoll)
}

// threadTime returns the CPU time of the calling thread.
func threadTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
