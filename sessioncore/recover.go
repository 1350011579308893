package sessioncore

import "fmt"

// recoverTo turns a panic into an error: no file may take the process down (design.md section 7).
func recoverTo(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("panic while reading: %v", r)
	}
}
