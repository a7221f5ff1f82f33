package schedules

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/fencepost/fencepost/core"
)

// Origin is where what a request makes gets its ids from: from the reservation of
// the request's idempotency key, so that the request makes the same, however often
// it is sent.
type Origin struct {
	reservation core.Reservation
	tenant      uuid.UUID
}

// Reserve reserves a request's idempotency key; core.ErrKeyReused if it stands for
// another request.
func (s *Service) Reserve(ctx context.Context, tenant uuid.UUID, r core.Request) (Origin, error) {
	got, err := s.store.Reserve(ctx, tenant, r)
	for n := 0; n < 2 && errors.Is(err, core.ErrUnknownOutcome); n++ { // it may be sent again
		got, err = s.store.Reserve(ctx, tenant, r)
	}
	switch {
	case err != nil:
		return Origin{}, fmt.Errorf("reserve idempotency key: %w", err)
	case got.Body != r.Body:
		return Origin{}, core.ErrKeyReused
	}
	return Origin{got, tenant}, nil
}

// ID returns the id of the schedule at an index of the request: a UUIDv7 of the
// reservation's time and the index, the rest of it a hash.
func (o Origin) ID(index int) (uuid.UUID, error) {
	sum := sha256.New()
	sum.Write(o.reservation.Key[:]) // a hash never fails
	sum.Write(o.tenant[:])
	sum.Write(binary.BigEndian.AppendUint64(nil, uint64(index)))
	id := uuid.UUID(sum.Sum(nil)[:16])
	at := binary.BigEndian.AppendUint64(nil, uint64(o.reservation.At.UnixMilli()))
	copy(id[:6], at[2:])
	binary.BigEndian.PutUint16(id[6:8], uint16(index)&0x0fff) // ids sort as the request has them
	id[6] = id[6]&0x0f | 0x70                                 // version 7
	id[8] = id[8]&0x3f | 0x80                                 // variant of RFC 9562
	return id, nil
}

// CreateOnce is Create for a request with an idempotency key: sent again it makes
// nothing and returns what it made, with again set. core.ErrMadeAndDeleted if that
// is gone.
func (s *Service) CreateOnce(ctx context.Context, tenant uuid.UUID, f Fields, r core.Request) (made core.Scheduled, again bool, err error) {
	o, err := s.Reserve(ctx, tenant, r)
	if err != nil {
		return core.Scheduled{}, false, err
	}
	id, err := o.ID(0)
	if err != nil {
		return core.Scheduled{}, false, err
	}
	return s.once(ctx, tenant, id, f)
}

// once creates a schedule of this id, or finds it as it is by now.
func (s *Service) once(ctx context.Context, tenant, id uuid.UUID, f Fields) (made core.Scheduled, again bool, err error) {
	made, err = s.store.Get(ctx, tenant, id)
	if !errors.Is(err, core.ErrNotFound) {
		return made, err == nil, err
	}
	made, err = s.create(ctx, tenant, id, f)
	if errors.Is(err, core.ErrNotFound) { // its tombstone stood in the way
		err = core.ErrMadeAndDeleted
	}
	return made, false, err
}

// made is the result of an item that cannot be created: it may have been when the
// request was sent before.
func (m *many) made(ctx context.Context, it *item, refusal error) Result {
	if m.o.ID != nil {
		made, err := m.store.Get(ctx, m.tenant, it.id)
		if !errors.Is(err, core.ErrNotFound) {
			return Result{Scheduled: made, Outcome: Created, Again: err == nil, Err: err}
		}
	}
	return Result{Err: refusal}
}

// recall looks again at items whose specs were refused: a time that has passed had
// not when the request was sent before.
func (m *many) recall(ctx context.Context, items []*item) {
	var group errgroup.Group
	group.SetLimit(writesAtOnce)
	for _, it := range items {
		refusal := m.results[it.index].Err
		if ce := (*core.Error)(nil); !errors.As(refusal, &ce) || ce.Field != "spec" {
			continue
		}
		group.Go(func() error {
			m.results[it.index] = m.made(ctx, it, refusal)
			return nil
		})
	}
	_ = group.Wait() // the results have the errors
}

// createEach settles the items that two rounds could not: their ids are taken, by
// what the request made when it was sent before and what has been renamed or
// deleted since. It returns those whose names are taken all the same.
func (m *many) createEach(ctx context.Context, items []*item) []*item {
	var group errgroup.Group
	group.SetLimit(writesAtOnce)
	for _, it := range items {
		group.Go(func() error {
			made, again, err := m.once(ctx, m.tenant, it.id, it.fields)
			m.results[it.index] = Result{Scheduled: made, Outcome: Created, Again: again, Err: err}
			return nil
		})
	}
	_ = group.Wait() // the results have the errors
	return slices.DeleteFunc(items, func(it *item) bool { return !errors.Is(m.results[it.index].Err, core.ErrNameTaken) })
}
