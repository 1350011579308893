package writer_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage/storagetest/memory"
	"sessionfs/sessioncore/writer"
)

// A writer chooses the id, the parent and the time of an entry that has none. It refuses what a client of the
// session could not read.
func ExampleWriter_Append() {
	ctx := context.Background()
	files := memory.New()
	const name = "weather/2026-02-16T10-20-30-000Z_w.jsonl"
	const header = `{"type":"session","version":3,"id":"w","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/srv/weather"}`
	err := files.WriteFile(name, []byte(header+"\n"))
	if err != nil {
		log.Fatal(err)
	}
	store := sessioncore.NewStore(files)
	defer store.Close()
	w := writer.New(store, writer.Options{Journal: files})
	session := store.Session(name)

	ids, err := w.Append(ctx, session, []byte(`{"type":"message","message":{"role":"user","content":"Will it rain?"}}`))
	if err != nil {
		log.Fatal(err)
	}
	_, err = w.Append(ctx, session, []byte(`{"type":"message"}`))
	fmt.Println(errors.Is(err, sessioncore.ErrInvalid), err)

	snap, err := session.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer snap.Release()
	leaf, err := snap.Leaf()
	if err != nil {
		log.Fatal(err)
	}
	id, _ := snap.ID(leaf)
	fmt.Println(snap.Len(), "entry; the leaf is the appended one:", id == ids[0])
	// Output:
	// true not a valid entry: message: expected an object, found none
	// 1 entry; the leaf is the appended one: true
}
