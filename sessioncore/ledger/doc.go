// Package ledger keeps the charges of other agents' sessions in a file of the user, so that a bill reads no
// session again that did not change. The file has ids, times, models and tokens of answers: no words, no paths,
// and no money, as prices change. It is a cache: to delete it is always right, and one that is damaged, or of
// another program, is empty.
package ledger
