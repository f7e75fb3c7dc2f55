# Everything here works from a clean clone with Go, git, make and, for race and Python, a C
# compiler; the modules are fetched. "make test" is what CI runs.

GO       ?= go
FUZZTIME ?= 10s
STORM    ?= 10m

# Of a package. Tests that hang end by themselves; a machine may be busy.
TIMEOUT  ?= 30m
EMULATOR ?= $(shell command -v qemu-aarch64-static || command -v qemu-aarch64)

# Tests that wait, for leases and deadlines of processes, leave the cores to others. What "make lint" vets is not vetted again.
CORES   := $(shell getconf _NPROCESSORS_ONLN)
AT_ONCE ?= -vet=off -p $(shell expr $(CORES) + 1) -parallel $(shell expr $(CORES) \* 2)

# The race detector runs where there is something to race: in the packages
# that use locks or atomics, themselves or in their tests. In the protocol and in a
# simulation one goroutine runs at a time (several simulations do in storms), the
# tests of train/task train with one worker, and those of cmd/godwit and of the tools agree, mutate and straggle run processes that are built without the detector.
SINGLE = internal/protocol|sim|train/task|cmd/godwit|internal/agree|internal/mutate|internal/straggle
RACE = $(GO) list -f '{{$$p := .ImportPath}}{{range .Imports}}{{$$p}} {{.}}{{"\n"}}{{end}}{{range .TestImports}}{{$$p}} {{.}}{{"\n"}}{{end}}{{range .XTestImports}}{{$$p}} {{.}}{{"\n"}}{{end}}' ./... \
	| awk '$$2 == "sync" || $$2 == "sync/atomic" { print $$1 }' | grep -vE '/($(SINGLE))$$' | sort -u

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: ## train a small model on one node, then on four node processes
	$(GO) run ./cmd/godwit demo

.PHONY: test
test: ## everything that must hold: lint, all tests, the page in a browser, examples, Python, storms, the race detector, arm64
	$(MAKE) -j2 beside meanwhile

# Tests of Python leave processors idle while their processes wait for each other, and so do
# linkers, the emulator and the browser: two rows of targets fill the gaps of each other.
.PHONY: beside meanwhile
beside:
	$(MAKE) python
	$(MAKE) preempt
	$(MAKE) arm64
	$(MAKE) examples

meanwhile:
	$(MAKE) lint
	$(GO) test $(AT_ONCE) -timeout $(TIMEOUT) ./...
	$(MAKE) monitoring
	$(MAKE) dashboard
	$(MAKE) storm STORM=20s
	$(MAKE) race

.PHONY: race
race: ## tests of the concurrent packages under the race detector
	@pkgs=$$($(RACE)) && test -n "$$pkgs" && set -x && $(GO) test $(AT_ONCE) -timeout $(TIMEOUT) -race $$pkgs
	$(GO) test -timeout $(TIMEOUT) -race ./sim -run 'StormsKeepAllPromises$$' -seeds 200

.PHONY: preempt
preempt: ## storms in which goroutines come between each other's steps, also atomic ones
	$(GO) vet -tags preempt ./internal/preempt ./internal/protocol ./node/... ./sim
	$(GO) test -timeout $(TIMEOUT) -tags preempt ./node/internal/link
	$(GO) test -timeout $(TIMEOUT) -tags preempt ./sim -run 'Interrupted|WithoutVerifying|WithoutTheTick'

# The packages whose arithmetic and bytes must be the same on all processors. An
# emulator is slow at signals and at threads that share memory, so goroutines are
# not preempted by signals there, and run on one processor.
.PHONY: arm64
arm64: ## build nodes and benchmarks for arm64, and test there what must be equal, if an emulator is found
	GOARCH=arm64 CGO_ENABLED=0 $(GO) build . ./internal/bench
	GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./internal/vec/...
	@if test "$$($(GO) env GOHOSTARCH)" = arm64; then \
		echo "tests for arm64 need no emulator here: they are the tests"; \
	elif test -z "$(EMULATOR)"; then \
		echo "SKIPPED: tests for arm64, as no emulator is found (Debian: qemu-user-static)"; \
	else \
		set -x; GOARCH=arm64 CGO_ENABLED=0 GODEBUG=asyncpreemptoff=1 $(GO) test -timeout $(TIMEOUT) -cpu 1 -exec "$(EMULATOR)" ./internal/vec ./internal/store ./internal/wire ./optim ./filter && \
		GOARCH=arm64 CGO_ENABLED=0 GODEBUG=asyncpreemptoff=1 $(GO) test -timeout $(TIMEOUT) -cpu 1 -exec "$(EMULATOR)" -run 'FirstValues' .; \
	fi

.PHONY: lint
lint: ## gofmt, go vet, staticcheck, the kernels as their generator writes them
	@out=$$(gofmt -l .) && if test -n "$$out"; then echo "not gofmt-ed:"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	GOGC=400 $(GO) tool staticcheck ./...
	cd internal/vec/internal/gen && $(GO) vet . && $(GO) test .
	@check=$$($(GO) tool -n staticcheck) && set -x && cd storm && $(GO) vet . && $$check . && $(GO) test .
	@check=$$($(GO) tool -n staticcheck) && set -x && cd examples && $(GO) vet ./... && $$check ./...
	@check=$$($(GO) tool -n staticcheck) && set -x && cd dashboard/browser && $(GO) vet . && $$check .

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

# The page needs neither node nor a browser to be built; its checks do. BROWSER= is a Chromium (Debian:
# chromium), PICTURES= a folder for pictures of each view. What is missing is told, and its check skipped.
BROWSER  ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)
PICTURES ?=

.PHONY: page
page: ## check the types of the dashboard's page, and that the libraries in it are those of its package.json
	@if command -v npm >/dev/null; then \
		set -ex; cd dashboard/browser; npm install --silent --no-package-lock; node_modules/.bin/tsc -p .; \
		cmp node_modules/uplot/dist/uPlot.esm.js ../page/vendor/uPlot.esm.js; cmp node_modules/uplot/dist/uPlot.min.css ../page/vendor/uPlot.min.css; \
		cmp node_modules/uplot/dist/uPlot.d.ts ../page/vendor/uPlot.esm.d.ts; cmp node_modules/uplot/LICENSE ../page/vendor/LICENSE.uPlot; \
	else \
		echo "SKIPPED: the types of the dashboard's page and axe-core, as there is no npm (Debian: npm)"; \
	fi

.PHONY: dashboard
dashboard: page ## look at the dashboard in a headless Chromium, too
	@if test -z "$(BROWSER)"; then \
		echo "SKIPPED: the dashboard in a browser, as there is no Chromium (Debian: chromium)"; \
	else \
		set -x; cd dashboard/browser && GODWIT_BROWSER="$(BROWSER)" GODWIT_AXE="$$(ls node_modules/axe-core/axe.min.js 2>/dev/null)" GODWIT_PICTURES="$(PICTURES)" \
			$(GO) test -count 1 -timeout $(TIMEOUT) .; \
	fi

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
	@if test -z "$(PROMETHEUS)"; then \
		echo "SKIPPED: panels and alerts by a real Prometheus, as there is none (Debian: prometheus; or say where it is by PROMETHEUS=FOLDER)"; \
	else \
		set -x; GODWIT_PROMETHEUS="$(abspath $(PROMETHEUS))" $(GO) test -count 1 ./monitoring; \
	fi

# SEEDS= is how many runs of each ill, of pairs and of health.
SEEDS ?= 20

.PHONY: diagnose
diagnose: ## simulate runs with each ill that "godwit diagnose" knows, and without: is the right one found, and does its advice help? (minutes)
	SEEDS=$(SEEDS) $(GO) test -count 1 -timeout 30m ./telemetry/diagnose

# HEALTHY= are flags, such as HEALTHY="-rounds 10 -nodes 4".
.PHONY: healthy
healthy: ## train every task on this machine, and count how often "godwit diagnose" finds an ill all the same (minutes)
	$(GO) run ./internal/healthy $(HEALTHY)

# OVERHEAD= are flags, such as OVERHEAD="-base ../old/godwit -with= -limit 1.02" for what is on by default.
.PHONY: overhead
overhead: ## what tracing costs an epoch on four nodes, by pairs of runs, with the 95 % interval (an hour, idle machine)
	$(GO) run ./internal/overhead $(OVERHEAD)

# GATE= are flags of the gate, such as GATE="-match kge" or GATE=-write.
.PHONY: bench-gate
bench-gate: ## fail if four nodes take more processor time an example than they did (minutes)
	$(GO) run ./internal/gate $(GATE)

# PEERS= are flags, such as PEERS="--rows mf,lda --runs 3".
PYTHON ?= python3
.PHONY: peers
peers: ## one node beside PyTorch, PyKEEN, LIBMF, tomotopy, gensim, xLearn, Vowpal Wabbit, liblinear and NumPy (minutes, idle machine)
	$(GO) build -o bench/peers/.godwit ./cmd/godwit
	test -d bench/peers/.venv || $(PYTHON) -m venv bench/peers/.venv
	bench/peers/.venv/bin/pip install -q -r bench/peers/requirements.txt
	-USER=peers bench/peers/.venv/bin/pip install -q -r bench/peers/requirements-built.txt
	bench/peers/.venv/bin/python bench/peers/peers.py --godwit bench/peers/.godwit $(PEERS)

.PHONY: agree
agree: ## simulated epochs beside those of real processes behind a slower network (minutes, idle machine)
	$(GO) run ./internal/agree $(AGREE)

# INTERRUPT= are flags, such as INTERRUPT="-data fb15k-237".
.PHONY: interrupt
interrupt: ## what a run loses that is killed twice and resumed on fewer nodes, or loses a node (minutes)
	$(GO) run ./internal/interrupt $(INTERRUPT)

# STRAGGLE= are flags, such as STRAGGLE="-data fb15k-237 -period 10ms".
.PHONY: straggle
straggle: ## what a node costs a run that gets half the processor time of the others (minutes, as root)
	$(GO) run ./internal/straggle $(STRAGGLE)

# RESULTS= is a regular expression of names: make results RESULTS=delay. What there is:
# go run ./internal/results -list
.PHONY: results
results: ## measure the figures of docs/results anew, or those that RESULTS names (hours)
	$(GO) run ./internal/results -match "$(RESULTS)"
