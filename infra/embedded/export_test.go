package embedded

import "context"

// The pure parts, for tests that need no server.
var (
	ParsePostgresVersion = parsePostgresVersion
	DefaultDataDirFor    = defaultDataDir
	SearchDirs           = searchDirs
	ReadTail             = readTail
	QuoteLog             = quoteLog
)

// ServerProcesses lists the processes of the PostgreSQL server in a data
// folder.
func ServerProcesses(ctx context.Context, dataDir string) []int {
	return runningIn(ctx, "postgres", postgresData(dataDir))
}

// PostgresArgs are the arguments of a PostgreSQL server.
func PostgresArgs(c Config, port int) []string { return newPostgres(c, programs{}).args(port) }

// CockroachArgs are the arguments of a CockroachDB server.
func CockroachArgs(c Config, port int) []string { return (&cockroach{config: c}).args(port) }

// DockerArgs are the arguments of docker for a new container.
func DockerArgs(c Config, password string, port int) []string {
	return (&docker{config: c, image: dockerImage, password: password}).runArgs(port)
}
