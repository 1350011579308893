package view_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage/storagetest/memory"
	"sessionfs/sessioncore/view"
)

const weather = `{"type":"session","version":3,"id":"w","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/srv/weather","title":"Weather"}
{"type":"message","id":"a1","parentId":null,"message":{"role":"user","content":"Will it rain?"}}
{"type":"message","id":"a2","parentId":"a1","message":{"role":"assistant","content":[{"type":"text","text":"Rain is *likely*."}]}}
{"type":"message","id":"b1","parentId":"a1","message":{"role":"assistant","content":[{"type":"text","text":"It will snow."}]}}
`

// weatherSnapshot returns a snapshot of a session of two branches in memory.
func weatherSnapshot() *sessioncore.Snapshot {
	files := memory.New()
	const name = "weather/2026-02-16T10-20-30-000Z_w.jsonl"
	err := files.WriteFile(name, []byte(weather))
	if err != nil {
		log.Fatal(err)
	}
	snap, err := sessioncore.NewStore(files).Session(name).Acquire(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	return snap
}

// Two branches differ by their turns, not by times and ids.
func ExampleScreen_WriteDiff() {
	snap := weatherSnapshot()
	defer snap.Release()
	rain, err := snap.Find("a2")
	if err != nil {
		log.Fatal(err)
	}
	snow, err := snap.Find("b1")
	if err != nil {
		log.Fatal(err)
	}
	screen := &view.Screen{Writer: bufio.NewWriter(os.Stdout)}
	branches := [2]view.ShownBranch{
		{Session: snap, End: rain},
		{Session: snap, End: snow},
	}
	differs, err := screen.WriteDiff(context.Background(), [2]string{"rain", "snow"}, branches, true)
	if err != nil {
		log.Fatal(err)
	}
	err = screen.Flush()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(differs)
	// Output:
	// {"a":"rain","b":"snow","differ":true}
	// {"sign":"@@","text":"in common: 1 turn, to User · a1"}
	// {"sign":"-","text":"## Assistant · a2"}
	// {"sign":"+","text":"## Assistant · b1"}
	// {"sign":" ","text":""}
	// {"sign":"-","text":"Rain is *likely*."}
	// {"sign":"+","text":"It will snow."}
	// true
}

// A branch for a person, as Markdown. Times are those of the place.
func ExampleRender() {
	place := time.Local
	defer func() { time.Local = place }()
	time.Local = time.UTC
	snap := weatherSnapshot()
	defer snap.Release()
	rain, err := snap.Find("a2")
	if err != nil {
		log.Fatal(err)
	}
	links := view.Links{Entries: "entries/", Blobs: "../blobs/"}
	doc, err := view.Render(context.Background(), snap, rain, links)
	if err != nil {
		log.Fatal(err)
	}
	defer doc.Close()
	_, err = io.Copy(os.Stdout, io.NewSectionReader(doc, 0, doc.Size()))
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// # Weather
	//
	// Session `w` in `/srv/weather`, begun 2026-02-16 10:20:30 UTC.
	//
	// ## User · a1
	//
	// Will it rain?
	//
	// ## Assistant · a2
	//
	// Rain is *likely*.
}
