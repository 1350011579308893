.PHONY: build test check package bench
build:; go build -o bin/sessionfs ./cmd/sessionfs
test:; scripts/test
check:; .ci/run --checks
package:; scripts/package
bench:; scripts/bench
