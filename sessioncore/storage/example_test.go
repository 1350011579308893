package storage_test

import (
	"fmt"
	"log"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// A token identifies a state of a file. A file that grew is the same object in another state; one that was replaced is
// another object.
func ExampleFiles() {
	files := memory.New()
	const name = "weather/notes.jsonl"
	err := files.WriteFile(name, []byte("{\"n\":1}\n"))
	if err != nil {
		log.Fatal(err)
	}
	first, err := files.Stat(name)
	if err != nil {
		log.Fatal(err)
	}
	grown, err := files.Append(name, []byte("{\"n\":2}\n"))
	if err != nil {
		log.Fatal(err)
	}
	err = files.WriteFile(name, []byte("{\"n\":3}\n"))
	if err != nil {
		log.Fatal(err)
	}
	replaced, err := files.Stat(name)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("grown: the same state:", grown.Token == first.Token, "the same object:", grown.SameObject(first.Token))
	fmt.Println("replaced: the same object:", replaced.SameObject(first.Token))

	items, err := storage.List(files, "weather")
	if err != nil {
		log.Fatal(err)
	}
	for _, item := range items {
		fmt.Println(item.Name, item.Kind == storage.KindFile)
	}
	const limit = 1 << 10
	text, err := storage.ReadFile(files, name, limit)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", text)
	// Output:
	// grown: the same state: false the same object: true
	// replaced: the same object: false
	// notes.jsonl true
	// {"n":3}
}
