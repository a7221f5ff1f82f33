package memory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fencepost/fencepost/core"
)

// The checks below refuse what the database's types and constraints do.

func bad(what string) error { return fmt.Errorf("%w: %s", core.ErrBadRow, what) }

// checkText refuses what is no text for the database.
func checkText(texts ...string) error {
	for _, s := range texts {
		if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			return bad("a text is not UTF-8 or holds NUL")
		}
	}
	return nil
}

// checkJSON refuses what is no JSON for the database, which cannot keep a NUL.
func checkJSON(b json.RawMessage) error {
	if !json.Valid(b) || !utf8.Valid(b) || holdsNUL(b) {
		return bad("a value is not JSON or holds NUL")
	}
	return nil
}

// holdsNUL looks for the escape of NUL: six characters after an even number of
// backslashes.
func holdsNUL(b []byte) bool {
	escape := []byte(`\u0000`)
	for i := bytes.Index(b, escape); i >= 0; {
		before := len(b[:i]) - len(bytes.TrimRight(b[:i], `\`))
		if before%2 == 0 {
			return true
		}
		next := bytes.Index(b[i+1:], escape)
		if next < 0 {
			return false
		}
		i += 1 + next
	}
	return false
}

// checkContent refuses a schedule that the database cannot even read.
func checkContent(s *core.Schedule) error {
	if err := checkText(s.Name, s.Spec, s.TimeZone, s.Job.Queue); err != nil {
		return err
	}
	for key, value := range s.Labels {
		if err := checkText(key, value); err != nil {
			return err
		}
	}
	return checkJSON(s.Job.Payload)
}

// checkSchedule refuses a schedule that breaks a constraint.
func checkSchedule(s *core.Schedule) error {
	switch {
	case !slices.Contains([]core.Misfire{"run_once", "skip", "run_all"}, s.Misfire):
		return bad("misfire is unknown")
	case !slices.Contains([]core.Overlap{"skip", "allow", "queue_one", "cancel_previous"}, s.Overlap):
		return bad("overlap is unknown")
	case !slices.Contains([]core.DSTGap{core.DSTGapAuto, core.DSTGapRunAfter, core.DSTGapSkip}, s.DSTGap):
		return bad("the gap policy is unknown")
	case !slices.Contains([]core.DSTOverlap{core.DSTOverlapAuto, core.DSTOverlapFirst, core.DSTOverlapBoth}, s.DSTOverlap):
		return bad("the overlap policy of clock changes is unknown")
	case s.MaxAttempts < 1:
		return bad("max attempts is not positive")
	}
	return nil
}

// checkRowTexts refuses rows whose texts the database cannot even read.
func checkRowTexts(rows []core.PlannedRow) error {
	for _, r := range rows {
		if err := checkText(string(r.Cause), string(r.Reason), r.Queue); err != nil {
			return err
		}
	}
	return nil
}

// checkRows refuses rows that break a constraint of runs.
func checkRows(rows []core.PlannedRow) error {
	for _, r := range rows {
		if !slices.Contains([]core.Cause{core.CauseSchedule, core.CauseCatchUp, core.CauseManual, "backfill"}, r.Cause) {
			return bad("a run's cause is unknown")
		}
	}
	return nil
}
