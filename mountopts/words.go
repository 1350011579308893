package mountopts

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// CheckValues refuses a command line in which an option would take another option for its value.
// Without it `--all --redact` would write, unmasked, into a directory of the name --redact. A
// value that begins with a dash is joined to its option; "-" alone is a value.
func CheckValues(flags *pflag.FlagSet, args []string) error {
	var waiting *pflag.Flag
	for _, word := range args {
		isOption := len(word) > 1 && word[0] == '-'
		switch {
		case waiting != nil && isOption:
			return missingValue(waiting, word)
		case waiting != nil:
			waiting = nil
		case word == "--":
			return nil
		case isOption:
			waiting = takesNextWord(flags, word)
		}
	}
	return nil
}

// takesNextWord returns the option in a word whose value is the next word, nil if there is none. As
// in pflag, a word is --name, --name=value, or -abc, where the first letter with a value takes the
// rest of the word.
func takesNextWord(flags *pflag.FlagSet, word string) *pflag.Flag {
	if name, isLong := strings.CutPrefix(word, "--"); isLong {
		flag := flags.Lookup(name)
		if flag == nil || flag.NoOptDefVal != "" {
			return nil
		}
		return flag
	}
	letters := word[1:]
	for at := range len(letters) {
		flag := flags.ShorthandLookup(letters[at : at+1])
		if flag == nil {
			return nil
		}
		if flag.NoOptDefVal != "" {
			continue
		}
		if at < len(letters)-1 {
			return nil
		}
		return flag
	}
	return nil
}

// missingValue words the refusal of a command line in which an option stands in the place of the
// value of another one.
func missingValue(flag *pflag.Flag, word string) error {
	value, _ := pflag.UnquoteUsage(flag)
	said := fmt.Sprintf("--%s needs %s, but %s begins with a dash", flag.Name, value, word)
	if value == "DIR" || value == "FILE" {
		return fmt.Errorf("%s; a %s of that name is written ./%s or --%s=%[3]s", said, value, word, flag.Name)
	}
	return fmt.Errorf("%s; such a value is written --%s=%s", said, flag.Name, word)
}
