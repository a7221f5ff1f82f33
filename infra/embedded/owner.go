package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
)

// owner is the user that the database runs as. PostgreSQL refuses to run as
// root, so under root it is somebody else.
type owner struct {
	other    bool // not the user of this process
	uid, gid uint32
	name     string
}

// chooseOwner picks the user for a data folder: the one it belongs to already,
// else postgres, else nobody. Only root can choose.
func chooseOwner(data string) (owner, error) {
	if os.Geteuid() != 0 {
		return owner{}, nil
	}
	if info, err := os.Stat(data); err == nil {
		if uid, gid := ownerOf(info); uid != 0 {
			return owner{other: true, uid: uid, gid: gid, name: userName(uid)}, nil
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(account.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(account.Gid, 10, 32)
		if err := errors.Join(errUID, errGID); err != nil {
			return owner{}, fmt.Errorf("look up user %s: %w", name, err)
		}
		return owner{other: true, uid: uint32(uid), gid: uint32(gid), name: name}, nil
	}
	return owner{}, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody to run it as")
}

func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if account, err := user.LookupId(id); err == nil {
		return account.Username
	}
	return id
}

// give hands a folder and all in it to the owner.
func (o owner) give(path string) error {
	if !o.other {
		return nil
	}
	return filepath.WalkDir(path, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(o.uid), int(o.gid))
	})
}

// giveFromRoot does give for a folder that was copied by root, and leaves any
// other alone: walking a foreign user's folder as root is best not done.
func (o owner) giveFromRoot(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if uid, _ := ownerOf(info); uid != 0 {
		return nil
	}
	return o.give(path)
}

// checkReach returns an error that names the first folder on the way to dir
// that the owner may not pass through.
func (o owner) checkReach(dir string) error {
	if !o.other {
		return nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("resolve the data folder: %w", err)
	}
	path := []string{real}
	for parent := filepath.Dir(real); parent != path[len(path)-1]; parent = filepath.Dir(parent) {
		path = append(path, parent)
	}
	slices.Reverse(path)
	for _, folder := range path {
		info, err := os.Stat(folder)
		if err != nil {
			return fmt.Errorf("check the way to the data folder: %w", err)
		}
		if !o.mayEnter(info) {
			return fmt.Errorf("user %s, which the database runs as, may not enter %s: run \"chmod o+x %s\" or choose another folder with --data",
				o.name, folder, folder)
		}
	}
	return nil
}

func (o owner) mayEnter(info fs.FileInfo) bool {
	uid, gid := ownerOf(info)
	switch mode := info.Mode().Perm(); {
	case uid == o.uid:
		return mode&0o100 != 0
	case gid == o.gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}

// makeFolder makes the data folder: private, but under root open for passing
// through, because the database's own folder inside belongs to another user.
func makeFolder(dir string) error {
	if exists(dir) {
		return nil
	}
	mode := fs.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711
	}
	// The mode is set again because the user's umask may take the passage away.
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, mode)); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	return nil
}
