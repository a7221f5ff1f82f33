package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

func passwordPath(dataDir string) string { return filepath.Join(dataDir, "password") }
func portPath(dataDir string) string     { return filepath.Join(dataDir, "port") }

// readPassword returns the password of the folder, and makes one when fresh
// says that no database knows an older one.
func readPassword(dataDir string, fresh bool) (string, error) {
	path := passwordPath(dataDir)
	content, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(content)), nil
	}
	if !errors.Is(err, os.ErrNotExist) || !fresh {
		return "", fmt.Errorf("read the database password: %w", err)
	}
	password := rand.Text()
	if err := writeFile(path, password+"\n"); err != nil {
		return "", fmt.Errorf("keep the database password: %w", err)
	}
	return password, nil
}

func readPort(dataDir string) (int, error) {
	content, err := os.ReadFile(portPath(dataDir))
	if err != nil {
		return 0, fmt.Errorf("read the database port: %w", err)
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil || port < 1 || port > 65535 {
		return 0, fmt.Errorf("read the database port: %q is no port", content)
	}
	return port, nil
}

// choosePort returns the port of the last start when it is still free, so that
// addresses in other people's notes stay right, and otherwise a free one, which
// it writes down before any server listens on it.
func choosePort(ctx context.Context, dataDir string) (int, error) {
	if port, err := readPort(dataDir); err == nil {
		if _, err := listenable(ctx, port); err == nil {
			return port, nil
		}
	}
	port, err := listenable(ctx, 0)
	if err != nil {
		return 0, fmt.Errorf("choose a port: %w", err)
	}
	if err := writeFile(portPath(dataDir), strconv.Itoa(port)+"\n"); err != nil {
		return 0, fmt.Errorf("keep the database port: %w", err)
	}
	return port, nil
}

// listenable reports which port a listener got; port 0 asks for any free one.
func listenable(ctx context.Context, port int) (int, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return 0, err
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if err := listener.Close(); err != nil {
		return 0, err
	}
	if !ok {
		return 0, fmt.Errorf("unexpected address %s", listener.Addr())
	}
	return address.Port, nil
}

// writeFile puts a small private file in place whole or not at all, also when
// the machine crashes.
func writeFile(path, content string) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	_, err = file.WriteString(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err = os.Rename(file.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename in the folder durable.
func syncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
