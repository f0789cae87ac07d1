# Run make help for the list of targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

export CGO_ENABLED ?= 0
# The same flags for every build, here and in hack/binaries, so that a package is compiled once for the operator, the
# tests, the linters and the tools. hack/align-modules keeps shared dependencies of their modules at the same versions.
# Without debug information, compiling takes a sixth less CPU time; set GCFLAGS to the empty string for a debugger.
GCFLAGS ?= all=-dwarf=false
export GOFLAGS := $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath -gcflags=$(GCFLAGS)
# Outside the checkout, so that a new clone at the same path can use it, but not shared with other checkouts:
# golangci-lint caches findings with file paths, and would report them in another checkout with a path that no exclusion
# matches.
export GOLANGCI_LINT_CACHE ?= $(or $(SLURM_OPERATOR_CACHE),$(HOME)/.cache/slurm-operator)/lint$(CURDIR)
NODES ?= 3
CYCLES ?= 20
HOURS ?= 1
PODS ?= 1000,5000
INPUTS ?= 100000
# The packages to fuzz (default: all with a target), and those to test with the race detector.
FUZZ ?=
RACE ?= ./...
# The model test: number of sequences, the first one, and the only one if SEED is set.
N ?= 10000
FROM ?= 1
SEED ?= 0
SCALE ?= .
SCALE_FLAGS ?= -docs=baseline
COSTS_FLAGS ?=
# The minor version of Kubernetes whose API server and test cluster are used, of the modules hack/binaries/kubernetes-*.
# The newest, if it is empty.
export KUBERNETES ?=
# The Slurm versions to test, and the tests of confinement and the end-to-end tests to run.
SLURM ?= 26.05,24.11
CONFINEMENT ?= .
E2E ?= ^(TestQuickstart|TestServicesOfACluster|TestNodeSet)$$
# How often TestChaos kills the operator and its leader.
KILLS ?= 10
FAILOVERS ?= 3
# TestChaos: how long it stops a kubelet, and the number of pending jobs during the test. TestTrace: how long it watches
# an idle cluster.
OUTAGE ?= 20s
QUEUED ?= 0
IDLE ?= 30s
# TestLargeCluster: the number of Slurm nodes without a slurmd.
DOWN_NODES ?= 1500
# TestReleaseUpgrade: the tag or commit to upgrade from.
PREVIOUS ?=
E2E_FLAGS = -kills=$(KILLS) -failovers=$(FAILOVERS) -outage=$(OUTAGE) -queued=$(QUEUED) -idle=$(IDLE) -down-nodes=$(DOWN_NODES) -previous=$(PREVIOUS)
BASE_URL ?=
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# A release: its registry and a path in it, layouts with images of Slurm for other
# architectures, who builds it (a URI, in the provenance), and cosign's flags for signatures with a key.
REGISTRY ?=
LAYOUTS ?=
BUILDER ?= local
SIGN_FLAGS ?=

TOOL := hack/tool hack/tools
HELMTOOL := hack/tool hack/tools/helm
TAGS := integration,slurm,cluster,e2e,scale,mutation,soak,release,costs
# Test results are recorded for verify-requirements.
RECORDS := $(shell mkdir -p bin/tests)bin/tests
RECORD = $(RECORDS)/$@-$(SLURM)$(KUBERNETES:%=-kubernetes-%).json
# vet runs with the linters. The timeout is at least two hours, so that no test fails for being slow.
TEST = $(TOOL) gotestsum --jsonfile $(RECORD) --format-hide-empty-pkg --format pkgname -- -vet=off -timeout 2h
# The totals of the end-to-end tests are only in their record.
TOTALS = grep -o '[0-9]* ledgers:[^"\\]*' $(RECORD)
DEVCLUSTER := bin/devcluster

.PHONY: help deps build binaries images plugin-release sbom outdated release publish bundle generate charts verify lint vulnerabilities test test-race test-integration test-charts test-release test-slurm test-confinement \
    docs fuzz test-under-load test-model test-mutations test-costs bench-slurm bench-queue test-e2e test-e2e-full soak test-cluster test-scale verify-requirements cluster-up \
    cluster-down cluster-status kubeconfig ci clean bin/slurm-operator bin/kubectl-slurm $(DEVCLUSTER)

##@ General
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

deps: ## Install the Debian packages that building and testing need (root)
	hack/install-packages

##@ Build
build: bin/slurm-operator bin/kubectl-slurm ## Build the operator and the plugin for kubectl into bin/

bin/slurm-operator bin/kubectl-slurm:
	go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o $@ ./cmd/$(@F)

$(DEVCLUSTER):
	go build -trimpath -o $@ ./test/cluster/devcluster

binaries: $(DEVCLUSTER) ## Build Kubernetes, containerd, Helm and kwok into the cache
	$(DEVCLUSTER) binaries

images: $(DEVCLUSTER) bin/slurm-operator ## Build all images into the cache (root)
	$(DEVCLUSTER) images bin/slurm-operator

plugin-release: ## Build archives of kubectl slurm VERSION for all platforms, to be downloaded from BASE_URL, into dist/
	go run ./hack/pluginrelease -version '$(VERSION)' -base-url '$(BASE_URL)' -out dist

sbom: images ## Write an SBOM for each image into bin/sbom
	$(DEVCLUSTER) bills bin/sbom

outdated: images ## List the packages in the images that have a security update in Debian; fails if there are any (root)
	$(DEVCLUSTER) outdated

SITE := hack/site
docs: $(SITE)/node_modules/.package-lock.json ## Build the documentation site into bin/site, and check all links (npm)
	go test -vet=off ./hack/links
	VERSION=$(VERSION) npm --prefix $(SITE) run --silent build

# Not npm ci: it fails if the lock file lacks optional packages of other platforms, which not every mirror has.
$(SITE)/node_modules/.package-lock.json: $(SITE)/package-lock.json
	npm --prefix $(SITE) install --no-save --prefer-offline
	touch $@

release: ## Build the release VERSION for REGISTRY into dist/ (root, unless the images of Slurm are built); see docs/releases.md
	rm -rf dist
	go run ./hack/release build -version '$(VERSION)' -registry '$(REGISTRY)' -layouts '$(LAYOUTS)' -builder '$(BUILDER)'

publish: ## Push the release in dist/ to its registry, and sign it with cosign
	go run ./hack/release publish -sign-flags '$(SIGN_FLAGS)'

bundle: ## Write a bundle of the release VERSION in dist/ for the Operator Lifecycle Manager into dist/bundle
	go -C hack/bundle run . -chart '$(CURDIR)/dist/slurm-operator-$(VERSION:v%=%).tgz' -out '$(CURDIR)/dist/bundle' ../..

##@ Check
generate: ## Write all generated files, and check the licenses of dependencies
	go mod tidy
	hack/generate.sh
	go -C hack/tools run ./licenses ../.. $(TAGS) ../../docs/reference/licenses.md
	$(MAKE) --no-print-directory charts
	$(TOOL) golangci-lint fmt

charts: ## Write the generated parts of the charts: CRDs, roles, webhooks, alert rules, dashboards, schemas, READMEs
	go -C hack/tools run ./charts ../..
	go -C hack/monitoring run . ../..
	$(HELMTOOL) helm-docs --chart-search-root charts --sort-values-order file --log-level warning

verify: ## Check that all generated files are up to date, and the licenses of dependencies
	hack/verify-generated

lint: ## Run the linters
	$(TOOL) golangci-lint run --allow-parallel-runners --build-tags $(TAGS)
	hack/align-modules --check
	$(TOOL) actionlint
	shellcheck hack/align-modules hack/fuzz hack/generate.sh hack/install-packages hack/tool hack/under-load hack/verify-generated hack/with-cluster .ci/run cmd/kubectl-slurm/kubectl_complete-slurm

# Not part of ci: it needs the vulnerability database at vuln.go.dev, or a mirror in GOVULNDB.
vulnerabilities: ## Look for known vulnerabilities in the operator's Go dependencies (needs the internet)
	$(TOOL) govulncheck ./cmd/...

##@ Test
test: ## Run the unit tests
	$(TEST) ./...
	go -C hack/tools test -vet=off ./...
	go -C hack/monitoring test -vet=off ./...
	go -C hack/bundle test -vet=off ./...

test-race: ## Run the unit tests, or those of the packages RACE, with the race detector
	$(patsubst --,--raw-command -- env CGO_ENABLED=1 go test -json,$(TEST)) -race $(RACE)

test-integration: ## Run the tests that need an API server
	$(TEST) -tags integration -count=1 -parallel 10 ./test/integration/...

test-charts: ## Test the Helm charts, without a cluster
	$(HELMTOOL) helm-unittest --strict charts/slurm-operator charts/slurm
	$(TEST) -tags integration -count=1 ./test/charts

test-release: images ## Build a release, publish it to a registry of the test, verify its signatures, and pull it from there (root)
	$(TEST) -tags release -count=1 ./test/release

# These tests mostly wait for daemons. The package that takes longest comes first.
test-slurm: ## Run the tests that need a real Slurm or Prometheus, without Kubernetes (root)
	$(TEST) -tags slurm -count=1 -p 4 -parallel 6 ./internal/slurm/contract ./internal/slurmconf ./test/slurmnet ./internal/inpod/... ./hack/images ./test/prometheus ./internal/controller/nodeset/worker ./internal/plugin/slurmcli
	go -C hack/monitoring test -vet=off -tags slurm -count=1 ./rules

test-confinement: ## Run the tests of confinement, in a virtual machine with cgroup v2 (root)
	$(TEST) -tags slurm -count=1 -run '$(CONFINEMENT)' ./test/confinement -args -slurm=$(SLURM)

fuzz: ## Fuzz every target, or those of the packages FUZZ, with INPUTS (100000) inputs
	hack/fuzz $(INPUTS) $(FUZZ)

PLAN := ./internal/controller/nodeset/plan
test-model: ## Run N (10000) random sequences against the NodeSet plan, starting with FROM (1); SEED repeats one
	$(TEST) -count=1 -timeout 12h -run '^TestModel$$' $(PLAN) -args -sequences=$(N) -first-seed=$(FROM) -seed=$(SEED)

test-mutations: ## Run mutation tests of the NodeSet plan, and show which tests detect each mutation
	go test -tags mutation -count=1 -v -timeout 1h -run '^TestMutations$$' $(PLAN)

test-costs: ## Change each setting of slurm.conf below a running job on real Slurm; COSTS_FLAGS=-update records the costs (root)
	$(TEST) -tags costs -count=1 ./test/costs -args $(COSTS_FLAGS)

bench-slurm: ## Measure the Slurm mirror against a real slurmctld with 5,000 and 16,000 nodes (root)
	go test -tags slurm -run '^$$' -bench Mirror -benchtime 1x -timeout 2h ./internal/slurm/bench -args -nodes=5000,16000

bench-queue: ## Measure a decision against a real slurmctld with 100,000 pending and 20,000 running jobs (root)
	go test -tags slurm -run '^$$' -bench Queue -benchtime 1x -timeout 2h ./internal/slurm/bench -args -pending=100000 -running=20000

test-e2e: ## Run the core end-to-end tests, or E2E, on the cluster of KUBECONFIG or on the test cluster (root)
	hack/with-cluster $(TEST) -tags e2e -count=1 -run '$(E2E)' ./test/e2e/... -args -slurm=$(SLURM) $(E2E_FLAGS)
	@$(TOTALS)

test-e2e-full: ## Run all end-to-end tests, and compare the roles with the permissions that were used (root)
	hack/with-cluster $(TEST) -tags e2e -count=1 -timeout 12h ./test/e2e/... -args -slurm=$(SLURM) $(E2E_FLAGS) -roles
	@$(TOTALS)

soak: ## Run random faults and changes for HOURS (1), and plot the operator's resource usage in bin/soak.html (root)
	hack/with-cluster $(TEST) -tags e2e,soak -count=1 -timeout 0 -run '^TestSoak$$' ./test/e2e -args -slurm=$(SLURM) -soak=$(HOURS)h -kills=1 -failovers=1

test-cluster: $(DEVCLUSTER) ## Test the test cluster: its faults, and CYCLES (20) times up and down (root)
	$(TEST) -tags cluster -count=1 ./test/cluster -args -devcluster=$(CURDIR)/$(DEVCLUSTER) -cycles=$(CYCLES)

test-scale: ## Measure PODS (1000,5000) simulated pods and write the results into docs/scale.md
	$(TEST) -tags scale -count=1 -v -timeout 12h -run '$(SCALE)' ./test/scale -args -pods=$(PODS) $(SCALE_FLAGS)

# The parts are those of .ci/run: the integration tier and the quick end-to-end tier.
test-under-load: N = 10
test-under-load: binaries images ## Run the integration and the quick end-to-end tests N (10) times beside two busy loops, and with GOMAXPROCS=1 (root)
	hack/under-load $(N) integration e2e e2e-nodes

verify-requirements: ## Check that the tests of every requirement, invariant and security claim passed in the recorded runs
	go run ./hack/requirements docs/requirements.md $(RECORDS)
	go run ./hack/requirements docs/reliability.md $(RECORDS)
	go run ./hack/requirements docs/security.md $(RECORDS)

##@ Test cluster (root)
cluster-up: $(DEVCLUSTER) ## Start a real Kubernetes cluster with NODES (3) nodes on this computer; KUBERNETES=1.35 for an older minor
	$(DEVCLUSTER) up $(NODES)

cluster-down: $(DEVCLUSTER) ## Stop it and remove everything except its logs
	$(DEVCLUSTER) down

cluster-status: $(DEVCLUSTER) ## List its nodes and daemons, and where they log
	$(DEVCLUSTER) status

kubeconfig: ## Print the path of its kubeconfig
	@go run ./test/cluster/devcluster kubeconfig

##@ Everything
ci: ## Run the checks for every change
	bash .ci/run

clean: ## Remove bin/ and dist/; the cache outside the repository stays
	rm -rf bin dist
