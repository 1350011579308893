// Command postgresrun starts a PostgreSQL server of its own for a script, prints the URL of its database, and ends it when
// its input ends. With arguments it measures what a team costs such a server instead (scripts/team). Its status is 3 where
// PostgreSQL is not installed.
package main

import (
	"fmt"
	"io"
	"os"

	"sessionfs/sessioncore/storage/postgres/postgrestest"
)

// exitNone is the status where there is no PostgreSQL.
const exitNone = 3

func main() {
	settings := []string{"fsync=off"}
	if len(os.Args) > 1 {
		settings = append(settings, "max_connections=1000", "shared_buffers=256MB")
	}
	server, err := postgrestest.Start(settings...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		if postgrestest.IsMissing(err) {
			os.Exit(exitNone)
		}
		os.Exit(1)
	}
	defer server.Close()
	if len(os.Args) > 1 {
		measureTeam(server, os.Args[2:])
		return
	}
	fmt.Println(server.URL("postgres"))
	_, _ = io.Copy(io.Discard, os.Stdin)
}
