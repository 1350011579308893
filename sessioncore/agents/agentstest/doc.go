// Package agentstest tests converters of other agents' sessions: each state of a file that grows, and its conversion.
package agentstest
