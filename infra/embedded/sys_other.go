//go:build !unix

package embedded

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

var errPlatform = errors.New("the embedded database runs on Linux and macOS only: name a server of your own in DATABASE_URL")

func checkPlatform() error { return errPlatform }

func tryLock(*os.File) error { return errPlatform }

func unlock(*os.File) error { return errPlatform }

func detached(owner) *syscall.SysProcAttr { return nil }

func killGroup(int) error { return errPlatform }

func ownerOf(fs.FileInfo) (uid, gid uint32) { return 0, 0 }
