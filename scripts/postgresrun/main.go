// Command postgresrun starts a PostgreSQL server of its own for a script, prints the URL of its database, and ends it when
// its input ends. Its status is 3 where PostgreSQL is not installed.
package main

import (
	"fmt"
	"io"
	"os"

	"sessionfs/sessioncore/storage/postgres/postgrestest"
)

func main() {
	server, err := postgrestest.Start("fsync=off")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		if postgrestest.IsMissing(err) {
			os.Exit(3)
		}
		os.Exit(1)
	}
	defer server.Close()
	fmt.Println(server.URL("postgres"))
	_, _ = io.Copy(io.Discard, os.Stdin)
}
