package dbtest_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/infra/database/dbtest"
)

func TestMain(m *testing.M) {
	os.Exit(dbtest.Main(m, func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "create table note (text text); insert into note values ('from the template')")
		return errors.Join(err, conn.Close(ctx))
	}))
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Log(err)
		}
	})
	return conn
}

func texts(t *testing.T, conn *pgx.Conn, query string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestEachDatabaseIsItsOwn(t *testing.T) {
	t.Parallel()
	first, second := connect(t, dbtest.New(t)), connect(t, dbtest.New(t))
	if _, err := first.Exec(t.Context(), "insert into note values ('mine')"); err != nil {
		t.Fatal(err)
	}
	const query = "select text from note order by text"
	if diff := cmp.Diff([]string{"from the template", "mine"}, texts(t, first, query)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"from the template"}, texts(t, second, query)); diff != "" {
		t.Error(diff)
	}
}

func TestSerializable(t *testing.T) {
	t.Parallel()
	conn := connect(t, dbtest.Serializable(dbtest.New(t)))
	got := texts(t, conn, "select current_setting('transaction_isolation')")
	if diff := cmp.Diff([]string{"serializable"}, got); diff != "" {
		t.Error(diff)
	}
}
