# Run make help for the list of targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

export CGO_ENABLED ?= 0
# The same flags for every build, here and in hack/binaries, so that a package is compiled once for the operator, the tests, the
# linters and the tools. Their modules also agree on the versions of what they share: see hack/align-modules.
export GOFLAGS := $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath
# Outside of the checkout, so that a new clone in the same place has it, but not shared with other checkouts: golangci-lint keeps
# findings with the path of the file, and would report them in another checkout under a path that no exclusion matches.
export GOLANGCI_LINT_CACHE ?= $(or $(SLURM_OPERATOR_CACHE),$(HOME)/.cache/slurm-operator)/lint$(CURDIR)
NODES ?= 3
CYCLES ?= 20
HOURS ?= 1
PODS ?= 1000,5000
INPUTS ?= 100000
# The packages that are fuzzed (all that have a target), and those that are tested with the race detector.
FUZZ ?=
RACE ?= ./...
# The sequences of the model test, the first of them, and the only one if SEED is given.
N ?= 10000
FROM ?= 1
SEED ?= 0
SCALE ?= .
SCALE_FLAGS ?= -docs=baseline
# The Slurm versions that tests run on, and which end-to-end tests.
SLURM ?= 26.05,24.11
E2E ?= ^(TestQuickstart|TestServicesOfACluster|TestNodeSet)$$
# How often TestChaos kills the operator, and its leader.
KILLS ?= 10
FAILOVERS ?= 3
# For how long TestChaos stops a kubelet, and how many jobs wait all through it; for how long TestTrace watches an idle cluster.
OUTAGE ?= 20s
QUEUED ?= 0
IDLE ?= 30s
E2E_FLAGS = -kills=$(KILLS) -failovers=$(FAILOVERS) -outage=$(OUTAGE) -queued=$(QUEUED) -idle=$(IDLE)
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

TOOL := hack/tool hack/tools
HELMTOOL := hack/tool hack/tools/helm
TAGS := integration,slurm,cluster,e2e,scale,mutation,soak
# What each test says is kept too, for the proof that every requirement has one that passed.
RECORDS := $(shell mkdir -p bin/tests)bin/tests
# The linters vet. No test has less than two hours: how long a test takes is not what fails it.
TEST = $(TOOL) gotestsum --jsonfile $(RECORDS)/$@-$(SLURM).json --format-hide-empty-pkg --format pkgname -- -vet=off -timeout 2h
# What the end-to-end tests sum up is in the record of them alone.
TOTALS = grep -o '[0-9]* ledgers:[^"\\]*' $(RECORDS)/$@-$(SLURM).json
DEVCLUSTER := bin/devcluster

.PHONY: help deps build binaries images sbom generate charts verify lint test test-race test-integration test-charts test-slurm \
    fuzz test-model test-mutations bench-slurm bench-queue test-e2e test-e2e-full soak test-cluster test-scale verify-requirements cluster-up \
    cluster-down cluster-status kubeconfig ci clean bin/slurm-operator $(DEVCLUSTER)

##@ General
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

deps: ## Install the Debian packages that building and testing need (root)
	hack/install-packages

##@ Build
build: bin/slurm-operator ## Build the operator into bin/

bin/slurm-operator:
	go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o $@ ./cmd/slurm-operator

$(DEVCLUSTER):
	go build -trimpath -o $@ ./test/cluster/devcluster

binaries: $(DEVCLUSTER) ## Build Kubernetes, containerd, Helm and kwok into the cache
	$(DEVCLUSTER) binaries

images: $(DEVCLUSTER) bin/slurm-operator ## Build all images into the cache (root)
	$(DEVCLUSTER) images bin/slurm-operator

sbom: images ## Write a bill of materials for each image into bin/sbom
	$(DEVCLUSTER) bills bin/sbom

##@ Check
generate: ## Write everything that is generated
	go mod tidy
	hack/generate.sh
	$(MAKE) --no-print-directory charts
	$(TOOL) golangci-lint fmt

charts: ## Write what the charts have from elsewhere: CRDs, roles, schemas, READMEs
	go -C hack/tools run ./charts ../..
	$(HELMTOOL) helm-docs --chart-search-root charts --sort-values-order file --log-level warning

verify: ## Prove that everything generated is current
	hack/verify-generated

lint: ## Run the linters
	$(TOOL) golangci-lint run --allow-parallel-runners --build-tags $(TAGS)
	hack/align-modules --check
	shellcheck hack/align-modules hack/fuzz hack/generate.sh hack/install-packages hack/tool hack/verify-generated hack/with-cluster .ci/run

##@ Test
test: ## Run the unit tests
	$(TEST) ./...
	go -C hack/tools test -vet=off ./...

test-race: ## Run the unit tests, or those of the packages RACE, with the race detector
	$(patsubst --,--raw-command -- env CGO_ENABLED=1 go test -json,$(TEST)) -race $(RACE)

test-integration: ## Run the tests that need an API server
	$(TEST) -tags integration -count=1 ./test/integration/...

test-charts: ## Test the Helm charts, without a cluster
	$(HELMTOOL) helm-unittest --strict charts/slurm-operator charts/slurm
	$(TEST) -tags integration -count=1 ./test/charts

# One package at a time: the kernel gives the number of a namespace that has gone to the next one, whoever makes it.
test-slurm: ## Run the tests that need a real Slurm, without Kubernetes (root)
	$(TEST) -tags slurm -count=1 -p 1 ./test/slurmnet ./internal/slurm/contract ./internal/slurmconf ./internal/inpod/... ./internal/controller/nodeset/worker

fuzz: ## Fuzz every target, or those of the packages FUZZ, with INPUTS (100000) inputs
	hack/fuzz $(INPUTS) $(FUZZ)

PLAN := ./internal/controller/nodeset/plan
test-model: ## Let N (10000) random sequences happen to a NodeSet, from FROM (1) on; SEED repeats one
	$(TEST) -count=1 -timeout 12h -run '^TestModel$$' $(PLAN) -args -sequences=$(N) -first-seed=$(FROM) -seed=$(SEED)

test-mutations: ## Break the plan for NodeSets on purpose, and show which tests notice
	go test -tags mutation -count=1 -v -timeout 1h -run '^TestMutations$$' $(PLAN)

bench-slurm: ## Measure the Slurm mirror against a real slurmctld with 5,000 and 16,000 nodes (root)
	go test -tags slurm -run '^$$' -bench Mirror -benchtime 1x -timeout 2h ./internal/slurm/bench -args -nodes=5000,16000

bench-queue: ## Measure a decision against a real slurmctld with 100,000 pending and 20,000 running jobs (root)
	go test -tags slurm -run '^$$' -bench Queue -benchtime 1x -timeout 2h ./internal/slurm/bench -args -pending=100000 -running=20000

test-e2e: ## Run the core of the end-to-end tests, or E2E, on the cluster of KUBECONFIG or on one of our own (root)
	hack/with-cluster $(TEST) -tags e2e -count=1 -run '$(E2E)' ./test/e2e/... -args -slurm=$(SLURM) $(E2E_FLAGS)
	@$(TOTALS)

test-e2e-full: ## Run every end-to-end test, and compare the roles with what was used of them (root)
	hack/with-cluster $(TEST) -tags e2e -count=1 -timeout 12h ./test/e2e/... -args -slurm=$(SLURM) $(E2E_FLAGS) -roles
	@$(TOTALS)

soak: ## Let everything happen at random for HOURS (1), and draw what the operator uses into bin/soak.html (root)
	hack/with-cluster $(TEST) -tags e2e,soak -count=1 -timeout 0 -run '^TestSoak$$' ./test/e2e -args -slurm=$(SLURM) -soak=$(HOURS)h -kills=1 -failovers=1

test-cluster: $(DEVCLUSTER) ## Prove our own cluster: its faults, and CYCLES (20) times up and down (root)
	$(TEST) -tags cluster -count=1 ./test/cluster -args -devcluster=$(CURDIR)/$(DEVCLUSTER) -cycles=$(CYCLES)

test-scale: ## Measure PODS (1000,5000) simulated pods and write the figures into docs/scale.md
	$(TEST) -tags scale -count=1 -v -timeout 12h -run '$(SCALE)' ./test/scale -args -pods=$(PODS) $(SCALE_FLAGS)

verify-requirements: ## Prove that the tests of every requirement and invariant passed in the runs recorded here
	go run ./hack/requirements docs/requirements.md $(RECORDS)
	go run ./hack/requirements docs/reliability.md $(RECORDS)

##@ Our own cluster (root)
cluster-up: $(DEVCLUSTER) ## Bring up a real Kubernetes with NODES (3) nodes on this machine; K8S=1.36 chooses its version
	$(DEVCLUSTER) up $(NODES)

cluster-down: $(DEVCLUSTER) ## End it and leave nothing behind but its logs
	$(DEVCLUSTER) down

cluster-status: $(DEVCLUSTER) ## List its nodes and daemons, and where they log
	$(DEVCLUSTER) status

kubeconfig: ## Print the path of its kubeconfig
	@go run ./test/cluster/devcluster kubeconfig

##@ Everything
ci: ## Run what runs for every change
	bash .ci/run

clean: ## Remove bin/; the cache outside the repository stays
	rm -rf bin
