// Package served starts the file systems that benchrun measures and torturerun kills: a daemon, until its mount answers.
package served
