package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
	"github.com/fencepost/fencepost/infra/database"
	"github.com/fencepost/fencepost/local/terminal"
)

// keyLimit bounds the making of a key in a database.
const keyLimit = 30 * time.Second

func newKeys(a *app) *cobra.Command {
	cmd := group("keys", "Make, list and revoke API keys", newKeysCreate(a), newKeysList(a), newKeysRevoke(a))
	addJSON(cmd)
	return cmd
}

// keyOptions are the flags of keys create.
type keyOptions struct {
	scopes              []string
	expiresIn           string
	url, region, tenant string
}

func newKeysCreate(a *app) *cobra.Command {
	var o keyOptions
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make an API key and print its secret, this once",
		Long: `Make an API key. Its secret goes to standard output, alone, and is shown this
once; what else there is to say goes to standard error.

The key belongs to the tenant of the key that asks for it, which needs the scope
admin. Whoever has access to the database needs none: with --tenant, the key is
stored in the database of --database-url or DATABASE_URL, which fencepost migrate
has prepared. "new" makes a tenant; the tenant of fencepost up is
` + api.DefaultTenant + `.`,
		Example: `  KEY=$(fencepost keys create deploy --scope write --expires-in 90d)
  fencepost keys create first --scope admin --tenant new --database-url postgres://user@host/fencepost`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(o.scopes) == 0 {
				return usageError("--scope must name some of %s", strings.Join(core.Scopes(), ", "))
			}
			if o.tenant == "" && o.url != "" {
				return usageError(`--database-url goes with --tenant, which is an id or "new"`)
			}
			if o.tenant != "" {
				return a.storeKey(cmd, args[0], o)
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			made, err := c.CreateKey(cmd.Context(), api.KeyInput{Name: args[0], Scopes: o.scopes, ExpiresIn: o.expiresIn})
			if err != nil {
				return err
			}
			return a.showSecret(cmd, made, "")
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.scopes, "scope", nil, "what it may do: some of "+strings.Join(core.Scopes(), ", "))
	f.StringVar(&o.expiresIn, "expires-in", "", "how long it works, such as 90d (default until it is revoked)")
	f.StringVar(&o.tenant, "tenant", "", `store it in the database for the tenant of this id, or "new"`)
	f.StringVar(&o.url, "database-url", "", "postgres:// URL, with --tenant (default $DATABASE_URL)")
	f.StringVar(&o.region, "region", "local", "region in which the key works, with --tenant")
	return cmd
}

// storeKey makes a key without asking an API.
func (a *app) storeKey(cmd *cobra.Command, name string, o keyOptions) error {
	if o.url == "" {
		o.url = a.Getenv("DATABASE_URL")
	}
	if o.url == "" {
		return usageError("--tenant needs --database-url or DATABASE_URL")
	}
	key := core.APIKey{Name: name, Scopes: o.scopes}
	var err error
	if o.tenant == "new" {
		key.TenantID, err = uuid.NewV7()
	} else if key.TenantID, err = uuid.Parse(o.tenant); err != nil || key.TenantID == uuid.Nil {
		return usageError(`--tenant must be "new" or an id such as %s`, api.DefaultTenant)
	}
	if err == nil && o.expiresIn != "" {
		key.ExpiresIn, err = core.ParseDuration(o.expiresIn)
		if err != nil || key.ExpiresIn == 0 {
			return usageError(`--expires-in must be a duration such as "90d"`)
		}
	}
	if err == nil {
		err = key.Check()
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), keyLimit, errors.New("making the key took too long"))
	defer cancel()
	db, err := database.Open(ctx, database.Config{URL: o.url, Region: o.region, MaxConns: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer db.Close()
	made, err := api.IssueKey(ctx, db, key)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	return a.showSecret(cmd, made, key.TenantID.String())
}

// showSecret prints a fresh key. Only its secret goes to standard output.
func (a *app) showSecret(cmd *cobra.Command, k api.CreatedKey, tenant string) error {
	said := fmt.Sprintf("made %s (%s) with the scopes %s", k.ID, k.Name, strings.Join(k.Scopes, ", "))
	if tenant != "" {
		said += " for the tenant " + tenant
	}
	if k.ExpiresAt != nil {
		said += "; it expires at " + showTime(k.ExpiresAt)
	}
	if _, err := fmt.Fprintln(a.Err, terminal.Printable(said+"; its secret is shown this once")); err != nil {
		return err
	}
	if asJSON(cmd) {
		return a.printJSON(k)
	}
	_, err := fmt.Fprintln(a.Out, k.Secret)
	return err
}

func newKeysList(a *app) *cobra.Command {
	var page client.Page
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List API keys, oldest first, without their secrets",
		Example: "  fencepost keys list",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkPage(page); err != nil {
				return err
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			found, err := c.Keys(cmd.Context(), page)
			if err != nil {
				return err
			}
			if asJSON(cmd) {
				return a.printJSON(found)
			}
			return a.printKeys(found)
		},
	}
	addPage(cmd.Flags(), &page)
	return cmd
}

func (a *app) printKeys(found api.List[api.Key]) error {
	rows := make([][]string, len(found.Items))
	for i, k := range found.Items {
		state := k.State
		if k.Current {
			state += " (this one)"
		}
		rows[i] = []string{k.ID, shortText(k.Name), strings.Join(k.Scopes, ","), state, showTime(&k.CreatedAt), showTime(k.ExpiresAt), showTime(k.LastUsedAt)}
	}
	if err := a.printTable([]string{"ID", "NAME", "SCOPES", "STATE", "CREATED", "EXPIRES", "LAST USED"}, rows); err != nil {
		return err
	}
	return a.more(found.NextCursor)
}

func newKeysRevoke(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke KEY",
		Short: "Revoke an API key for good, by its id",
		Long: `Revoke an API key for good, by its id. It works for 10 s more in processes that
have just seen it. The key that makes the request cannot be revoked with itself.`,
		Example: "  fencepost keys revoke key_0123456789abcdef",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			if err := c.RevokeKey(cmd.Context(), args[0]); err != nil || asJSON(cmd) {
				return err // the API answers with nothing
			}
			return a.say(cmd, nil, "revoked %s", args[0])
		},
	}
}
