package claimer

import (
	"sync"

	"github.com/fencepost/fencepost/core"
)

// maxUnknown bounds the backlog. The runs of a claim that is left out wait for
// their dispatch lease.
const maxUnknown = 100_000

// backlog keeps the moves of claims whose outcome is unknown while the database
// does not answer. The zero value is empty; it is safe for concurrent use.
type backlog struct {
	mu    sync.Mutex
	moves []core.Move
}

func (b *backlog) add(moves []core.Move) {
	b.mu.Lock()
	defer b.mu.Unlock()
	room := maxUnknown - len(b.moves)
	b.moves = append(b.moves, moves[:min(len(moves), room)]...)
}

// some returns the first moves, as many as one look-up takes.
func (b *backlog) some() []core.Move {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.moves[:min(len(b.moves), readChunk)]
}

// drop removes the first n moves. Only the one who took them with some does.
func (b *backlog) drop(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.moves = b.moves[n:]
}
