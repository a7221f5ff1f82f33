//go:build unix

package embedded

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

func checkPlatform() error { return nil }

// tryLock takes the exclusive lock of an open file or reports errLocked.
func tryLock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}

// unlock gives the lock of an open file up, whoever has copies of the file.
func unlock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
}

// detached puts a child into a session of its own, away from the signals of
// the terminal, and makes it run as the owner.
func detached(o owner) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if o.other {
		attr.Credential = &syscall.Credential{Uid: o.uid, Gid: o.gid}
	}
	return attr
}

// killGroup ends a child that detached started, with all its children.
func killGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }

// ownerOf returns the user and group of a file.
func ownerOf(info fs.FileInfo) (uid, gid uint32) {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Uid, stat.Gid
	}
	return 0, 0
}
