package history

import "testing"

// FuzzSearch: any text with a word in it has an answer of JSON lines, any other that or a reason.
func FuzzSearch(f *testing.F) {
	for _, text := range append(searches, "README.md", "git-commit", "*", "\"", "a AND", "prompt:x", "- NOT", "{a b}:c", "\x00", "\xff", "ſ\u0301", "NEAR(a b, 99999999999)", "fix)") {
		f.Add(text)
	}
	files := sound(f)
	f.Fuzz(func(t *testing.T, text string) {
		if answers := check(t, files, text); len(wordsOf(text)) > 0 && len(answers) != 1 {
			t.Fatalf("%q has words and no answer", text)
		}
	})
}

// FuzzDamage: files of any damage are read with an answer, or refused with a reason.
func FuzzDamage(f *testing.F) {
	for seed := range int64(8) {
		f.Add(seed, "fix")
	}
	good := sound(f)
	f.Fuzz(func(t *testing.T, seed int64, text string) { check(t, damaged(good, seed), "", text) })
}
