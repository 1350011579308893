// Package postgrestest starts a PostgreSQL server for tests, which belongs to them alone.
package postgrestest
