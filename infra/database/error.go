package database

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencepost/fencepost/core"
)

// retryable reports whether the database undid the work and asks to be asked
// again: serialization failures and deadlocks.
func retryable(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && (pe.Code == "40001" || pe.Code == "40P01")
}

// nameConstraint is the unique index that holds the names of living schedules.
const nameConstraint = "schedules_name_key"

// translate turns a driver's error into one of core's. SQLSTATE and constraint
// names decide, never the text.
func translate(doing string, err error) error {
	if err == nil {
		return nil
	}
	var pe *pgconn.PgError
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("%s: %w", doing, core.ErrNotFound)
	case neverSent(err): // first: a server that refuses connections answers in codes too
		return fmt.Errorf("%s: %w", doing, &core.Error{Code: core.CodeUnavailable, Kind: "database_unreachable", Message: "the database does not answer", Err: lastCause(err)})
	case errors.As(err, &pe):
		return fmt.Errorf("%s: %w", doing, translatePg(pe))
	case broken(err):
		return fmt.Errorf("%s: %w: %w", doing, core.ErrUnknownOutcome, err)
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}

func translatePg(pe *pgconn.PgError) error {
	switch {
	case pe.Code == "23505" && pe.ConstraintName == nameConstraint:
		return core.ErrNameTaken
	case pe.Code[:2] == "22" || pe.Code[:2] == "23":
		return fmt.Errorf("%w: %w", core.ErrBadRow, pe)
	case pe.Code == "40003", pe.Code[:2] == "08", pe.Code == "57P01", pe.Code == "57P02", pe.Code[:2] == "XX":
		return fmt.Errorf("%w: %w", core.ErrUnknownOutcome, pe)
	case retryable(pe), pe.Code == "57014", pe.Code == "55P03", pe.Code == "25P03", pe.Code == "57P03", pe.Code[:2] == "53":
		return &core.Error{Code: core.CodeUnavailable, Kind: "database_busy", Message: "the database is too busy; try again", Err: pe}
	default:
		return pe
	}
}

// lastCause drops what a connection error repeats for every address that it
// tried, and the user and database that it names each time.
func lastCause(err error) error {
	var ce *pgconn.ConnectError
	if !errors.As(err, &ce) {
		return err
	}
	cause := error(ce)
	for next := errors.Unwrap(cause); next != nil; next = errors.Unwrap(cause) {
		cause = next
	}
	if many, ok := cause.(interface{ Unwrap() []error }); ok && len(many.Unwrap()) > 0 {
		all := many.Unwrap()
		cause = all[len(all)-1]
	}
	return cause
}

// neverSent reports whether the statement cannot have reached the server.
func neverSent(err error) bool {
	var ce *pgconn.ConnectError
	return pgconn.SafeToRetry(err) || errors.As(err, &ce)
}

// broken reports whether the connection or its context ended while a statement
// may have been under way.
func broken(err error) bool {
	var ne net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &ne)
}

// maxTries bounds how often a statement that the database undid is sent again.
const maxTries = 10

// retry runs fn until it succeeds, fails for good, or was undone maxTries times.
// The gaps double from 5 ms, with equal jitter.
func (d *DB) retry(ctx context.Context, fn func() error) error {
	return d.retryIf(ctx, retryable, fn)
}

// retryRead is retry for what changes nothing: it is sent again, once more,
// after a broken connection too.
func (d *DB) retryRead(ctx context.Context, fn func() error) error {
	breaks := 0
	return d.retryIf(ctx, func(err error) bool {
		var pe *pgconn.PgError
		if ctx.Err() == nil && broken(err) && !errors.As(err, &pe) {
			breaks++
			return breaks == 1
		}
		return retryable(err)
	}, fn)
}

func (d *DB) retryIf(ctx context.Context, again func(error) bool, fn func() error) error {
	for n := 0; ; n++ {
		err := fn()
		if err == nil || !again(err) || n == maxTries-1 {
			return err
		}
		gap := min(time.Second, 5*time.Millisecond<<n)
		if serr := d.clock.Sleep(ctx, gap/2+rand.N(gap/2+1)); serr != nil {
			return errors.Join(serr, err)
		}
	}
}

// inTx runs fn in a transaction at the pool's isolation level and runs it again
// when the database undid it. An error of COMMIT that does not say that the
// transaction was undone is ErrUnknownOutcome: no error of COMMIT is dropped.
func (d *DB) inTx(ctx context.Context, fn func(pgx.Tx) error) error {
	return d.retry(ctx, func() error {
		tx, err := d.pool.Begin(ctx)
		if err != nil {
			return err
		}
		if err := fn(tx); err != nil {
			// The rollback's own error changes nothing: the server undoes an
			// open transaction when its connection ends.
			_ = tx.Rollback(context.WithoutCancel(ctx))
			return err
		}
		err = tx.Commit(ctx)
		if err == nil || retryable(err) || errors.Is(err, pgx.ErrTxCommitRollback) {
			return err
		}
		var pe *pgconn.PgError
		if errors.As(err, &pe) && (pe.Code[:2] == "22" || pe.Code[:2] == "23") {
			return err
		}
		return fmt.Errorf("%w: commit: %w", core.ErrUnknownOutcome, err)
	})
}
