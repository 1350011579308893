package rawjson

// eachVariant calls f for each way to skip blocks: the one that all machines have, and vectors if this one can.
func eachVariant(f func(variant string)) {
	defer func(use bool) { useVectors = use }(useVectors)
	if useVectors {
		f("vectors")
	}
	useVectors = false
	f("words")
}
