package sessioncore_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// weather is a session of two branches: after the first answer the person asked twice.
const weather = `{"type":"session","version":3,"id":"w","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/srv/weather"}
{"type":"message","id":"a1","parentId":null,"timestamp":"2026-02-16T10:20:31.000Z","message":{"role":"user","content":"Hello"}}
{"type":"message","id":"a2","parentId":"a1","timestamp":"2026-02-16T10:20:32.000Z","message":{"role":"assistant","content":[{"type":"text","text":"Hello!"}]}}
{"type":"message","id":"b1","parentId":"a2","timestamp":"2026-02-16T10:20:33.000Z","message":{"role":"user","content":"Will it rain?"}}
{"type":"message","id":"c1","parentId":"a2","timestamp":"2026-02-16T10:20:34.000Z","message":{"role":"user","content":"Will it snow?"}}
`

// newStore returns a store of one session in memory, and its name. Files in a directory are storage/dir's.
func newStore() (store *sessioncore.Store, name string) {
	files := memory.New()
	name = "weather/2026-02-16T10-20-30-000Z_w.jsonl"
	err := files.WriteFile(name, []byte(weather))
	if err != nil {
		log.Fatal(err)
	}
	return sessioncore.NewStore(files), name
}

// The context of a session is what its agent sends to the model next: the branch that ends at the leaf.
func ExampleSnapshot_Context() {
	ctx := context.Background()
	store, name := newStore()
	defer store.Close()
	snap, err := store.Session(name).Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer snap.Release()
	leaf, err := snap.Leaf()
	if err != nil {
		log.Fatal(err)
	}
	doc, err := snap.Context(ctx, leaf, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer doc.Close()
	_, err = io.Copy(os.Stdout, io.NewSectionReader(doc, 0, doc.Size()))
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// {"messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":[{"type":"text","text":"Hello!"}]},{"role":"user","content":"Will it snow?"}],"thinkingLevel":"off","models":{"default":"undefined/undefined"},"injectedTtsrRules":[],"selectedMCPToolNames":[],"hasPersistedMCPToolSelection":false,"mode":"none"}
}

// A snapshot has the entries of all branches. A path leads to one of them from the first entry.
func ExampleSnapshot_Path() {
	store, name := newStore()
	defer store.Close()
	snap, err := store.Session(name).Acquire(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer snap.Release()
	fmt.Println(snap.Len(), "entries")
	rain, err := snap.Find("b1")
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range snap.Path(rain) {
		id, _ := snap.ID(e)
		text, err := snap.EntryText(e)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s %s\n", id, text.Member("message").Member("content"))
	}
	// Output:
	// 4 entries
	// a1 "Hello"
	// a2 [{"type":"text","text":"Hello!"}]
	// b1 "Will it rain?"
}
