// Command picturerun prints a picture of a terminal with the first transcript of docs/cookbook.md. scripts/picture runs
// it, at the top of the project.
package main

import (
	"fmt"
	"os"
)

const cookbook = "docs/cookbook.md"

func main() {
	text, err := os.ReadFile(cookbook)
	if err == nil {
		var lines []string
		if lines, err = transcript(string(text)); err == nil {
			_, err = os.Stdout.WriteString(draw(lines))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}
