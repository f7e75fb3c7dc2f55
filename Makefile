# Everything here works from a clean clone with Go, git, make and, for race and Python, a C
# compiler; the modules are fetched. "make test" is what CI runs.

GO       ?= go
FUZZTIME ?= 10s
STORM    ?= 10m

# Of a package. Tests that hang end by themselves; a machine may be busy.
TIMEOUT  ?= 30m
EMULATOR ?= $(shell command -v qemu-aarch64-static || command -v qemu-aarch64)

# The race detector runs where there is something to race: in the packages
# that use locks or atomics, themselves or in their tests.
RACE = $(GO) list -f '{{$$p := .ImportPath}}{{range .Imports}}{{$$p}} {{.}}{{"\n"}}{{end}}{{range .TestImports}}{{$$p}} {{.}}{{"\n"}}{{end}}{{range .XTestImports}}{{$$p}} {{.}}{{"\n"}}{{end}}' ./... \
	| awk '$$2 == "sync" || $$2 == "sync/atomic" { print $$1 }' | sort -u

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: ## train a small model on one node, then on four node processes
	$(GO) run ./cmd/godwit demo

.PHONY: test
test: lint ## everything that must hold: lint, all tests, examples, Python, storms, the race detector, arm64
	$(GO) test -timeout $(TIMEOUT) ./...
	$(MAKE) examples
	$(MAKE) python
	$(MAKE) preempt
	$(MAKE) storm STORM=30s
	$(MAKE) race
	$(MAKE) arm64

.PHONY: race
race: ## tests of the concurrent packages under the race detector
	@pkgs=$$($(RACE)) && test -n "$$pkgs" && set -x && $(GO) test -timeout $(TIMEOUT) -race $$pkgs

.PHONY: preempt
preempt: ## storms in which goroutines come between each other's steps, also atomic ones
	$(GO) vet -tags preempt ./internal/preempt ./internal/protocol ./node/... ./sim
	$(GO) test -timeout $(TIMEOUT) -tags preempt ./sim -run 'Interrupted|WithoutVerifying|WithoutTheTick'

# The packages whose arithmetic and bytes must be the same on all processors. An
# emulator is slow at signals and at threads that share memory, so goroutines are
# not preempted by signals there, and run on one processor.
.PHONY: arm64
arm64: ## build for arm64, and test there what must be equal, if an emulator is found
	GOARCH=arm64 CGO_ENABLED=0 $(GO) build ./...
	GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./internal/vec/...
	@if test "$$($(GO) env GOHOSTARCH)" = arm64; then \
		echo "tests for arm64 need no emulator here: they are the tests"; \
	elif test -z "$(EMULATOR)"; then \
		echo "SKIPPED: tests for arm64, as no emulator is found (Debian: qemu-user-static)"; \
	else \
		set -x; GOARCH=arm64 CGO_ENABLED=0 GODEBUG=asyncpreemptoff=1 $(GO) test -timeout $(TIMEOUT) -cpu 1 -exec "$(EMULATOR)" ./internal/vec ./internal/store ./internal/wire ./optim ./filter; \
	fi

.PHONY: lint
lint: ## gofmt, go vet, staticcheck, the kernels as their generator writes them
	@out=$$(gofmt -l .) && if test -n "$$out"; then echo "not gofmt-ed:"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	cd internal/vec/internal/gen && $(GO) vet . && $(GO) test .
	@check=$$($(GO) tool -n staticcheck) && set -x && cd storm && $(GO) vet . && $$check . && $(GO) test .
	@check=$$($(GO) tool -n staticcheck) && set -x && cd examples && $(GO) vet ./... && $$check ./...

# A module of its own, as programs that use Godwit are.
.PHONY: examples
examples: ## tests of the programs in examples/, in one process and as processes
	cd examples && $(GO) test -timeout $(TIMEOUT) ./...

# PYTHON= is a Python from 3.9 on. The tools come from pip, once: see python/make.sh.
.PHONY: wheel
wheel: ## the Python package for this platform, in python/dist
	GO="$(GO)" python/make.sh wheel

# Skipped, which it tells, where there is no Python with pip. GODWIT_TORCH=1 installs torch, too.
.PHONY: python
python: ## build the wheel, install it into a fresh environment and run its tests there
	GO="$(GO)" python/make.sh test

# A module of its own, which uses Godwit as a program would.
.PHONY: storm
storm: ## storms through the public API, in process and in processes, for STORM (10m)
	cd storm && $(GO) run . -duration $(STORM)

# To make inputs shorter that reached something new is left to few attempts: by
# default, most of the time goes into it.
.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (10s)
	@set -e; for pkg in $$($(GO) list ./...); do \
		targets=$$($(GO) test -run '^$$' -list '^Fuzz' $$pkg); \
		for target in $$(echo "$$targets" | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x $$pkg; \
		done; \
	done

.PHONY: mutate
mutate: ## break the code in some 300 places, one at a time: which do tests notice? (half an hour)
	$(GO) run ./internal/mutate

.PHONY: bench
bench: ## every benchmark once; compare runs with benchstat
	$(GO) test -run '^$$' -bench . -benchmem ./...

# The Debian package prometheus has both programs; PROMETHEUS= is their folder if it is not installed.
PROMETHEUS ?= $(dir $(shell command -v prometheus))

.PHONY: monitoring
monitoring: ## evaluate the dashboard's panels and the alerts by a real Prometheus
	@test -n "$(PROMETHEUS)" || { echo "there is no prometheus here: install it, or say where it is by PROMETHEUS=FOLDER"; exit 1; }
	GODWIT_PROMETHEUS="$(abspath $(PROMETHEUS))" $(GO) test -count 1 ./monitoring

# GATE= are flags of the gate, such as GATE="-match kge" or GATE=-write.
.PHONY: bench-gate
bench-gate: ## fail if four nodes take more processor time an example than they did (minutes)
	$(GO) run ./internal/gate $(GATE)

.PHONY: agree
agree: ## simulated epochs beside those of real processes behind a slower network (minutes, idle machine)
	$(GO) run ./internal/agree $(AGREE)

# INTERRUPT= are flags, such as INTERRUPT="-data fb15k-237".
.PHONY: interrupt
interrupt: ## what a run loses that is killed twice and resumed on fewer nodes, or loses a node (minutes)
	$(GO) run ./internal/interrupt $(INTERRUPT)

# RESULTS= names a part of a name: make results RESULTS=delay. What there is:
# go run ./internal/results -list
.PHONY: results
results: ## measure the figures of docs/results anew, or those that RESULTS names (hours)
	$(GO) run ./internal/results -match "$(RESULTS)"
