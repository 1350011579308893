package mountopts

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// CheckValues refuses a command line if an option would take another option for its value.
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

// takesNextWord returns the option in a word that has the next word as its value, nil if there is none. As
// in pflag, a word is --name, --name=value, or -abc, where the first letter with a value takes the
// rest of the word.
func takesNextWord(flags *pflag.FlagSet, word string) *pflag.Flag {
	name, isLong := strings.CutPrefix(word, "--")
	if isLong {
		flag := flags.Lookup(name)
		if flag == nil || hasNoValue(flag) {
			return nil
		}
		return flag
	}
	letters := word[1:]
	for i := range len(letters) {
		flag := flags.ShorthandLookup(letters[i : i+1])
		if flag == nil {
			return nil
		}
		if hasNoValue(flag) {
			continue
		}
		isLast := i == len(letters)-1
		if !isLast {
			return nil
		}
		return flag
	}
	return nil
}

// hasNoValue reports whether a flag stands alone, as pflag sees it.
func hasNoValue(flag *pflag.Flag) bool { return flag.NoOptDefVal != "" }

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

// InWords returns an error of pflag in the words of this program, and any other error as it is.
func InWords(flags *pflag.FlagSet, err error) error {
	unknown, isUnknown := errors.AsType[*pflag.NotExistError](err)
	missing, isMissing := errors.AsType[*pflag.ValueRequiredError](err)
	wrong, isWrong := errors.AsType[*pflag.InvalidValueError](err)
	nameless, isNameless := errors.AsType[*pflag.InvalidSyntaxError](err)
	switch {
	case isUnknown:
		return unknownOption(flags, unknown)
	case isMissing:
		flag := missing.GetFlag()
		value, _ := pflag.UnquoteUsage(flag)
		return fmt.Errorf("--%s needs %s, and nothing stands behind it", flag.Name, value)
	case isWrong:
		return wrongValue(wrong)
	case isNameless:
		return fmt.Errorf("%s is no option: a name is missing", nameless.GetSpecifiedFlag())
	}
	return err
}

// unknownOption words the refusal of an option that does not exist, and names the nearest one.
func unknownOption(flags *pflag.FlagSet, unknown *pflag.NotExistError) error {
	letters := unknown.GetSpecifiedShortnames()
	name := unknown.GetSpecifiedName()
	if letters == name {
		return fmt.Errorf("there is no option -%s", name)
	}
	if letters != "" {
		return fmt.Errorf("there is no option -%c, in -%s", name[0], letters)
	}
	nearest := ""
	least := len(name)/3 + 1 // letters that differ
	flags.VisitAll(func(f *pflag.Flag) {
		differ := distance(name, f.Name)
		if strings.HasPrefix(f.Name, name) {
			differ = 0
		}
		if !f.Hidden && differ < least {
			least = differ
			nearest = "; did you mean --" + f.Name + "?"
		}
	})
	return fmt.Errorf("there is no option --%s%s", name, nearest)
}

// wrongValue words the refusal of a value that an option does not take.
func wrongValue(wrong *pflag.InvalidValueError) error {
	flag := wrong.GetFlag()
	needs := "needs a whole number"
	switch {
	case flag.Value.Type() == "bool":
		return fmt.Errorf("--%s takes no value, and %q is one", flag.Name, wrong.GetValue())
	case errors.Is(wrong, strconv.ErrRange):
		needs = "needs a smaller number"
	case flag.Value.Type() == "uint":
		needs = "needs a whole number, 0 or more"
	}
	return fmt.Errorf("--%s %s, not %q", flag.Name, needs, wrong.GetValue())
}

// distance returns how many letters must be put in, left out or replaced to make one word of
// another (the distance of Levenshtein).
func distance(from, to string) int {
	row := make([]int, len(to)+1) // row[j] is the distance of from[:i] and to[:j], first for i = 0
	for j := range row {
		row[j] = j
	}
	for i := range len(from) {
		diagonal := row[0] // the distance of from[:i] and to[:j]
		row[0] = i + 1
		for j := range len(to) {
			replaced := diagonal
			if from[i] != to[j] {
				replaced++
			}
			inserted := row[j] + 1
			leftOut := row[j+1] + 1
			diagonal = row[j+1]
			row[j+1] = min(replaced, inserted, leftOut)
		}
	}
	return row[len(to)]
}
