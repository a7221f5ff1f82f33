package core

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
)

// MessageVersion is the form of the messages that this release writes.
const MessageVersion = 1

// Message tells an executor that a run is ready. It holds no job: the start
// statement reads the newest one. Messages may be lost, doubled and late.
type Message struct {
	Key   RunKey
	Fence int64
	// Tenant is whose run it is, for queues within a process. It is not written,
	// and so zero in messages that came from outside.
	Tenant uuid.UUID
}

type wireMessage struct {
	Version int    `json:"v"`
	Run     string `json:"run"`
	Fence   int64  `json:"fence"`
}

// MarshalJSON writes {"v":1,"run":"run_...","fence":65536}.
func (m Message) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireMessage{MessageVersion, m.Key.ID(), m.Fence})
}

// UnmarshalJSON refuses versions that this release does not know.
func (m *Message) UnmarshalJSON(b []byte) error {
	var w wireMessage
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("decode message: %w", err)
	}
	if w.Version != MessageVersion {
		return fmt.Errorf("message version %d is not %d", w.Version, MessageVersion)
	}
	key, err := ParseRunID(w.Run)
	if err != nil {
		return fmt.Errorf("decode message: %w", err)
	}
	m.Key, m.Fence = key, w.Fence
	return nil
}

// Publisher is the claimer's end of the queue. Implementations are safe for
// concurrent use.
type Publisher interface {
	// Publish hands messages to the named queue and returns how many were
	// taken, from the front of msgs. Fewer than len(msgs) comes with an error:
	// ErrQueueFull if there was no room. It blocks only until ctx is done and
	// keeps no reference to msgs.
	Publish(ctx context.Context, queue string, msgs []Message) (int, error)
}

// Consumer is the executor's end of the queue. Implementations are safe for
// concurrent use.
type Consumer interface {
	// Receive returns between 1 and max deliveries of the named queue. It
	// waits for the first until ctx is done and then returns ctx's cause.
	Receive(ctx context.Context, queue string, max int) ([]Delivery, error)
	// Done says that the runs of these deliveries need no further delivery:
	// started and ended, or not startable.
	Done(ctx context.Context, ds []Delivery) error
}

// Delivery is one receipt of a message. Receiving the same message again is
// another delivery.
type Delivery struct {
	Message
	// Token names this delivery. Start writes it as the run's holder, so that
	// a start sent again recognizes its own row.
	Token uuid.UUID
	// Receipt is the queue's own handle; empty where it needs none.
	Receipt string
	// Permits are those that Start is to take for the run, one of each limit that
	// it is under.
	Permits []Permit
}
