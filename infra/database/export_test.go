package database

// Statements returns the embedded statements by name.
func Statements() (map[string]string, error) { return loadStatements(nil) }

// MigrationFiles is the embedded folder of migrations.
var MigrationFiles = migrationFiles

// Reads tells whether a statement is sent again after a broken connection.
func Reads(text string) bool { return statements{"it": text}.reads("it") }
