package core

import (
	"encoding/base32"
	"encoding/binary"
	"hash/fnv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Shards is the number of shards that timers and runs are spread over. It is
// part of the stored data: changing it needs a migration.
const Shards = 64

// AllShards returns every shard, in order.
func AllShards() []int16 {
	out := make([]int16, Shards)
	for i := range out {
		out[i] = int16(i)
	}
	return out
}

// Forever is the sentinel of timers that will not fire: paused, completed and
// fired one-time schedules. It sorts behind every real time.
var Forever = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// ShardOf returns the shard of a schedule and of its runs, in [0, Shards).
func ShardOf(schedule uuid.UUID) int16 {
	return int16(Hash("shard", schedule) % Shards)
}

// Hash returns a hash of id that depends on purpose, so that a schedule's
// shard, spread and phase are independent of each other. It never changes
// between releases: offsets are promised to be stable.
func Hash(purpose string, id uuid.UUID) uint64 {
	h := fnv.New64a()
	h.Write([]byte(purpose)) // fnv never fails
	h.Write(id[:])
	// FNV's low bits are weak for keys that differ in few bits; this is the
	// finalizer of MurmurHash3.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// RunKey is the primary key of a run: where its timer lives, whose it is and
// which slot it stands for.
type RunKey struct {
	Region     string
	ScheduleID uuid.UUID
	// Slot is scheduled_for: a whole second for cron and intervals, never a
	// whole millisecond for manual runs. UTC, microseconds.
	Slot time.Time
}

// runIDVersion is the first byte of an encoded run id, so that a later form can
// be told apart.
const runIDVersion = 1

var runIDEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// ID returns the run's id as used in URLs, logs and signatures. It holds
// region, schedule and slot and needs no index of its own; it is no secret.
func (k RunKey) ID() string {
	b := make([]byte, 0, 1+16+8+len(k.Region))
	b = append(b, runIDVersion)
	b = append(b, k.ScheduleID[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(k.Slot.UnixMicro()))
	b = append(b, k.Region...)
	return "run_" + runIDEncoding.EncodeToString(b)
}

// ParseRunID is the reverse of RunKey.ID. Every failure is ErrNotFound, since
// an id that cannot be read names no run.
func ParseRunID(s string) (RunKey, error) {
	text, ok := strings.CutPrefix(s, "run_")
	if !ok || len(s) > 200 {
		return RunKey{}, ErrNotFound
	}
	b, err := runIDEncoding.DecodeString(text)
	if err != nil || len(b) < 26 || b[0] != runIDVersion {
		return RunKey{}, ErrNotFound
	}
	k := RunKey{
		Region: string(b[25:]),
		Slot:   time.UnixMicro(int64(binary.BigEndian.Uint64(b[17:25]))).UTC(),
	}
	copy(k.ScheduleID[:], b[1:17])
	if y := k.Slot.Year(); k.ID() != s || y < 1 || y >= Forever.Year() {
		return RunKey{}, ErrNotFound
	}
	return k, nil
}
