# Everything here works on a fresh machine with Go and either PostgreSQL's
# programs, Docker, or a DATABASE_URL.

GO ?= go
BIN := bin/fencepost
# Packages tested at once. Each database package starts a server of its own.
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help run test check bench soak chaos mutants fmt build

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## Start everything on 127.0.0.1:8080, with sample schedules at the first start
	@exec $(BIN) up --allow-exec

test: ## Run all tests, on a real database
	$(GO) test -count=1 -p $(JOBS) -timeout 10m ./...

check: ## Format, vet and module files, without changing any
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "gofmt would change (make fmt does it):"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) mod tidy -diff
	$(GO) mod verify

bench: ## Run the benchmarks; pipe two runs into benchstat to compare them
	$(GO) test -run '^$$' -bench . -benchmem ./core/...

DURATION ?= 10m
CHAOS ?= 2m
soak: ## Play new simulated histories, and take all orders of small ones, for DURATION each
	FENCEPOST_SOAK=$(DURATION) $(GO) test -count=1 -v -timeout 0 -run 'TestHistories|TestModel$$' ./core/simtest ./core/modeltest

chaos: ## Kill, freeze and cut off real processes for CHAOS, then judge what came of it
	FENCEPOST_CHAOS=$(CHAOS) $(GO) test -count=1 -v -timeout 1h -run 'TestChaos$$' ./local/e2e

mutants: ## Break lines of the product on purpose, and see whether the rules say so
	FENCEPOST_MUTANTS=1 $(GO) test -count=1 -v -timeout 1h -run 'TestMutants$$' ./core/simtest

fmt: ## Format the code
	gofmt -w $$(git ls-files '*.go')

build:
	@[ -x $(BIN) ] || echo "building $(BIN); the first time takes a minute or two"
	@$(GO) build -o $(BIN) ./local/cmd/fencepost
