//go:build prove

package matching

func init() { differentialSeeds, marketMessages = 104, 200_000 }
