package secrets

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"sessionfs/sessioncore/storage"
)

// settings is a rule file in the format of gitleaks. Fields without a use for sessions are parsed,
// so that they are no errors, and ignored.
type settings struct {
	Title, Description, MinVersion string
	Extend                         struct {
		UseDefault    bool
		Path, URL     string
		DisabledRules []string
	}
	Rules      []ruleText
	Allowlist  allowText
	Allowlists []allowText
}

type ruleText struct {
	ID, Description, Regex, Path string
	Entropy                      float64
	SecretGroup                  int
	Keywords, Tags               []string
	SkipReport                   bool
	Required                     []map[string]any
	Allowlist                    allowText
	Allowlists                   []allowText
}

type allowText struct {
	Description, Condition, RegexTarget             string
	Commits, Paths, Regexes, Stopwords, TargetRules []string
}

func (a allowText) needsAll() bool {
	return strings.EqualFold(a.Condition, "AND") || a.Condition == "&&"
}

func (s *settings) allowlists() []allowText { return append(s.Allowlists, s.Allowlist) }

const (
	// maxFile bounds the size of a rule file in bytes. The file of gitleaks has 100 KB.
	maxFile = 8 << 20
	// minKeyword is the length in bytes of the shortest keyword and stopword.
	minKeyword = 2
)

// Read returns the known rules and the rules of the named file, or only the known ones for "". A rule
// of the file replaces a known one with its id.
func Read(name string) (*Rules, error) {
	if name == "" {
		return Known(), nil
	}
	text, err := storage.ReadNamed(name, maxFile)
	if err != nil {
		return nil, err
	}
	rules, err := Known().withFile(string(text))
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return rules, nil
}

// withFile returns the rules together with the rules of a rule file, given as text, without the known rules that
// it disables. The error tells which rule cannot be used.
func (set *Rules) withFile(file string) (*Rules, error) {
	s, err := parse(file)
	if err != nil {
		return nil, err
	}
	var rules []*rule
	for i, text := range s.Rules {
		if text.Regex == "" && text.Path != "" {
			continue // it matches names of files only
		}
		err := text.check()
		if err != nil {
			return nil, fmt.Errorf("rule %q%s: %w", text.ID, lineOfRule(file, i, len(s.Rules)), err)
		}
		rules = append(rules, newRule(text))
	}
	for _, list := range s.allowlists() {
		err := list.check()
		if err != nil {
			return nil, err
		}
	}
	isDisabled := func(r *rule) bool {
		return slices.Contains(s.Extend.DisabledRules, r.id)
	}
	enabled := slices.DeleteFunc(slices.Clone(set.rules), isDisabled)
	rest := &Rules{allow: set.allow, rules: enabled}
	return rest.with(rules, s.allowlists()), nil
}

// parse decodes a rule file, given as text. An unknown key is an error, as are references to other files.
func parse(file string) (*settings, error) {
	var s settings
	meta, err := toml.Decode(file, &s)
	unknown := meta.Undecoded()
	switch {
	case err != nil:
		return nil, errors.New(strings.TrimPrefix(err.Error(), "toml: "))
	case len(unknown) > 0:
		return nil, fmt.Errorf("%s is not known here", unknown[0])
	case s.Extend.Path != "" || s.Extend.URL != "":
		return nil, errors.New("extend.path and extend.url are not followed: put those rules into this file")
	}
	return &s, nil
}

// check returns an error if the rule cannot be used.
func (r ruleText) check() error {
	regex, err := regexp.Compile(r.Regex)
	switch {
	case err != nil:
		return wrongRegexp(err)
	case r.ID == "":
		return errors.New("it has no id")
	case r.Regex == "":
		return errors.New("it has no regex; what is no secret for a known rule goes into an [[allowlists]] with " +
			"targetRules")
	case r.SecretGroup < 0 || r.SecretGroup > regex.NumSubexp():
		return fmt.Errorf("its regex has %d groups, and secretGroup is %d", regex.NumSubexp(), r.SecretGroup)
	case regex.MatchString(""):
		return errors.New("its regex matches an empty text")
	case r.Required != nil:
		return errors.New("it needs matches of other rules (required), which are not looked for")
	}
	for _, list := range append(r.Allowlists, r.Allowlist) {
		err := list.check()
		if err != nil {
			return err
		}
	}
	return nil
}

// check returns an error if the list cannot be used.
func (a allowText) check() error {
	for _, text := range a.Regexes {
		_, err := regexp.Compile(text)
		if err != nil {
			return fmt.Errorf("allowlist: %w", wrongRegexp(err))
		}
	}
	isShort := func(word string) bool {
		return len(word) < minKeyword
	}
	if slices.ContainsFunc(a.Stopwords, isShort) {
		return fmt.Errorf("allowlist: a stopword has at least %d letters", minKeyword)
	}
	if !a.needsAll() && !slices.Contains([]string{"", "or", "||"}, strings.ToLower(a.Condition)) {
		return fmt.Errorf("allowlist: the condition is %q, not AND or OR", a.Condition)
	}
	if !slices.Contains([]string{"", "secret", "match", "line"}, a.RegexTarget) {
		return fmt.Errorf("allowlist: regexTarget is %q, not secret, match or line", a.RegexTarget)
	}
	return nil
}

var ruleHeader = regexp.MustCompile(`(?m)^[ \t]*\[\[[ \t]*rules[ \t]*\]\]`)

// lineOfRule returns " (line N)" for rule i of a file with so many rules, or "" if not every rule
// has a header of its own.
func lineOfRule(file string, i, rules int) string {
	headers := ruleHeader.FindAllStringIndex(file, -1)
	if len(headers) != rules {
		return ""
	}
	headerStart := headers[i][0]
	line := strings.Count(file[:headerStart], "\n") + 1
	return fmt.Sprintf(" (line %d)", line)
}

// wrongRegexp returns the error of an expression without the words of its package.
func wrongRegexp(err error) error {
	return errors.New(strings.TrimPrefix(err.Error(), "error parsing regexp: "))
}
