package search_test

import (
	"context"
	"fmt"
	"log"

	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

const weather = `{"type":"session","version":3,"id":"w","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/srv/weather","title":"Weather"}
{"type":"message","id":"a1","parentId":null,"timestamp":"2026-02-16T10:20:31.000Z","message":{"role":"user","content":"Will it rain?"}}
{"type":"message","id":"a2","parentId":"a1","timestamp":"2026-02-16T10:20:32.000Z","message":{"role":"assistant","content":[{"type":"text","text":"Rain is likely."}]}}
`

// A query finds the entries that have all its words. A word in lower case matches any case.
func ExampleSearcher_Search() {
	files := memory.New()
	err := files.WriteFile("weather/2026-02-16T10-20-30-000Z_w.jsonl", []byte(weather))
	if err != nil {
		log.Fatal(err)
	}
	query, err := search.ParseQuery(`rain -snow role:assistant`)
	if err != nil {
		log.Fatal(err)
	}
	searcher := search.New(search.SearchedSessions{Files: files, Limit: 10})
	result, err := searcher.Search(context.Background(), query)
	if err != nil {
		log.Fatal(err)
	}
	for _, hit := range result.Hits {
		fmt.Println(hit.Path())
		fmt.Println(hit.Entry, hit.Role, hit.Line)
	}
	// Output:
	// sessions/weather/2026-02-16T10-20-30-000Z_w/entries/a2.json
	// a2 assistant Rain is likely.
}
