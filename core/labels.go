package core

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The bounds of labels.
const (
	MaxLabels          = 32
	maxLabelKeyBytes   = 63
	maxLabelValueBytes = 200
)

// CheckLabels refuses labels that a selector could not name. A key has 1 to 63
// letters, digits, dots, dashes, underscores and slashes and begins with a letter
// or digit; a value has up to 200 bytes without commas and control characters.
func CheckLabels(labels map[string]string) error {
	if len(labels) > MaxLabels {
		return Invalid("labels", "has more than %d members", MaxLabels)
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if !isLabelKey(key) {
			return Invalid("labels", "has a key that is not 1 to %d letters, digits and . _ - / beginning with a letter or digit", maxLabelKeyBytes)
		}
		if !isLabelValue(labels[key]) {
			return Invalid("labels."+key, "must be at most %d bytes of text without commas and control characters", maxLabelValueBytes)
		}
	}
	return nil
}

func isLabelKey(key string) bool {
	if key == "" || len(key) > maxLabelKeyBytes || strings.ContainsRune("._-/", rune(key[0])) {
		return false
	}
	for _, r := range key {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-/", r) {
			return false
		}
	}
	return true
}

func isLabelValue(value string) bool {
	return len(value) <= maxLabelValueBytes && utf8.ValidString(value) && !strings.ContainsFunc(value, func(r rune) bool {
		return r == ',' || unicode.IsControl(r)
	})
}

// Selector chooses schedules by their labels: all of its conditions must hold.
// The zero value chooses all.
type Selector struct {
	Equal  map[string]string // labels that are there with this value
	Differ []Label           // labels that are not there with this value
	Has    []string          // keys that are there
	HasNot []string          // keys that are not
}

// Label is a key with a value.
type Label struct {
	Key, Value string
}

// ParseSelector reads conditions with commas between them: key=value, key!=value,
// key for one that is there, and !key for one that is not. Blanks around them do
// not count. The empty text chooses all; the errors are for the field labels.
func ParseSelector(text string) (Selector, error) {
	var s Selector
	if strings.TrimSpace(text) == "" {
		return s, nil
	}
	parts := strings.Split(text, ",")
	if len(parts) > MaxLabels {
		return s, Invalid("labels", "has more than %d conditions", MaxLabels)
	}
	for _, part := range parts {
		if !s.add(strings.TrimSpace(part)) {
			return Selector{}, Invalid("labels", "must be conditions such as team=payments,env!=test,owner,!legacy with commas between them")
		}
	}
	return s, nil
}

// add reads one condition.
func (s *Selector) add(part string) bool {
	key, value, hasValue := strings.Cut(part, "=")
	key, differs := strings.CutSuffix(key, "!")
	value, key = strings.TrimSpace(value), strings.TrimSpace(key)
	switch {
	case hasValue && (!isLabelKey(key) || !isLabelValue(value)):
		return false
	case hasValue && differs:
		s.Differ = append(s.Differ, Label{key, value})
	case hasValue:
		if s.Equal == nil {
			s.Equal = map[string]string{}
		}
		if old, ok := s.Equal[key]; ok && old != value {
			s.Has, s.HasNot = append(s.Has, key), append(s.HasNot, key) // no schedule has both
		}
		s.Equal[key] = value
	case differs:
		return false
	default:
		key, not := strings.CutPrefix(key, "!")
		if key = strings.TrimSpace(key); !isLabelKey(key) {
			return false
		}
		if not {
			s.HasNot = append(s.HasNot, key)
		} else {
			s.Has = append(s.Has, key)
		}
	}
	return true
}

// Matches reports whether the labels meet every condition.
func (s *Selector) Matches(labels map[string]string) bool {
	for key, value := range s.Equal {
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
	}
	for _, l := range s.Differ {
		if got, ok := labels[l.Key]; ok && got == l.Value {
			return false
		}
	}
	for _, key := range s.Has {
		if _, ok := labels[key]; !ok {
			return false
		}
	}
	for _, key := range s.HasNot {
		if _, ok := labels[key]; ok {
			return false
		}
	}
	return true
}

// Chooses reports whether the filter lets a schedule pass.
func (q *ScheduleQuery) Chooses(s *Scheduled) bool {
	return (len(q.States) == 0 || slices.Contains(q.States, s.State())) && (q.Queue == "" || q.Queue == s.Schedule.Job.Queue) &&
		strings.HasPrefix(s.Schedule.Name, q.NamePrefix) && q.Labels.Matches(s.Schedule.Labels)
}
