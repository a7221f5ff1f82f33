package schedules

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/uuid"

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
