COMMIT ?= $(shell git describe --tags --always --dirty 2>/dev/null || true)

.PHONY: help build demo cluster test smoke race prove faults sim fuzz chaos siege soak bench profile pictures lint vuln clean
.DEFAULT_GOAL := help

help: ## say what there is to make
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# A build by profile compiles everything again, the standard library too: a minute or two more, the first time.
PGO ?= auto

build: ## build bin/exchange, a static binary, optimised by cmd/exchange/default.pgo
	CGO_ENABLED=0 go build -pgo=$(PGO) -trimpath -buildvcs=false -ldflags "-X exchange/cmd/exchange/cli.commit=$(COMMIT)" -o bin/exchange ./cmd/exchange

demo: PGO = off
demo: build ## serve the demo's pairs on 127.0.0.1:8080, with its data in ./data
	bin/exchange serve --demo

cluster: PGO = off
cluster: build ## run three nodes of the demo on 127.0.0.1:8080, 8090 and 8100, with their data in ./data/cluster
	scripts/cluster

test: ## the gate, in minutes: check the form of the code and run its tests; needs Go alone
	scripts/test

smoke: ## the program as a whole, in minutes: both stores, three nodes, clients, a page; installs what it needs
	scripts/smoke

race: ## the packages in which goroutines meet, under the race detector; needs gcc
	GOFLAGS="-buildvcs=false -pgo=off -trimpath" go run ./prove/ring race

prove: ## everything, in hours, and docs/reliability.md; WHAT=chaos,faults chooses, SINCE=commit skips, a second run resumes
	scripts/prove

faults: ## print the planted faults, and the test that finds each
	go run -pgo=off ./prove/faults

# Names for parts of make prove: one seed again, a number of rounds, a longer time.
SEEDS ?= 400
SEED ?= 0
ROUNDS ?= full
DURATION ?= 10m
STORE ?= pebble

sim: ## play the engine under faults and crashes: SEEDS=n seeds, or SEED=n again
	go test -pgo=off -count=1 -timeout 0 -v -run '^TestSimulation$$' ./actors -sim.seeds=$(SEEDS) -sim.seed=$(SEED)

fuzz: ## try random inputs on all that reads from the network and from disks; FUZZTIME=1m of each
	scripts/fuzz

chaos: ## kill, stop and starve the exchange and its Redis; ROUNDS=n of each kind, or hundreds in all
	EXCHANGE_CHAOS=$(ROUNDS) scripts/chaos

siege: ## kill, stop, cut off, replace and upgrade the nodes of a cluster; ROUNDS=n of each kind, or 237 in all
	EXCHANGE_CHAOS=$(ROUNDS) go test -tags=prove -pgo=off -count=1 -timeout 0 -v -run '^TestClusterCampaign$$' ./prove/processes

soak: ## load an exchange for long, DURATION=10m on STORE=pebble (or redis), and fail on a stall above STALL=100ms or on growth
	DURATION=$(DURATION) STORE=$(STORE) scripts/soak

bench: ## measure the exchange: one table of values, ratios and aims, in minutes
	scripts/bench

profile: ## make cmd/exchange/default.pgo again, from a load on this machine
	scripts/profile

pictures: ## draw the README's picture of a report, from a load on this machine
	scripts/pictures

lint: ## check the form of the code: gofmt, go vet, staticcheck, scripts/tidy
	scripts/lint

vuln: ## look for known vulnerabilities in what the code reaches; says so (75) if their database cannot be asked
	scripts/vuln

clean: ## remove what was built; ./data stays
	rm -rf bin
