package direct_test

import (
	"fmt"
	iofs "io/fs"
	"log"
	"log/slog"

	"sessionfs/nodes"
	"sessionfs/nodes/direct"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// The nodes of a mount are an io/fs.FS, without a mount.
func ExampleNew() {
	stored := memory.New()
	const text = `{"type":"session","version":3,"id":"w","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/srv/weather"}`
	err := stored.WriteFile("weather/w.jsonl", []byte(text+"\n"))
	if err != nil {
		log.Fatal(err)
	}
	store := sessioncore.NewStore(stored)
	defer store.Close()
	quiet := slog.New(slog.DiscardHandler)
	above := nodes.NewDirectory(&nodes.View{Log: quiet})
	root := nodes.SourceName("", stored, store).Make(&above).(nodes.Dir)
	files := direct.New(root, quiet)

	items, err := files.ReadDir("weather")
	if err != nil {
		log.Fatal(err)
	}
	for _, item := range items {
		fmt.Println(item.Name(), item.IsDir())
	}
	read, err := iofs.ReadFile(files, "weather/w.jsonl")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(read) == text+"\n")
	// Output:
	// w true
	// w.jsonl false
	// true
}
