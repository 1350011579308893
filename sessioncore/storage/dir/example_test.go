package dir_test

import (
	"fmt"
	"io"
	"log"
	"os"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
)

// A file is replaced as a whole or not at all, and then only grows. A token tells its states apart.
func Example() {
	at, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(at)
	files, err := dir.Open(at)
	if err != nil {
		log.Fatal(err)
	}
	const name = "weather/notes.jsonl"
	created, err := files.Replace(name, storage.Replacement{Write: func(out io.Writer) error {
		_, err := io.WriteString(out, "{\"n\":1}\n")
		return err
	}})
	if err != nil {
		log.Fatal(err)
	}
	grown, err := files.Append(name, []byte("{\"n\":2}\n"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(grown.Size, "bytes in the same file:", grown.SameObject(created.Token))

	file, err := files.Open(name)
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	text := make([]byte, grown.Size)
	err = storage.ReadFull(file, text, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", text)
	// Output:
	// 16 bytes in the same file: true
	// {"n":1}
	// {"n":2}
}
