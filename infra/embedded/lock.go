package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ErrInUse says that another live process runs the database of the folder. The
// error that carries it is an *InUseError.
var ErrInUse = errors.New("the data folder is in use")

// ErrNoDatabase says that the machine has no database that could be run; the
// message is one line and tells what to install.
var ErrNoDatabase = errors.New("no database found")

// InUseError names the process that holds a data folder.
type InUseError struct {
	// DataDir is the folder that both processes want.
	DataDir string
	// PID is the holder, or zero when it has not written its number yet.
	PID int
}

// Error says who holds the folder and how to go on.
func (e *InUseError) Error() string {
	holder := "another process"
	if e.PID != 0 {
		holder = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("the data folder %s is in use by %s: stop it first or choose another folder with --data",
		e.DataDir, holder)
}

// Unwrap lets errors.Is find ErrInUse.
func (e *InUseError) Unwrap() error { return ErrInUse }

// errLocked is what tryLock reports when another process holds the lock.
var errLocked = errors.New("locked")

// lockTries bounds the chase after a lock file that is removed, together with
// its folder, between our opening and our locking it.
const lockTries = 5

// folderLock is held for as long as the process lives. The kernel drops it with
// the process, and no child inherits it: Go opens files close-on-exec.
type folderLock struct{ file *os.File }

func lockFolder(dataDir string) (*folderLock, error) {
	if err := checkPlatform(); err != nil {
		return nil, err
	}
	for range lockTries {
		lock, err := lockOnce(dataDir)
		if err != nil || lock != nil {
			return lock, err
		}
	}
	return nil, fmt.Errorf("lock the data folder %s: it is removed again and again", dataDir)
}

// lockOnce returns nil and no error when the locked file is no longer the one
// that the path names.
func lockOnce(dataDir string) (*folderLock, error) {
	if err := makeFolder(dataDir); err != nil {
		return nil, err
	}
	path := filepath.Join(dataDir, "lock")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	if err := tryLock(file); err != nil {
		if errors.Is(err, errLocked) {
			err = &InUseError{DataDir: dataDir, PID: readPID(file)}
		} else {
			err = fmt.Errorf("lock the data folder %s: %w", dataDir, err)
		}
		return nil, errors.Join(err, file.Close())
	}
	if !names(path, file) {
		return nil, file.Close()
	}
	if err := writePID(file); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the data folder: %w", err), file.Close())
	}
	return &folderLock{file: file}, nil
}

// release gives the lock up by name before it closes the file: a child that is
// being started holds a copy of the file until it has become its program.
func (l *folderLock) release() error {
	if err := unlock(l.file); err != nil {
		return fmt.Errorf("unlock the data folder: %w", err)
	}
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("unlock the data folder: %w", err)
	}
	return nil
}

func names(path string, file *os.File) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(opened, named)
}

func writePID(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func readPID(file *os.File) int {
	content, err := io.ReadAll(io.LimitReader(file, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return 0
	}
	return pid
}
