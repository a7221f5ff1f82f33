package manifest

import (
	"encoding/json"
	"fmt"
)

// SetLabel marks the schedules that a file's set owns.
const SetLabel = "fencepost.io/set"

// own returns a schedule's body with the label of its set.
func own(body json.RawMessage, set string) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, fmt.Errorf("label a schedule: %w", err)
	}
	all := map[string]json.RawMessage{}
	if text, ok := fields["labels"]; ok {
		if err := json.Unmarshal(text, &all); err != nil || all == nil {
			return body, nil // the API says what is wrong with it
		}
	}
	name, err := json.Marshal(set)
	if err != nil {
		return nil, fmt.Errorf("label a schedule: %w", err)
	}
	if len(all) == 0 && fields["labels"] == nil && len(fields) > 0 { // keep the order of the file
		return append(body[:len(body)-1:len(body)-1], []byte(`,"labels":{"`+SetLabel+`":`+string(name)+`}}`)...), nil
	}
	all[SetLabel] = name
	if fields["labels"], err = json.Marshal(all); err != nil {
		return nil, fmt.Errorf("label a schedule: %w", err)
	}
	return json.Marshal(fields)
}
