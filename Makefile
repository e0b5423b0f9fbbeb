# `make` lists the targets.
# PG_CONFIG names the PostgreSQL to build for (15 to 18); demo and tests run on a private copy of it.
# MAJORS are those that are tested: PG_CONFIG's own, and for each other major a server that the harness can get.
PG_CONFIG ?= /usr/lib/postgresql/15/bin/pg_config
MAJORS ?= 15 16 17 18
MAJOR ?= 17
ASSERT ?=
DATA ?=
ANCHOR ?=
SCALE ?= 1m
MINUTES ?=
TEST ?=
SHARD ?=
SPLIT ?=
export PG_CONFIG DATA ANCHOR ASSERT

SHELL := /bin/bash
harness := tests/harness
# In a recipe: the functions of the harness, set to the private copy of the server.
with_server := . $(harness)/common.sh && select_server "$(PG_CONFIG)" &&

.DEFAULT_GOAL := help
.PHONY: help setup tools demo psql figures stop test test-clients test-long soak hostile mutants citus-test bench recall upgrade-test postgres memcheck pgvector lint build install packages packages-test packages-check release-check clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 24

setup: ## install what make test misses: Debian packages (as root), Rust, cargo-pgrx
	@$(harness)/setup.sh $(MAJORS)

# The same without what only tests need.
tools:
	@$(harness)/setup.sh

demo: tools ## slice sample data in a throw-away server; DATA=folder, ANCHOR=uuid take others
	@$(harness)/demo.sh

psql: ## open the demo's server
	@$(harness)/server.sh psql demo -d postgres

figures: ## draw the figures of docs/why.md anew, in the demo's server; needs Graphviz
	@$(with_server) use_server demo && $(harness)/figures.sh

stop: ## end the demo's server
	@$(harness)/server.sh stop demo

test: setup ## run the tests on PostgreSQL 15 to 18; MAJORS='15 18' takes some; the last line counts them
	@$(harness)/test.sh $(MAJORS)

test-clients: setup ## run drivers and clients, use the page, and bind what applications of PyPI and npm store
	@$(with_server) install_release && $(harness)/server.sh start test && trap '$(harness)/server.sh stop test' EXIT && \
	  use_server test && status=0 && { $(harness)/clients.sh || status=1; } && \
	  { $(harness)/python_client.sh || status=1; } && \
	  { $(harness)/typescript_client.sh || status=1; } && { $(harness)/page.sh || status=1; } && \
	  { $(harness)/applications.sh || status=1; } && exit $$status

test-long: tools ## run the tests that take long, and those of the glue inside a server
	@$(with_server) cargo test --release -p graph_kernel_core -p graph_kernel_tests -- --ignored
	@$(harness)/pgrx_tests.sh

soak: tools ## kill, cancel and repeat, beside writers and on copies, for MINUTES=70; TEST=service alone
	@$(harness)/soak.sh "$(MINUTES)" "$(TEST)"

hostile: tools ## fuzz each parser for MINUTES=15, and give the server queries of sqlsmith
	@$(harness)/hostile.sh $(MINUTES)

mutants: tools ## change the kernel in each place, and see that its tests notice; SHARD=3/40 takes a share
	@$(harness)/mutants.sh $(SHARD)

citus-test: tools ## read tables that Citus distributes; needs the extension citus in the server of PG_CONFIG
	@$(harness)/citus.sh

bench: tools ## time slices beside the published crate and plain SQL; SCALE=1m, 10m or short
	@$(harness)/bench.sh $(SCALE)

recall: tools ## measure what of the evidence is recalled, over the questions in DATA=folder; SPLIT=tune takes some
	@$(harness)/recall.sh $(SPLIT)

upgrade-test: setup ## upgrade databases: from released versions of the extension, and from PostgreSQL to PostgreSQL
	@$(harness)/upgrade.sh $(MAJORS)

postgres: ## build PostgreSQL MAJOR=17 below target/; ASSERT=1 one that checks its assertions
	@$(harness)/postgres.sh $(MAJOR)

memcheck: tools ## run the tests on a server that checks assertions, and some under Valgrind
	@$(harness)/memcheck.sh

pgvector: tools ## build pgvector from its Debian source package into the private server
	@$(harness)/pgvector.sh

lint: tools ## check format, lints, layers and that all files state one version
	@$(with_server) check_versions && check_layers && check_format && check_clippy && check_fuzzing && $(harness)/python_client.sh lint

build: tools ## build the extension
	@$(with_server) cargo build --release "$${features[@]}"

install: tools ## build and install into the PostgreSQL of PG_CONFIG itself
	@$(with_server) install_real "$(PG_CONFIG)"

packages: setup ## build the packages of a release into target/packages, for MAJORS
	@packaging/packages.sh $(MAJORS)

packages-test: setup ## test what is in target/packages; as root also in a bare Debian
	@packaging/test.sh $(MAJORS)

packages-check: ## build some of them again in another folder, and compare the bytes
	@packaging/reproduce.sh $(firstword $(MAJORS))

release-check: setup ## check all of a release that can be checked before its tag
	@packaging/release-check.sh

clean: ## end the demo's server and remove everything built
	@[[ ! -d target ]] || $(harness)/server.sh stop demo
	@[[ ! -f target/base ]] || rm -rf "$$(cat target/base)"
	@rm -rf target
