package secrets

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// pattern is a compiled rule, and which part of a text has to be looked at once one of its keywords is found.
type pattern struct {
	regex *regexp.Regexp
	// anchored says that every match begins with a keyword. The expression then begins with the byte before it.
	anchored bool
	// longest is the length in bytes of the longest match, or -1 if there is none.
	longest int
}

// anyBefore is how many rules begin: an attempt at each of 50 positions before the keyword, which changes neither
// whether there is a match nor what the secret is.
const anyBefore = `[\w.-]{0,50}?`

// longestValue is the length of the longest secret, in bytes, that is known by the name before it alone.
const longestValue = 16 << 10

func newPattern(text string, keywords []string) *pattern {
	named := false
	for _, begin := range []string{anyBefore + `(?i:` + anyBefore, `(?i)` + anyBefore} {
		if rest, ok := strings.CutPrefix(text, begin); ok {
			text, named = strings.ReplaceAll(begin, anyBefore, "")+rest, true
			break
		}
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		panic(err) // TestRules compiles all rules
	}
	p := &pattern{longest: longest(parsed)}
	if named && p.longest < 0 {
		p.longest = longestValue
	}
	begins, _ := beginnings(parsed)
	p.anchored = p.longest >= 0 && !slices.ContainsFunc(begins, func(begin string) bool {
		return !slices.ContainsFunc(keywords, func(word string) bool { return strings.HasPrefix(begin, word) })
	})
	if p.anchored {
		text = `\A(?s:.)(?:` + text + `)`
	}
	p.regex = regexp.MustCompile(text)
	return p
}

const (
	maxBeginnings = 64 // the most texts that beginnings returns
	enoughBytes   = 40 // no keyword is longer
	maxClass      = 8  // the most characters of a class that are taken one by one
)

// beginnings returns texts, in lower case, of which each match begins with one. exact says that they are the whole of it.
func beginnings(re *syntax.Regexp) (texts []string, exact bool) {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return []string{""}, true
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}, true
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				if len(texts) == maxClass {
					return []string{""}, false
				}
				texts = append(texts, strings.ToLower(string(r)))
			}
		}
		return texts, true
	case syntax.OpCapture:
		return beginnings(re.Sub[0])
	case syntax.OpQuest:
		texts, exact = beginnings(re.Sub[0])
		return append(slices.Clone(texts), ""), exact
	case syntax.OpPlus:
		texts, _ = beginnings(re.Sub[0])
		return texts, false
	case syntax.OpAlternate:
		exact = true
		for _, sub := range re.Sub {
			more, whole := beginnings(sub)
			texts, exact = append(texts, more...), exact && whole
		}
		return texts, exact
	case syntax.OpConcat:
		return concatBeginnings(re.Sub)
	}
	return []string{""}, false
}

func concatBeginnings(subs []*syntax.Regexp) ([]string, bool) {
	texts := []string{""}
	for _, sub := range subs {
		more, exact := beginnings(sub)
		if len(texts)*len(more) > maxBeginnings {
			return texts, false
		}
		var joined []string
		enough := true
		for _, a := range texts {
			for _, b := range more {
				joined = append(joined, a+b)
				enough = enough && len(a+b) >= enoughBytes
			}
		}
		texts = joined
		if !exact || enough {
			return texts, false
		}
	}
	return texts, true
}

// longest returns the length of the longest match in bytes, or -1 if there is none.
func longest(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		return 4 * len(re.Rune) // the other case of a letter can take more bytes
	case syntax.OpCharClass:
		if re.Rune[len(re.Rune)-1] < 0x80 {
			return 1
		}
		return 4
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 4
	case syntax.OpStar, syntax.OpPlus:
		return -1
	case syntax.OpRepeat:
		if re.Max < 0 {
			return -1
		}
		return times(longest(re.Sub[0]), re.Max)
	}
	sum, most := 0, 0
	for _, sub := range re.Sub {
		n := longest(sub)
		if n < 0 {
			return -1
		}
		sum, most = sum+n, max(most, n)
	}
	if re.Op == syntax.OpAlternate {
		return most
	}
	return sum
}

func times(length, n int) int {
	if length < 0 {
		return -1
	}
	return length * n
}
