// Package sqstest gives tests an SQS of their own, because what a batch that was
// taken in part or a visibility timeout means is decided by the service.
//
// It is fauxqs, pinned in the folder of that name, which npm installs into the
// user's cache at the first use. Where node or npm is missing the tests that need
// it are skipped, but fail where CI or FENCEPOST_CI is set.
package sqstest

import (
	"bufio"
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/infra/clock"
)

const (
	installTimeout = 4 * time.Minute
	startTimeout   = 30 * time.Second

	// Region is the one that the emulator pretends to be in.
	Region = "us-east-1"
	// KeyID and Secret are credentials that it takes, as it takes any.
	KeyID, Secret = "test", "test"
)

//go:embed fauxqs
var files embed.FS

var errMissing = errors.New("node 20 or later, and npm, are needed for the SQS of the tests")

// emulator is started by the first test that needs it, once in a process.
var emulator = sync.OnceValues(func() (*server, error) { return start("0") })

// server is the running emulator. It ends when the pipe to it closes, which the
// system does when the tests end in whatever way.
type server struct {
	address string
	pipe    io.WriteCloser
	ended   func() error // waits for that
}

// Endpoint returns the emulator's address and starts it if need be. It is safe to
// call from parallel tests.
func Endpoint(tb testing.TB) string {
	tb.Helper()
	s, err := emulator()
	switch {
	case errors.Is(err, errMissing) && os.Getenv("CI") == "" && os.Getenv("FENCEPOST_CI") == "":
		tb.Skipf("sqstest: %v", err)
	case err != nil:
		tb.Fatalf("sqstest: %v", err)
	}
	return s.address
}

// Config returns what a client of the SQS at the address needs.
func Config(address string) aws.Config {
	return aws.Config{
		Region: Region, BaseEndpoint: &address,
		Credentials: credentials.NewStaticCredentialsProvider(KeyID, Secret, ""),
	}
}

// NewQueue makes a queue that nobody else uses, with the given attributes, and
// returns its URL.
func NewQueue(tb testing.TB, attributes map[string]string) string {
	tb.Helper()
	return CreateQueue(tb, Endpoint(tb), "q-"+uuid.NewString(), attributes)
}

// CreateQueue makes a queue in the emulator at an address, and returns its URL.
func CreateQueue(tb testing.TB, address, name string, attributes map[string]string) string {
	tb.Helper()
	out, err := awssqs.NewFromConfig(Config(address)).CreateQueue(tb.Context(), &awssqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		tb.Fatalf("sqstest: make a queue: %v", err)
	}
	return *out.QueueUrl
}

// start starts an emulator on a port, 0 for a free one.
func start(port string) (*server, error) {
	dir, err := install(context.Background())
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("node", "serve.mjs", port)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the emulator: %w", err)
	}
	if file, ok := out.(*os.File); ok { // as all pipes of os/exec are
		_ = file.SetReadDeadline((clock.System{}).Now().Add(startTimeout)) // at worst the test's own limit ends it
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the emulator did not say its port: %w", err), pipe.Close())
	}
	return &server{address: "http://127.0.0.1:" + strings.TrimSpace(said), pipe: pipe, ended: cmd.Wait}, nil
}

// install returns the folder that the emulator is installed in. Several processes
// may install at once: the first to end wins.
func install(ctx context.Context) (string, error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("%w: %w", errMissing, err)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	contents, hash, err := pinned()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "fencepost", "fauxqs-"+hash)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("make a folder for the emulator: %w", err)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "installing-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the emulator: %w", err)
	}
	defer os.RemoveAll(fresh) //nolint:errcheck // it is gone if all went well
	for name, content := range contents {
		if err := os.WriteFile(filepath.Join(fresh, name), content, 0o644); err != nil {
			return "", fmt.Errorf("write the emulator's files: %w", err)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, installTimeout, errors.New("npm took too long"))
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	npm.Dir = fresh
	if out, err := npm.CombinedOutput(); err != nil {
		return "", fmt.Errorf("install the emulator: %w\n%s", err, out)
	}
	if err := os.Rename(fresh, dir); err != nil {
		if _, there := os.Stat(dir); there != nil {
			return "", fmt.Errorf("keep the emulator: %w", err)
		}
	}
	return dir, nil
}

// pinned returns the emulator's files by name, and a hash over them.
func pinned() (map[string][]byte, string, error) {
	entries, err := files.ReadDir("fauxqs")
	if err != nil {
		return nil, "", err
	}
	contents := map[string][]byte{}
	sum := sha256.New()
	for _, e := range entries { // in order of their names
		content, err := files.ReadFile("fauxqs/" + e.Name())
		if err != nil {
			return nil, "", err
		}
		contents[e.Name()] = content
		fmt.Fprintf(sum, "%s %d\n%s", e.Name(), len(content), content)
	}
	return contents, fmt.Sprintf("%x", sum.Sum(nil)[:8]), nil
}
