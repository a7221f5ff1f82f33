package check

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Schedule is what the API shows of one, as far as the rules need it.
type Schedule struct {
	ID           string     `json:"id"`
	Name         string     `json:"name"`
	Spec         string     `json:"spec"`
	TimeZone     string     `json:"time_zone"`
	Anchor       *time.Time `json:"anchor,omitempty"`
	Misfire      string     `json:"misfire"`
	MisfireGrace string     `json:"misfire_grace"`
	MisfireCap   int        `json:"misfire_cap"`
	Overlap      string     `json:"overlap"`
	Window       string     `json:"window"`
	Exact        bool       `json:"exact"`
	State        string     `json:"state"`
}

// Run is a row of history, as the API shows it.
type Run struct {
	ID           string          `json:"id"`
	ScheduleID   string          `json:"schedule_id"`
	ScheduledFor time.Time       `json:"scheduled_for"`
	State        string          `json:"state"`
	Cause        string          `json:"cause"`
	Reason       string          `json:"reason,omitempty"`
	RangeFrom    *time.Time      `json:"range_from,omitempty"`
	Attempt      int             `json:"attempt"`
	MaxAttempts  int             `json:"max_attempts"`
	Fence        int64           `json:"fence"`
	CreatedAt    time.Time       `json:"created_at"`
	StartedAt    *time.Time      `json:"started_at,omitempty"`
	FinishedAt   *time.Time      `json:"finished_at,omitempty"`
	Result       json.RawMessage `json:"result,omitempty"`
}

// final reports whether nothing follows.
func (r *Run) final() bool {
	return r.State == "succeeded" || r.State == "dead" || r.State == "canceled" || r.State == "skipped"
}

// The kinds of operations.
const (
	Create  = "create"
	Edit    = "edit"
	Pause   = "pause"
	Resume  = "resume"
	Delete  = "delete"
	Trigger = "trigger"
	Cancel  = "cancel"
	Redrive = "redrive"
)

// Operation is a call of the API.
type Operation struct {
	Kind     string    `json:"kind"`
	Schedule string    `json:"schedule"`
	Run      string    `json:"run,omitempty"`
	Begin    time.Time `json:"begin"`
	End      time.Time `json:"end"`
	// Answered says that an answer came; without one it may have happened, at any time
	// since Begin. OK says that it was not refused.
	Answered bool `json:"answered"`
	OK       bool `json:"ok"`
	// After is the schedule as a create or an edit left it.
	After *Schedule `json:"after,omitempty"`
}

// Execution is one attempt, as the job itself wrote it down.
type Execution struct {
	Run      string    `json:"run"`
	Schedule string    `json:"schedule"`
	Slot     time.Time `json:"slot"`
	Attempt  int       `json:"attempt"`
	Fence    int64     `json:"fence"`
	Begin    time.Time `json:"begin"`
	// End is zero if the job never came to it. Failed says that it ended badly, and
	// HandedBack that it was cut off for its executor's sake.
	End        time.Time `json:"end"`
	Failed     bool      `json:"failed,omitempty"`
	HandedBack bool      `json:"handed_back,omitempty"`
}

// Fault is what was done to the installation.
type Fault struct {
	Kind  string    `json:"kind"`
	Node  string    `json:"node,omitempty"`
	Begin time.Time `json:"begin"`
	Heal  time.Time `json:"heal"`
}

// Page is one walk through the list of a schedule's runs.
type Page struct {
	Schedule string    `json:"schedule"`
	Begin    time.Time `json:"begin"`
	Runs     []string  `json:"runs"`
}

// History is all that is known of a test.
type History struct {
	// Start and End bound what is judged.
	Start, End time.Time
	Operations []Operation
	Executions []Execution
	Faults     []Fault
	Runs       []Run
	Pages      []Page
}

// files are the logs of a folder, one JSON document a line.
func (h *History) files() map[string]func(line []byte) error {
	return map[string]func([]byte) error{
		"operations.jsonl": appendTo(&h.Operations), "executions.jsonl": appendTo(&h.Executions), "faults.jsonl": appendTo(&h.Faults),
		"runs.jsonl": appendTo(&h.Runs), "pages.jsonl": appendTo(&h.Pages),
	}
}

func appendTo[T any](to *[]T) func([]byte) error {
	return func(line []byte) error {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			return err
		}
		*to = append(*to, v)
		return nil
	}
}

// Read reads the logs of a folder; one that is missing is empty. The times that are
// judged are the caller's to set.
func Read(dir string) (*History, error) {
	h := &History{}
	for name, add := range h.files() {
		if err := readLines(filepath.Join(dir, name), add); err != nil {
			return nil, err
		}
	}
	return h, nil
}

func readLines(path string, add func([]byte) error) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		if err := add(lines.Bytes()); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	return lines.Err()
}

// Write writes the logs into a folder, as Read takes them.
func (h *History) Write(dir string) error {
	return errors.Join(
		writeLines(filepath.Join(dir, "operations.jsonl"), h.Operations), writeLines(filepath.Join(dir, "executions.jsonl"), h.Executions),
		writeLines(filepath.Join(dir, "faults.jsonl"), h.Faults), writeLines(filepath.Join(dir, "runs.jsonl"), h.Runs),
		writeLines(filepath.Join(dir, "pages.jsonl"), h.Pages),
	)
}

func writeLines[T any](path string, all []T) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriter(f)
	lines := json.NewEncoder(out)
	for i := range all {
		if err := lines.Encode(&all[i]); err != nil {
			return err
		}
	}
	return out.Flush()
}
